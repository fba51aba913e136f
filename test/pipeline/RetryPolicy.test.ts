import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, ScheduleDecision, ScheduleIntervals } from "effect"
import fc from "fast-check"
import { RetryPolicy } from "llmfuse"

const ceilings = (policy: RetryPolicy.RetryPolicy, count: number) =>
  Array.from({ length: count }, (_, index) => RetryPolicy.ceilingMillis(policy, index + 1))

/** The delays of a policy's schedule in milliseconds, until it is done or `most` are taken. */
const delays = (policy: RetryPolicy.RetryPolicy, most = 20) =>
  Effect.gen(function* () {
    const taken: Array<number> = []
    let state: unknown = policy.schedule.initial
    while (taken.length < most) {
      const [next, , decision] = yield* policy.schedule.step(0, undefined, state)
      if (ScheduleDecision.isDone(decision)) break
      taken.push(ScheduleIntervals.start(decision.intervals))
      state = next
    }
    return taken
  })

describe("RetryPolicy", () => {
  it.effect("doubles the wait and then caps it", () =>
    Effect.gen(function* () {
      const policy = yield* RetryPolicy.make({
        maxAttempts: 6,
        baseDelay: "1 second",
        multiplier: 2,
        maxDelay: "5 seconds",
        jitter: "none"
      })

      const waits = yield* delays(policy)

      assert.deepStrictEqual(waits, [1000, 2000, 4000, 5000, 5000])
    })
  )

  it.effect("has the defaults that are documented", () =>
    Effect.gen(function* () {
      const policy = yield* RetryPolicy.make()

      assert.strictEqual(policy.maxAttempts, 3)
      assert.deepStrictEqual(ceilings(policy, 6), [500, 1000, 2000, 4000, 8000, 10000])
      assert.strictEqual(policy.jitter, "full")
      assert.deepStrictEqual({ ...RetryPolicy.default, schedule: undefined }, { ...policy, schedule: undefined })
    })
  )

  it.effect("full jitter spreads each wait over the whole range below its ceiling", () =>
    Effect.gen(function* () {
      const policy = yield* RetryPolicy.make({ maxAttempts: 2, baseDelay: 1000 })

      const waits = (yield* Effect.all(Array.from({ length: 400 }, () => delays(policy)))).flat()

      assert.strictEqual(waits.length, 400)
      assert.isTrue(waits.every((wait) => wait >= 0 && wait <= 1000))
      assert.isBelow(Math.min(...waits), 100)
      assert.isAbove(Math.max(...waits), 900)
    })
  )

  it("never waits below zero or above the cap, for any policy and any attempt (Polly#1866, cockatiel#86, failsafe#215)", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 2 ** 31 - 1, noNaN: true }),
        fc.double({ min: 1, max: Number.MAX_SAFE_INTEGER, noNaN: true }),
        fc.double({ min: 0, max: 2 ** 31 - 1, noNaN: true }),
        fc.integer({ min: 1, max: 10_000 }),
        (baseDelayMillis, multiplier, maxDelayMillis, failures) => {
          const ceiling = RetryPolicy.ceilingMillis({ baseDelayMillis, multiplier, maxDelayMillis }, failures)
          return ceiling >= 0 && ceiling <= maxDelayMillis
        }
      ),
      { numRuns: 2000 }
    )
  })

  it.effect("jittered waits stay within the cap to attempt 10,000 (Polly#2163, failsafe#115)", () =>
    Effect.gen(function* () {
      const policy = yield* RetryPolicy.make({ maxAttempts: 10_001, baseDelay: 7, multiplier: 3, maxDelay: 5000 })

      const waits = yield* delays(policy, 10_001)

      assert.strictEqual(waits.length, 10_000)
      assert.isTrue(waits.every((wait) => wait >= 0 && wait <= 5000))
    })
  )

  const wrong: ReadonlyArray<readonly [option: string, options: object]> = [
    ["retry.maxAttempts is 0", { maxAttempts: 0 }],
    ["retry.maxAttempts is 2.5", { maxAttempts: 2.5 }],
    ["retry.maxAttempts is NaN", { maxAttempts: Number.NaN }],
    ["retry.maxAttempts is Infinity", { maxAttempts: Number.POSITIVE_INFINITY }],
    ["retry.maxAttempts is true", { maxAttempts: true }],
    ["retry.baseDelay is -1", { baseDelay: -1 }],
    ['retry.baseDelay is "-1 seconds"', { baseDelay: "-1 seconds" }],
    ["retry.baseDelay is NaN", { baseDelay: Number.NaN }],
    ["retry.baseDelay is Infinity", { baseDelay: Duration.infinity }],
    ["retry.multiplier is 0.5", { multiplier: 0.5 }],
    ["retry.multiplier is Infinity", { multiplier: Number.POSITIVE_INFINITY }],
    ["retry.maxDelay is 2147483648", { maxDelay: 2 ** 31 }],
    ['retry.maxDelay is "soon"', { maxDelay: "soon" }],
    ['retry.jitter is "half"', { jitter: "half" }],
    ["retry.attempts is not an option", { attempts: 3 }]
  ]

  it.effect.each(wrong)("refuses: %s", ([message, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(RetryPolicy.make(options as RetryPolicy.Options))

      assert.include(String(error), message)
      assert.match(String(error), /allowed: /)
    })
  )
})
