import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, TestClock, TestContext } from "effect"
import fc from "fast-check"
import { ThrottledError, TokenBucket } from "llmfuse"
import { interruptAtEveryOperation } from "../interruptAt.ts"

/** One token a second, two at once, any wait. */
const slow = { limit: 60, interval: "1 minute", burst: 2, maxWait: "1 hour" } as const

/** Takes a token and notes when. */
const noting = (bucket: TokenBucket.TokenBucket, times: Array<number>, cost = 1) =>
  Effect.flatMap(bucket.take(cost), () => Effect.map(Clock.currentTimeMillis, (now) => times.push(now)))

describe("TokenBucket", () => {
  it.effect("begins full: a burst goes at once, the rest at the rate", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make(slow)
      const times: Array<number> = []

      const fiber = yield* Effect.fork(Effect.repeatN(noting(bucket, times), 4))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(times, [0, 0, 1000, 2000, 3000])
    })
  )

  it.effect("tells how long it was waited for", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make({ limit: 60, burst: 1, maxWait: "1 minute" })

      const first = yield* bucket.take()
      const fiber = yield* Effect.fork(bucket.take())
      yield* TestClock.adjust("1 second")
      const second = yield* Fiber.join(fiber)

      assert.deepStrictEqual(first, Duration.zero)
      assert.strictEqual(Duration.toMillis(second), 1000)
    })
  )

  it.effect("part of a token shortens the wait", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make({ ...slow, burst: 1 })
      const times: Array<number> = []
      yield* bucket.take()
      yield* TestClock.adjust("750 millis")

      const fiber = yield* Effect.fork(noting(bucket, times))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(times, [1000])
    })
  )

  it.effect("never holds more than the burst, however long the pause", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make(slow)

      yield* TestClock.adjust("300 days")

      assert.strictEqual(yield* bucket.available, 2)
    })
  )

  it.effect("decides about maxWait before it waits", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make({ limit: 60, burst: 1, maxWait: "999 millis" }, "groq")
      yield* bucket.take()

      const error = yield* Effect.flip(bucket.take())

      assert.instanceOf(error, ThrottledError)
      assert.strictEqual(error.provider, "groq")
      assert.strictEqual(Duration.toMillis(error.wait), 1000)
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      assert.strictEqual(yield* bucket.available, 0)
    })
  )

  it.effect("a maxWait of exactly the wait is enough", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make({ limit: 60, burst: 1, maxWait: "1 second" })
      yield* bucket.take()

      const fiber = yield* Effect.fork(bucket.take())
      yield* TestClock.adjust("1 second")

      assert.isTrue(Exit.isSuccess(yield* fiber.await))
    })
  )

  it.effect("refuses at once a cost that the bucket can never hold", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make(slow)

      for (const cost of [3, Number.POSITIVE_INFINITY, Number.NaN, -1]) {
        const error = yield* Effect.flip(bucket.take(cost))
        assert.instanceOf(error, ThrottledError)
        assert.isFalse(Duration.isFinite(error.wait))
      }
      assert.strictEqual(yield* bucket.available, 2)
    })
  )

  it.effect("serves waiters in order, a large one before a small one that came later", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make(slow)
      const served: Array<string> = []
      const take = (who: string, cost: number) => Effect.map(bucket.take(cost), () => served.push(who))
      yield* bucket.take(2)

      const fibers: Array<Fiber.RuntimeFiber<number, ThrottledError>> = []
      for (const [who, cost] of [
        ["large", 2],
        ["small", 1],
        ["last", 1]
      ] as const) {
        fibers.push(yield* Effect.fork(take(who, cost)))
        yield* TestClock.adjust(1)
      }
      yield* TestClock.adjust("1 second")
      const afterOneSecond = [...served]
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(afterOneSecond, [])
      assert.deepStrictEqual(served, ["large", "small", "last"])
    })
  )

  it.effect("an interrupted waiter gives back exactly what it would have taken, and those behind it move up", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make({ ...slow, burst: 5 })
      const times: Array<number> = []
      yield* bucket.take(5)
      const first = yield* Effect.fork(bucket.take(5))
      yield* TestClock.adjust(0)
      const second = yield* Effect.fork(noting(bucket, times))
      yield* TestClock.adjust("500 millis")
      const before = yield* bucket.available

      yield* Fiber.interrupt(first)
      const after = yield* bucket.available
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(second)

      assert.strictEqual(before, -5.5)
      assert.strictEqual(after, -0.5)
      assert.deepStrictEqual(times, [1000])
    })
  )

  it.effect("gives tokens back when the effect is interrupted before it has begun, and only then", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make(slow)
      const fiber = yield* Effect.fork(bucket.withTokens()(Effect.never))
      yield* TestClock.adjust(0)

      yield* Fiber.interrupt(fiber)

      assert.strictEqual(yield* bucket.available, 1)
    })
  )

  it.effect("1,000 callers take at most burst + rate x time in any window", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make({ limit: 600, interval: "1 minute", burst: 20, maxWait: "10 minutes" })
      const times: Array<number> = []

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 1000 }, () => noting(bucket, times)),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("100 seconds")
      yield* Fiber.join(fiber)

      assert.strictEqual(times.length, 1000)
      assert.strictEqual(times[19], 0)
      assert.strictEqual(times[999], 98_000)
      const excess = times.flatMap((start, from) =>
        times.slice(from).map((end, more) => more + 1 - (20 + (end - start) / 100))
      )
      assert.isTrue(excess.every((tokens) => tokens < 1e-9))
    })
  )

  it("refills without rounding drift, however often it is asked", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5000 }),
        fc.array(fc.integer({ min: 1, max: 977 }), { minLength: 20, maxLength: 60 }),
        (limit, steps) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const bucket = yield* TokenBucket.make({ limit, burst: 1_000_000, maxWait: 0 })
              yield* bucket.take(1_000_000)
              for (const step of steps) {
                yield* TestClock.adjust(step)
                yield* bucket.take(0)
              }
              const elapsed = steps.reduce((total, step) => total + step, 0)
              assert.strictEqual(yield* bucket.available, (elapsed * 1000 * limit) / 60_000_000)
            }).pipe(Effect.provide(TestContext.TestContext))
          )
      ),
      { numRuns: 8 }
    ))

  it.effect("a clock that steps back refills nothing and takes nothing", () =>
    Effect.gen(function* () {
      const bucket = yield* TokenBucket.make(slow)
      yield* TestClock.setTime(10_000)
      yield* bucket.take(2)

      yield* TestClock.setTime(0)

      assert.strictEqual(yield* bucket.available, 0)
    })
  )

  it("loses no token wherever a caller is interrupted: at once, waiting, or just before its effect", async () => {
    for (const isWaiting of [false, true]) {
      let handedOver = 0
      const interrupted = await interruptAtEveryOperation(() => {
        const bucket = Effect.runSync(
          TokenBucket.make({ limit: 1, interval: "1 hour", burst: 1000, maxWait: "1 hour" })
        )
        const waiting = Effect.runSync(TokenBucket.make({ limit: 1000, interval: 1000, burst: 1 }))
        let hasBegun = false
        const begin = Effect.sync(() => {
          hasBegun = true
        })
        const run = isWaiting
          ? Effect.zipRight(waiting.take(), waiting.withTokens()(begin))
          : bucket.withTokens(10)(begin)
        return {
          run,
          check: async (_, operation) => {
            if (!isWaiting) {
              const left = Effect.runSync(bucket.available)
              const isSpent = Math.abs(left - 990) < 0.01
              assert.isTrue(isSpent || Math.abs(left - 1000) < 0.01, `${left} left at operation ${operation}`)
              assert.isTrue(isSpent || !hasBegun, `begun without a token at operation ${operation}`)
              if (isSpent && !hasBegun) handedOver += 1
              return
            }
            await Effect.runPromise(Effect.sleep(3))
            assert.strictEqual(Effect.runSync(waiting.available), 1, `interrupted at operation ${operation}`)
          }
        }
      })
      assert.isAbove(interrupted, 15)
      // One operation lies between handing the token to the effect and the effect's own first operation.
      assert.isAtMost(handedOver, 1)
    }
  })

  const wrong: ReadonlyArray<readonly [message: string, options: object]> = [
    ["limits.limit is 0", { limit: 0 }],
    ["limits.limit is NaN", { limit: Number.NaN }],
    ["limits.limit is Infinity", { limit: Number.POSITIVE_INFINITY }],
    ["limits.interval is 0", { limit: 1, interval: 0 }],
    ["limits.burst is 0.5", { limit: 1, burst: 0.5 }],
    ["limits.maxWait is -1", { limit: 1, maxWait: -1 }],
    ["limits.rate is not an option", { limit: 1, rate: 2 }]
  ]

  it.effect.each(wrong)("refuses: %s", ([message, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(TokenBucket.make(options as TokenBucket.Options))

      assert.include(String(error), message)
    })
  )
})
