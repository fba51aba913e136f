import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, TestClock } from "effect"
import { type Options, Provider } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, overloaded } from "./errors.ts"
import { makeFuse } from "./fuse.ts"

/** Always down, and counts. */
const down = (name: string) => {
  const seen = { calls: 0 }
  const complete = () =>
    Effect.suspend(() => {
      seen.calls += 1
      return Effect.fail(overloaded(name))
    })
  return { seen, provider: Provider.make({ name, complete }) }
}

const quick = { baseDelay: "10 millis", maxDelay: "10 millis", jitter: "none" } as const

/** No circuit opens, so that only the budget holds attempts back. */
const breaker = { failureThreshold: 1_000_000 }

describe("the budget of retries", () => {
  it.effect("in a full outage makes of many calls hardly more attempts", () =>
    Effect.gen(function* () {
      const groq = down("groq")
      const fuse = yield* makeFuse({ providers: [groq.provider], retry: quick, breaker })
      const calls = 500

      for (let call = 0; call < calls; call++) {
        yield* Effect.fork(Effect.exit(fuse.complete("hi")))
        yield* TestClock.adjust("1 millis")
      }
      yield* TestClock.adjust("1 minute")

      // 30 retries come with the window of ten seconds, and one with each five calls.
      assert.isAtMost(groq.seen.calls, calls + 30 + calls / 5)
      assert.isAtLeast(groq.seen.calls, calls + 30)
    })
  )

  it.effect("grows only with calls that are let through: an open circuit does not save up for the recovery", () =>
    Effect.gen(function* () {
      const groq = down("groq")
      const budget = { share: 1, minimumPerSecond: 0, window: "1 hour" } as const
      const fuse = yield* makeFuse({ providers: [groq.provider], retry: { ...quick, budget }, breaker })
      yield* fuse.isolate("groq")
      yield* Effect.repeatN(Effect.exit(fuse.complete("hi")), 9)
      yield* fuse.restore("groq")

      yield* Effect.exit(fuse.ask("hi"))

      assert.strictEqual(groq.seen.calls, 2)
    })
  )

  it.effect("can be switched off", () =>
    Effect.gen(function* () {
      const groq = down("groq")
      const fuse = yield* makeFuse({ providers: [groq.provider], retry: { ...quick, budget: false }, breaker })

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 50 }, () => Effect.exit(fuse.complete("hi"))),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)

      assert.strictEqual(groq.seen.calls, 150)
    })
  )

  it.effect("of one provider is not drained by another (aws-sdk-js-v3#4754)", () =>
    Effect.gen(function* () {
      const groq = down("groq")
      const gemini = FakeProvider.make("gemini", { errors: outage("gemini", 1) })
      const fuse = yield* makeFuse({
        providers: [groq.provider, gemini],
        retry: { ...quick, budget: { share: 0, minimumPerSecond: 0.2, window: "10 seconds" } },
        breaker
      })
      yield* Effect.repeatN(Effect.exit(fuse.ask("hi", { providers: ["groq"] })), 3)
      const drained = groq.seen.calls

      const response = yield* fuse.ask("hi", { providers: ["gemini"] })

      assert.isAtLeast(drained, 4)
      assert.strictEqual(response.attempts.length, 2)
    })
  )

  it.effect("without any left, the last error goes on at once", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [down("groq").provider, FakeProvider.make("gemini")],
        retry: { baseDelay: "5 seconds", jitter: "none", budget: { share: 0, minimumPerSecond: 0 } }
      })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(Duration.toMillis(response.latency), 0)
    })
  )

  it.effect.each([
    ["retry.budget.share is 1.5", { share: 1.5 }],
    ["retry.budget.share is NaN", { share: Number.NaN }],
    ["retry.budget.minimumPerSecond is -1", { minimumPerSecond: -1 }],
    ["retry.budget.window is 0", { window: 0 }],
    ["retry.budget is true", true]
  ] as const)("wrong options are refused by name: %s", ([message, budget]) =>
    Effect.gen(function* () {
      const options = { providers: [FakeProvider.make("a")], retry: { budget } as unknown as Options["retry"] }

      const error = yield* Effect.flip(makeFuse(options))

      assert.include(`${error}`, message)
    })
  )

  it.effect("a call can be repeated in its own way", () =>
    Effect.gen(function* () {
      const groq = down("groq")
      const fuse = yield* makeFuse({ providers: [groq.provider], retry: quick, breaker })

      yield* Effect.exit(fuse.ask("hi", { retry: { maxAttempts: 5 } }))
      const wrong = yield* Effect.flip(fuse.complete("hi", { retry: { maxAttempts: 0 } }))

      assert.strictEqual(groq.seen.calls, 5)
      assert.include(wrong.message, "retry.maxAttempts is 0")
    })
  )
})
