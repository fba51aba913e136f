import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, TestClock } from "effect"
import { Deadline, DeadlineExceededError, Provider } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "./errors.ts"
import { makeFuse } from "./fuse.ts"

/** A provider that says how long it may take. */
const asking = Provider.make({
  name: "asking",
  complete: () => Effect.map(Deadline.remaining, (time) => `${Duration.toMillis(time)}`)
})

describe("a deadline within and around calls", () => {
  it.effect("is visible to a provider", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [asking] })

      const within = yield* fuse.complete("hi", { deadline: "20 seconds" })
      const without = yield* fuse.complete("hi")

      assert.deepStrictEqual([within.text, without.text], ["20000", "Infinity"])
    })
  )

  it.effect("of an outer call holds for the calls that its provider makes", () =>
    Effect.gen(function* () {
      const inner = yield* makeFuse({
        providers: [FakeProvider.make("down", { errors: outage("down", 9) })],
        deadline: "1 hour"
      })
      const outer = yield* makeFuse({
        providers: [
          Provider.make({
            name: "nested",
            complete: (request) => Effect.catchAll(inner.complete(request), (error) => Effect.succeed(error._tag))
          })
        ]
      })

      const fiber = yield* Effect.fork(outer.complete("hi", { deadline: "2500 millis" }))
      yield* TestClock.adjust("1 minute")
      const response = yield* Fiber.join(fiber)

      // Attempts at 0 s and 1 s; the wait of 2 s before the third does not fit what is left of the outer budget.
      assert.strictEqual(response.text, "AllProvidersFailedError")
      assert.strictEqual(Duration.toMillis(response.latency), 1000)
    })
  )

  it.effect("that ends an attempt leaves it in the story, and names its provider", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("slow", { latency: "1 hour" })] })

      const fiber = yield* Effect.fork(Effect.flip(fuse.complete("hi", { deadline: "3 seconds" })))
      yield* TestClock.adjust("3 seconds")
      const error = yield* Fiber.join(fiber)

      assert.instanceOf(error, DeadlineExceededError)
      assert.strictEqual(error.provider, "slow")
      assert.deepStrictEqual(
        error.attempts.map(({ provider, outcome, duration }) => [provider, outcome, Duration.toMillis(duration)]),
        [["slow", "interrupted", 3000]]
      )
    })
  )

  it.effect("around calls, by withDeadline, ends them with what they know", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("slow", { latency: "1 hour" })] })

      const fiber = yield* Effect.fork(Effect.flip(Deadline.withDeadline("3 seconds")(fuse.complete("hi"))))
      yield* TestClock.adjust("3 seconds")
      const error = yield* Fiber.join(fiber)

      assert.instanceOf(error, DeadlineExceededError)
    })
  )

  it.effect("of the call is the shorter of its own and the outer one", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [asking], deadline: "5 seconds" })

      const shorter = yield* Deadline.withDeadline("1 minute")(fuse.complete("hi"))
      const longer = yield* Deadline.withDeadline("2 seconds")(fuse.complete("hi"))

      assert.deepStrictEqual([shorter.text, longer.text], ["5000", "2000"])
    })
  )
})
