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
      const later = yield* Deadline.remaining(deadline)
      yield* TestClock.adjust("1 hour")
      const after = yield* Deadline.remaining(deadline)

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
})
