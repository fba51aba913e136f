import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Random, Stream, TestClock } from "effect"
import * as fc from "fast-check"
import {
  type ChatEvent,
  isLlmFuseError,
  LlmFuse,
  OverloadedError,
  type ProviderError,
  RateLimitError,
  StreamInterruptedError
} from "llmfuse"
import { FakeProvider, type FakeStep } from "llmfuse/testing"
import { interruptAtEveryOperation } from "./interruptAt.ts"

/** What one request to a provider comes to. */
type Behaviour =
  | { readonly kind: "refused"; readonly hintMillis: number | undefined }
  | { readonly kind: "stream"; readonly steps: ReadonlyArray<Step>; readonly end: "whole" | "cut" | "silent" }

type Step = { readonly word: string } | { readonly waitMillis: number } | { readonly piece: string }

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ word: fc.constantFrom("", "a ", "bc ", "def ") }) },
    { weight: 2, arbitrary: fc.record({ waitMillis: fc.integer({ min: 1, max: 6000 }) }) },
    { weight: 1, arbitrary: fc.record({ piece: fc.constantFrom('{"x":', "1}", "") }) }
  ),
  { maxLength: 8 }
)

const behaviours: fc.Arbitrary<Behaviour> = fc.oneof(
  fc.record({
    kind: fc.constant("refused" as const),
    hintMillis: fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: undefined })
  }),
  fc.record({ kind: fc.constant("stream" as const), steps, end: fc.constantFrom("whole", "cut", "silent") })
)

const scenarios = fc.record({
  providers: fc.array(fc.array(behaviours, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  recovery: fc.constantFrom("fail" as const, "restart" as const),
  deadlineMillis: fc.option(fc.integer({ min: 1, max: 30_000 }), { nil: undefined }),
  breaks: fc.boolean(),
  seed: fc.integer()
})

const call = { _tag: "ToolCallDelta", index: 0, id: "a", name: "add" } as const

const scriptOf = (provider: string, { steps, end }: Behaviour & { kind: "stream" }): ReadonlyArray<FakeStep> => [
  ...steps.map(
    (step): FakeStep =>
      "word" in step ? step.word : "waitMillis" in step ? { wait: step.waitMillis } : { ...call, arguments: step.piece }
  ),
  ...(end === "whole"
    ? steps.some((step) => "piece" in step)
      ? [{ _tag: "ToolCall", id: "a", name: "add", arguments: { x: 1 } } as const]
      : []
    : end === "cut"
      ? [new StreamInterruptedError({ provider, partial: "" })]
      : [{ wait: "1 hour" } as const])
]

const fakeOf = (name: string, script: ReadonlyArray<Behaviour>) => {
  const refused = (hintMillis: number | undefined): ProviderError =>
    hintMillis === undefined
      ? new OverloadedError({ provider: name })
      : new RateLimitError({ provider: name, retryAfter: Duration.millis(hintMillis) })
  // Fakes refuse first and stream afterwards, so a script is sorted into these two.
  return FakeProvider.make(name, {
    errors: script.flatMap((it) => (it.kind === "refused" ? [refused(it.hintMillis)] : [])),
    streams: script.flatMap((it) => (it.kind === "stream" ? [scriptOf(name, it)] : []))
  })
}

describe("for random faults of up to four providers", () => {
  it.effect(
    "a stream ends with the whole answer or one typed error, in time, and the text after the last restart is the answer",
    () =>
      Effect.gen(function* () {
        const outcomes = { finished: 0, failed: 0, restarted: 0 }
        for (const scenario of fc.sample(scenarios, { numRuns: 400, seed: 20261130 })) {
          const fakes = scenario.providers.map((script, index) => fakeOf(`provider${index}`, script))
          const layer = LlmFuse.layer({
            providers: fakes,
            retry: { maxAttempts: scenario.maxAttempts, baseDelay: "200 millis", maxDelay: "5 seconds" },
            breaker: { failureThreshold: scenario.breaks ? 2 : 1000 },
            timeouts: { headers: "4 seconds", firstToken: "5 seconds", contentGap: "3 seconds" },
            recovery: scenario.recovery
          })
          const fuse = yield* Effect.provide(LlmFuse, layer)
          const events: Array<ChatEvent> = []
          const options = scenario.deadlineMillis === undefined ? {} : { deadline: scenario.deadlineMillis }
          const reading = Stream.runForEach(fuse.stream("hi", options), (event) =>
            Effect.sync(() => events.push(event))
          )

          const fiber = yield* Effect.fork(Effect.withRandom(reading, Random.make(scenario.seed)))
          if (scenario.deadlineMillis === undefined) {
            yield* TestClock.adjust("20 minutes")
          } else {
            yield* TestClock.adjust(scenario.deadlineMillis + 1)
          }
          const exit = fiber.unsafePoll()
          assert.isNotNull(exit, `still running: ${JSON.stringify(scenario)}`)

          check(events, exit ?? Exit.void, scenario)
          for (const fake of fakes) {
            assert.isAtMost(fake.calls, scenario.maxAttempts)
            assert.strictEqual(fake.streamed.closed, fake.streamed.opened)
          }
          outcomes[Exit.isSuccess(exit ?? Exit.void) ? "finished" : "failed"] += 1
          if (events.some(({ _tag }) => _tag === "Restarted")) outcomes.restarted += 1
          yield* Fiber.await(fiber)
        }
        // The property would hold of nothing if the scripts did not reach all ends.
        assert.isAbove(outcomes.finished, 50)
        assert.isAbove(outcomes.failed, 50)
        assert.isAbove(outcomes.restarted, 20)
      }),
    300_000
  )
})

const check = (events: ReadonlyArray<ChatEvent>, exit: Exit.Exit<unknown, unknown>, scenario: unknown) => {
  const why = JSON.stringify(scenario)
  const last = events.at(-1)
  if (Exit.isFailure(exit)) {
    assert.isTrue(isLlmFuseError(Cause.squash(exit.cause)), why)
    assert.isFalse(
      events.some(({ _tag }) => _tag === "Finished" || _tag === "ToolCall"),
      why
    )
  } else {
    assert(last?._tag === "Finished", why)
  }
  const tags = events.map(({ _tag }) => _tag)
  // Started and Restarted take turns: one Started for each attempt that showed something.
  const turns = tags.filter((tag) => tag === "Started" || tag === "Restarted")
  assert.deepStrictEqual(
    turns,
    turns.map((_, index) => (index % 2 === 0 ? "Started" : "Restarted")),
    why
  )
  assert.notStrictEqual(tags.at(-1), "Restarted", why)
  if (events.length > 0) assert.strictEqual(tags[0], "Started", why)
  if (last?._tag !== "Finished") return
  const kept = events.slice(tags.lastIndexOf("Started"))
  const joined = (tag: "TextDelta" | "ToolCallDelta") =>
    kept.map((event) => (event._tag !== tag ? "" : event._tag === "TextDelta" ? event.text : event.arguments)).join("")
  assert.strictEqual(joined("TextDelta"), last.response.text, why)
  assert.strictEqual(kept.filter(({ _tag }) => _tag === "ToolCall").length, last.response.toolCalls.length, why)
}

describe("a stream, interrupted at every operation", () => {
  it("leaves no attempt open, keeps no probe, and the next call is answered", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      const groq = FakeProvider.make("groq", {
        errors: [new OverloadedError({ provider: "groq" })],
        streams: [["One ", new StreamInterruptedError({ provider: "groq", partial: "" })]]
      })
      const gemini = FakeProvider.make("gemini")
      const layer = LlmFuse.layer({
        providers: [groq, gemini],
        retry: { maxAttempts: 1 },
        recovery: "restart",
        breaker: { failureThreshold: 1, resetTimeout: 1 },
        limits: { requestsPerMinute: 60_000_000, burst: 100 }
      })
      const fuse = Effect.runSync(Effect.scoped(Effect.provide(LlmFuse, layer)))
      Effect.runSync(fuse.complete("opens the circuit"))
      return {
        run: Effect.zipRight(Effect.sleep(2), Stream.runDrain(fuse.stream("probe"))),
        check: async (_, operation) => {
          assert.strictEqual(groq.streamed.closed, groq.streamed.opened, `open after operation ${operation}`)
          assert.strictEqual(gemini.streamed.closed, gemini.streamed.opened, `open after operation ${operation}`)
          await Effect.runPromise(Effect.sleep(2))
          const next = await Effect.runPromise(fuse.complete("next"))
          assert.strictEqual(next.provider, "groq", `a probe is kept after operation ${operation}`)
          assert.strictEqual(Effect.runSync(fuse.circuitState("groq")), "Closed")
        }
      }
    })

    assert.isAbove(interrupted, 60)
  }, 300_000)
})
