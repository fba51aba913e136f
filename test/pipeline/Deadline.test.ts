import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, TestClock } from "effect"
import * as Deadline from "../../src/pipeline/Deadline.ts"
import * as Monotonic from "../../src/pipeline/Monotonic.ts"

const inTenSeconds = Effect.map(Monotonic.millis, (now) => Deadline.after(now, 10_000))

describe("Deadline", () => {
  it.effect("counts down to zero and not below", () =>
    Effect.gen(function* () {
      const deadline = yield* inTenSeconds

      yield* TestClock.adjust("4 seconds")
      const later = yield* Deadline.left(deadline)
      yield* TestClock.adjust("1 hour")
      const after = yield* Deadline.left(deadline)

      assert.strictEqual(Duration.toMillis(later), 6000)
      assert.strictEqual(Duration.toMillis(after), 0)
    })
  )

  it.effect("a wait fits only if time is left after it", () =>
    Effect.gen(function* () {
      const deadline = yield* inTenSeconds

      assert.isTrue(yield* Deadline.fits(deadline, Duration.millis(9999)))
      assert.isFalse(yield* Deadline.fits(deadline, Duration.seconds(10)))
      assert.isTrue(yield* Deadline.fits(undefined, Duration.infinity))
    })
  )

  it.effect("ends what is still running", () =>
    Effect.gen(function* () {
      const deadline = yield* inTenSeconds
      yield* TestClock.adjust("4 seconds")
      const fiber = yield* Effect.fork(Effect.flip(Deadline.within(deadline, () => "expired")(Effect.never)))

      yield* TestClock.adjust("5999 millis")
      const early = fiber.unsafePoll()
      yield* TestClock.adjust("1 millis")

      assert.isNull(early)
      assert.strictEqual(yield* Fiber.join(fiber), "expired")
    })
  )

  it.effect("can be looked up by what runs within it, also in a forked fiber", () =>
    Effect.gen(function* () {
      const within = Effect.zipRight(
        Effect.sleep("3 seconds"),
        Effect.flatMap(Effect.fork(Deadline.remaining), Fiber.join)
      )
      const fiber = yield* Effect.fork(Deadline.withDeadline("10 seconds")(within))
      yield* TestClock.adjust("3 seconds")

      assert.strictEqual(Duration.toMillis(yield* Fiber.join(fiber)), 7000)
      assert.isFalse(Duration.isFinite(yield* Deadline.remaining))
    })
  )

  it.effect("an inner deadline can shorten the outer one and never lengthens it", () =>
    Effect.gen(function* () {
      const inner = (budget: Duration.DurationInput) =>
        Effect.map(
          Deadline.withDeadline("10 seconds")(Deadline.withDeadline(budget)(Deadline.remaining)),
          Duration.toMillis
        )

      assert.deepStrictEqual([yield* inner("4 seconds"), yield* inner("1 hour")], [4000, 10_000])
    })
  )

  it.effect("the error tells the budget that was used up, also where it is the outer one", () =>
    Effect.gen(function* () {
      const within = Deadline.withDeadline("2 seconds", "outer")(Deadline.withDeadline("1 hour", "inner")(Effect.never))
      const fiber = yield* Effect.fork(Effect.flip(within))
      yield* TestClock.adjust("2 seconds")

      assert.match((yield* Fiber.join(fiber)).message, /: not done within 2s/)
    })
  )

  it.effect("alone it ends any effect with an error that says how long it was given", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(Effect.flip(Deadline.withDeadline("2 seconds", "report")(Effect.never)))
      yield* TestClock.adjust("2 seconds")

      const error = yield* Fiber.join(fiber)

      assert.strictEqual(error._tag, "DeadlineExceededError")
      assert.strictEqual(error.message, "report: not done within 2s")
    })
  )
})
