import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Schema, Stream, TestClock } from "effect"
import {
  AllProvidersFailedError,
  type Attempt,
  type ChatRequest,
  ContentPolicyError,
  FailoverPolicy,
  InvalidRequestError,
  type Options,
  Provider
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, overloaded } from "./errors.ts"
import { collect, makeFuse, tagsOf } from "./fuse.ts"

const hedge = { delay: "2 seconds" } as const

const slow = (name: string, latency: Duration.DurationInput = "20 seconds") =>
  FakeProvider.make(name, { latency, reply: `from ${name}` })

/** A provider that never answers, and knows whether it was interrupted. */
const hanging = (name: string) => {
  const seen = { calls: 0, interrupted: 0 }
  const complete = () =>
    Effect.onInterrupt(
      Effect.suspend(() => {
        seen.calls += 1
        return Effect.never
      }),
      () =>
        Effect.sync(() => {
          seen.interrupted += 1
        })
    )
  return { seen, provider: Provider.make({ name, complete }) }
}

describe("hedge", () => {
  it.effect("asks the next provider too when the first has not answered after the delay; the first answer wins", () =>
    Effect.gen(function* () {
      const [groq, gemini] = [slow("groq"), slow("gemini", "1 second")]
      const fuse = yield* makeFuse({ providers: [groq, gemini], hedge })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.text, "from gemini")
      assert.strictEqual(Duration.toMillis(response.latency), 3000)
      assert.deepStrictEqual([groq.calls, gemini.calls], [1, 1])
      assert.deepStrictEqual(
        response.attempts.map(({ provider, outcome, duration }) => [provider, outcome, Duration.toMillis(duration)]),
        [
          ["groq", "hedge-lost", 3000],
          ["gemini", "success", 1000]
        ]
      )
    })
  )

  it.effect("a first provider that answers in time is alone", () =>
    Effect.gen(function* () {
      const gemini = slow("gemini")
      const fuse = yield* makeFuse({ providers: [slow("groq", "1999 millis"), gemini], hedge })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.text, "from groq")
      assert.strictEqual(gemini.calls, 0)
      assert.notInclude(tagsOf(fuse.events), "Hedged")
    })
  )

  it.effect("the loser is interrupted at once, is no failure of its circuit, and is told of once", () =>
    Effect.gen(function* () {
      const groq = hanging("groq")
      const fuse = yield* makeFuse({
        providers: [groq.provider, slow("gemini", "1 second")],
        hedge,
        breaker: { failureThreshold: 1 }
      })

      yield* fuse.ask("hi")

      assert.deepStrictEqual(groq.seen, { calls: 1, interrupted: 1 })
      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
      const told = fuse.events.flatMap((event) =>
        event._tag === "Hedged" ? [`${event.from} > ${event.to}`] : event._tag === "HedgeLost" ? [event.provider] : []
      )
      assert.deepStrictEqual(told, ["groq > gemini", "groq"])
    })
  )

  it.effect("a failure asks the next at once, and a failed hedge leaves the first alone (resilience4j-hedge)", () =>
    Effect.gen(function* () {
      const retry = { maxAttempts: 1 }
      const failing = () => FakeProvider.make("failing", { errors: outage("failing", 9) })
      const afterFailure = yield* makeFuse({ providers: [failing(), slow("gemini", "1 second")], hedge, retry })
      const withLive = yield* makeFuse({ providers: [slow("groq", "5 seconds"), failing()], hedge, retry })

      const quick = yield* afterFailure.ask("hi")
      const patient = yield* withLive.ask("hi")

      assert.deepStrictEqual([quick.text, Duration.toMillis(quick.latency)], ["from gemini", 1000])
      assert.deepStrictEqual([patient.text, Duration.toMillis(patient.latency)], ["from groq", 5000])
    })
  )

  it.effect("when all fail, the error has each provider's own", () =>
    Effect.gen(function* () {
      const failing = (name: string, latency: string) =>
        FakeProvider.make(name, { errors: outage(name, 9), latency: latency as Duration.DurationInput })
      const fuse = yield* makeFuse({
        providers: [failing("a", "5 seconds"), failing("b", "1 second")],
        hedge,
        retry: { maxAttempts: 1 }
      })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert.instanceOf(error, AllProvidersFailedError)
      assert.deepStrictEqual(Object.keys(error.errors), ["a", "b"])
    })
  )

  it.effect("where nobody wins nobody loses: what is under way is interrupted", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("slow", { latency: "1 hour" })
      const blocked = new ContentPolicyError({ provider: "refusing", stage: "prompt" })
      const refusing = FakeProvider.make("refusing", { errors: [blocked] })
      const fuse = yield* makeFuse({ providers: [slow, refusing], hedge: { delay: "1 second" } })

      const { attempts } = yield* Effect.flip(fuse.ask("hi"))

      assert.deepStrictEqual(
        (attempts as ReadonlyArray<Attempt>).map(({ provider, outcome }) => `${provider} ${outcome}`),
        ["refusing failure", "slow interrupted"]
      )
      assert.deepStrictEqual(tagsOf(fuse.events).slice(-2), ["AttemptInterrupted", "CallFailed"])
    })
  )

  it.effect("a failure that ends the call ends the race", () =>
    Effect.gen(function* () {
      const groq = hanging("groq")
      const refusing = FakeProvider.make("refusing", {
        errors: [new InvalidRequestError({ provider: "refusing" })]
      })
      const fuse = yield* makeFuse({ providers: [groq.provider, refusing], hedge, failover: FailoverPolicy.strict })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert.instanceOf(error, InvalidRequestError)
      assert.strictEqual(groq.seen.interrupted, 1)
    })
  )

  it.effect("a provider with an open circuit is no hedge", () =>
    Effect.gen(function* () {
      const down = FakeProvider.make("down", { errors: outage("down", 1) })
      const fuse = yield* makeFuse({
        providers: [slow("groq", "5 seconds"), down, slow("gemini", "1 second")],
        hedge,
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, resetTimeout: "1 hour" }
      })
      yield* Effect.exit(fuse.ask("hi", { providers: ["down"] }))

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.text, "from gemini")
      assert.strictEqual(down.calls, 1)
    })
  )

  it.effect("hedges take from the budget of retries; without any left the first goes on alone (failsafe-go#141)", () =>
    Effect.gen(function* () {
      const gemini = slow("gemini", "1 second")
      const fuse = yield* makeFuse({
        providers: [slow("groq", "5 seconds"), gemini],
        hedge,
        retry: { budget: { share: 0, minimumPerSecond: 0.1, window: "10 seconds" } }
      })

      const calls = yield* Effect.fork(Effect.all([fuse.complete("1"), fuse.complete("2")], { concurrency: 2 }))
      yield* TestClock.adjust("1 minute")
      const texts = (yield* Fiber.join(calls)).map(({ text }) => text)

      assert.deepStrictEqual(texts.toSorted(), ["from gemini", "from groq"])
      assert.strictEqual(gemini.calls, 1)
    })
  )

  it.effect("follows a percentile of the recent latency, and never hedges while there is no history", () =>
    Effect.gen(function* () {
      let latency: Duration.DurationInput = "400 millis"
      const groq = Provider.make({ name: "groq", complete: () => Effect.delay(Effect.succeed("from groq"), latency) })
      const gemini = slow("gemini", "10 millis")
      const fuse = yield* makeFuse({
        providers: [groq, gemini],
        hedge: { delay: { percentile: 0.9, floor: "1 millis" } }
      })
      const call = Effect.gen(function* () {
        const fiber = yield* Effect.fork(fuse.complete("hi"))
        yield* TestClock.adjust("10 seconds")
        return yield* Fiber.join(fiber)
      })

      yield* Effect.repeatN(call, 19)
      const before = gemini.calls
      latency = "5 seconds"
      const response = yield* call

      assert.strictEqual(before, 0)
      assert.deepStrictEqual([response.text, Duration.toMillis(response.latency)], ["from gemini", 410])
    })
  )

  const withToolResult: ChatRequest = {
    messages: [
      { role: "user", content: "Pay the bill." },
      { role: "assistant", content: "", toolCalls: [{ id: "1", name: "pay", arguments: {} }] },
      { role: "tool", toolCallId: "1", content: "paid" }
    ]
  }

  it.effect.each([
    [undefined, 0],
    [true, 1]
  ] as const)("a request with results of tools is hedged only if that is said: %s", ([toolResults, calls]) =>
    Effect.gen(function* () {
      const gemini = slow("gemini", "1 second")
      const fuse = yield* makeFuse({ providers: [slow("groq", "5 seconds"), gemini], hedge: { ...hedge, toolResults } })

      yield* fuse.ask(withToolResult)

      assert.strictEqual(gemini.calls, calls)
    })
  )

  it.effect("a call can hedge by itself, and can do without", () =>
    Effect.gen(function* () {
      const gemini = slow("gemini", "1 second")
      const plain = yield* makeFuse({ providers: [slow("groq", "5 seconds"), gemini] })
      const hedging = yield* makeFuse({ providers: [slow("groq", "5 seconds"), gemini], hedge })

      const asked = yield* plain.ask("hi", { hedge: { delay: "1 second" } })
      const without = yield* hedging.ask("hi", { hedge: false })

      assert.deepStrictEqual([asked.text, without.text], ["from gemini", "from groq"])
    })
  )

  it.effect("interrupting the call interrupts everybody", () =>
    Effect.gen(function* () {
      const [a, b] = [hanging("a"), hanging("b")]
      const fuse = yield* makeFuse({ providers: [a.provider, b.provider], hedge })
      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("3 seconds")

      const exit = yield* Fiber.interrupt(fiber)

      assert.isTrue(Exit.isInterrupted(exit))
      assert.deepStrictEqual(
        [a.seen, b.seen],
        [
          { calls: 1, interrupted: 1 },
          { calls: 1, interrupted: 1 }
        ]
      )
    })
  )

  it.effect("objects of two providers that answer at the same time are not mixed up", () =>
    Effect.gen(function* () {
      const [a, b] = [
        FakeProvider.make("a", { latency: "3 seconds", reply: `{"from":"a"}` }),
        FakeProvider.make("b", { latency: "1 second", reply: `{"from":"b"}` })
      ]
      const fuse = yield* makeFuse({ providers: [a, b], hedge })

      const fiber = yield* Effect.fork(fuse.object(Schema.Struct({ from: Schema.String }), "who?"))
      yield* TestClock.adjust("1 minute")
      const response = yield* Fiber.join(fiber)

      assert.strictEqual(response.object.from, response.provider)
    })
  )
})

describe("hedge of a stream", () => {
  const words = (name: string, first: Duration.DurationInput, gap: Duration.DurationInput) =>
    FakeProvider.make(name, {
      streams: [[{ wait: first }, `${name} one `, { wait: gap }, "two", { _tag: "End", finishReason: "stop" }]]
    })

  it.effect("is decided by the first content; only the winner is heard, and it may take its time", () =>
    Effect.gen(function* () {
      const groq = words("groq", "10 seconds", "1 second")
      const gemini = words("gemini", "1 second", "20 seconds")
      const fuse = yield* makeFuse({ providers: [groq, gemini], hedge })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, ["started gemini", "gemini one ", "two", "finished gemini: gemini one two"])
      assert.deepStrictEqual(
        [groq.streamed, gemini.streamed],
        [
          { opened: 1, closed: 1 },
          { opened: 1, closed: 1 }
        ]
      )
    })
  )

  it.effect("once content has come nobody is asked beside it", () =>
    Effect.gen(function* () {
      const gemini = words("gemini", 0, 0)
      const fuse = yield* makeFuse({ providers: [words("groq", "1 second", "20 seconds"), gemini], hedge })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.strictEqual(events[0], "started groq")
      assert.strictEqual(gemini.calls, 0)
    })
  )

  it.effect("a winner that breaks restarts with the next, where that is wanted", () =>
    Effect.gen(function* () {
      const groq = words("groq", "10 seconds", 0)
      const gemini = FakeProvider.make("gemini", { streams: [["half ", overloaded("gemini")]] })
      const mistral = words("mistral", 0, 0)
      const fuse = yield* makeFuse({
        providers: [groq, gemini, mistral],
        hedge,
        recovery: "restart",
        retry: { maxAttempts: 1 }
      })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, [
        "started gemini",
        "half ",
        "restarted gemini: half ",
        "started mistral",
        "mistral one ",
        "two",
        "finished mistral: mistral one two"
      ])
    })
  )

  it.effect("leaving the stream closes every stream that was opened", () =>
    Effect.gen(function* () {
      const [groq, gemini] = [words("groq", "1 hour", 0), words("gemini", "1 hour", 0)]
      const fuse = yield* makeFuse({
        providers: [groq, gemini],
        hedge,
        timeouts: { firstToken: "2 hours", headers: "2 hours" }
      })
      const fiber = yield* Effect.fork(Stream.runDrain(fuse.stream("hi")))
      yield* TestClock.adjust("3 seconds")

      yield* Fiber.interrupt(fiber)

      assert.deepStrictEqual([groq.streamed.closed, gemini.streamed.closed], [1, 1])
    })
  )
})

describe("options of hedging", () => {
  const providers = [FakeProvider.make("a")]
  const wrong: ReadonlyArray<readonly [message: string, hedge: unknown]> = [
    ["hedge.delay is 0", { delay: 0 }],
    ["hedge.delay is NaN", { delay: Number.NaN }],
    ["hedge.delay is undefined", {}],
    ["hedge.delay.percentile is 1", { delay: { percentile: 1 } }],
    ["hedge.delay.percentile is 95", { delay: { percentile: 95 } }],
    ["hedge.delay.floor is -1", { delay: { percentile: 0.9, floor: -1 } }],
    ["hedge.maxHedges is 0", { delay: 1, maxHedges: 0 }],
    ["hedge.maxHedges is 1.5", { delay: 1, maxHedges: 1.5 }],
    ["hedge.maxHedges is true", { delay: 1, maxHedges: true }],
    ["hedge.toolResults is 1", { delay: 1, toolResults: 1 }],
    ["hedge.after is not an option", { delay: 1, after: 1 }]
  ]

  it.effect.each(wrong)("are refused by name, for all calls and for one: %s", ([message, option]) =>
    Effect.gen(function* () {
      const built = yield* Effect.flip(makeFuse({ providers, hedge: option as Options["hedge"] }))
      const fuse = yield* makeFuse({ providers })
      const called = yield* Effect.flip(fuse.complete("hi", { hedge: option as Options["hedge"] }))

      assert.include(`${built}`, message)
      assert.include(called.message, message)
    })
  )
})
