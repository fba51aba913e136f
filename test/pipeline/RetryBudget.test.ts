import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Random, TestClock } from "effect"
import fc from "fast-check"
import { retry } from "../../src/pipeline/Retry.ts"
import * as RetryBudget from "../../src/pipeline/RetryBudget.ts"
import * as RetryPolicy from "../../src/pipeline/RetryPolicy.ts"
import { runVirtually } from "./virtualTime.ts"

const runs = Number(process.env.LLMFUSE_MODEL_RUNS ?? 200)

/** How many withdrawals succeed in a row at a moment. */
const drain = (budget: RetryBudget.RetryBudget, nowMillis: number, most = 1000): number => {
  for (let taken = 0; taken < most; taken++) if (!budget.withdraw(nowMillis)) return taken
  return most
}

const depositing = (budget: RetryBudget.RetryBudget, calls: number, nowMillis: number) => {
  for (let call = 0; call < calls; call++) budget.deposit(nowMillis)
}

/**
 * A client whose every call pays into its budget and whose every retry is taken from it, and what it sends. A retry is
 * taken when it is about to be waited for: `shouldRetry` is asked after the last attempt too.
 */
const client = (budget: RetryBudget.RetryBudget, policy: RetryPolicy.RetryPolicy) => {
  const sent = { attempts: 0 }
  const call = (provider: Effect.Effect<string, string>) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      budget.deposit(now)
      const attempt = Effect.suspend(() => {
        sent.attempts += 1
        return provider
      })
      return retry(attempt, policy, { fits: () => budget.withdrawal })
    })
  return { call, sent }
}

/** Makes so many calls, evenly spread over the seconds, and ends when they and their retries have ended. */
const arrivals = (calls: number, perSecond: number, call: Effect.Effect<string, string>) =>
  Effect.gen(function* () {
    const fibers: Array<Fiber.RuntimeFiber<unknown>> = []
    for (let number = 0; number < calls; number++) {
      fibers.push(yield* Effect.fork(Effect.exit(call)))
      yield* Effect.sleep(1000 / perSecond)
    }
    yield* Fiber.awaitAll(fibers)
  })

/** Runs a simulation with the same randomness each time. */
const simulate = (simulation: Effect.Effect<void, unknown>) =>
  assert.deepStrictEqual(runVirtually(Effect.withRandom(simulation, Random.make("simulation"))).exit, Exit.void)

const down = Effect.fail("down")

describe("RetryBudget", () => {
  it.effect("allows a share of the calls, and a minimum for each second of the window", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()
      depositing(budget, 100, 0)

      const taken = drain(budget, 0)

      assert.strictEqual(taken, 20 + 30)
    })
  )

  it.effect("counts fifths exactly: no call is lost to rounding", () =>
    Effect.gen(function* () {
      for (const [share, calls, retries] of [
        [0.29, 100, 29],
        [0.1, 30, 3],
        [0.7, 10, 7],
        [0.2, 4, 0],
        [1, 5, 5]
      ] as const) {
        const budget = yield* RetryBudget.make({ share, minimumPerSecond: 0 })
        depositing(budget, calls, 0)

        assert.strictEqual(drain(budget, 0), retries, `${share} of ${calls}`)
      }
    })
  )

  it.effect("a zero is a zero, not unset (opossum#824)", () =>
    Effect.gen(function* () {
      const nothing = yield* RetryBudget.make({ share: 0, minimumPerSecond: 0 })
      const minimumOnly = yield* RetryBudget.make({ share: 0 })
      depositing(nothing, 1000, 0)
      depositing(minimumOnly, 1000, 0)

      assert.strictEqual(drain(nothing, 0), 0)
      assert.strictEqual(drain(minimumOnly, 0), 30)
    })
  )

  it.effect("a silence longer than the window forgets everything", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make({ window: "20 seconds" })
      depositing(budget, 1000, 5)
      drain(budget, 10)

      yield* TestClock.adjust("21 seconds")

      assert.deepStrictEqual(yield* budget.snapshot, { calls: 0, retries: 0, available: 60 })
    })
  )

  it.effect("calls expire bucket by bucket, at the age of the window", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()
      const callsAt: Array<number> = []
      for (let second = 0; second < 20; second++) {
        if (second < 10) depositing(budget, 10, second * 1000)
        yield* TestClock.setTime(second * 1000)
        callsAt.push((yield* budget.snapshot).calls)
      }

      assert.deepStrictEqual(callsAt, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0])
    })
  )

  it.effect("a clock that steps back evicts nothing and gives nothing", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()
      depositing(budget, 50, 3_600_000)
      const before = drain(budget, 3_600_000, 5)

      depositing(budget, 50, 0)
      const after = drain(budget, -1)

      assert.strictEqual(before + after, 50)
    })
  )

  it.effect("a clock that leaps a year ahead, or tells no time at all, leaves it working", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()
      drain(budget, 0)

      depositing(budget, 10, Number.NaN)
      const year = 365 * 24 * 3_600_000
      const taken = drain(budget, year)
      depositing(budget, 10, year)

      assert.strictEqual(taken, 30)
      assert.strictEqual(drain(budget, year), 2)
    })
  )

  it.effect("many fibers at once take no more than there is (failsafe-go: check, then act)", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()

      const taken = yield* Effect.forEach(
        Array.from({ length: 500 }),
        () => Effect.zipRight(Effect.yieldNow(), budget.withdrawal),
        { concurrency: "unbounded" }
      )

      assert.strictEqual(taken.filter((isTaken) => isTaken).length, 30)
    })
  )

  it("a full outage under 10,000 calls of 3 attempts makes at most 1.25 times as many attempts", () =>
    simulate(
      Effect.gen(function* () {
        const policy = yield* RetryPolicy.make({ maxAttempts: 3 })
        const { call, sent } = client(yield* RetryBudget.make(), policy)

        yield* arrivals(10_000, 100, call(down))

        assert.isAtMost(sent.attempts, 12_500)
        assert.isAtLeast(sent.attempts, 12_000)
      })
    ))

  it("after the outage the budget is full again, and single failures are retried (aws-sdk-go-v2#3550)", () =>
    simulate(
      Effect.gen(function* () {
        const policy = yield* RetryPolicy.make({ maxAttempts: 3 })
        const budget = yield* RetryBudget.make()
        const { call, sent } = client(budget, policy)
        yield* arrivals(2000, 100, call(down))

        yield* arrivals(100, 100, call(Effect.succeed("fine")))
        sent.attempts = 0

        let failed = 0
        const onceDown = Effect.suspend(() => {
          let isDown = true
          const provider = Effect.suspend(() => {
            const answer = isDown ? down : Effect.succeed("fine")
            isDown = false
            return answer
          })
          return Effect.tapError(call(provider), () => Effect.sync(() => (failed += 1)))
        })
        yield* arrivals(
          1000,
          100,
          Effect.suspend(() => (sent.attempts % 11 === 0 ? onceDown : call(Effect.succeed("fine"))))
        )

        assert.strictEqual(failed, 0)
        assert.isAbove(sent.attempts, 1080)
      })
    ))

  it("a quiet client, with one call a minute, always gets its retries", () =>
    simulate(
      Effect.gen(function* () {
        const policy = yield* RetryPolicy.make({ maxAttempts: 3 })
        const { call, sent } = client(yield* RetryBudget.make(), policy)

        yield* arrivals(60, 1 / 60, call(down))

        assert.strictEqual(sent.attempts, 180)
      })
    ))

  it.effect("one failing provider does not drain the budget of another (aws-sdk-js-v3#4754)", () =>
    Effect.gen(function* () {
      const failing = yield* RetryBudget.make()
      const healthy = yield* RetryBudget.make()
      drain(failing, 0)

      assert.isFalse(yield* failing.withdrawal)
      assert.isTrue(yield* healthy.withdrawal)
    })
  )

  it.effect("a nested attempt pays in nothing: the budget follows calls alone (finagle#956)", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()
      const { call } = client(budget, yield* RetryPolicy.make({ maxAttempts: 3, baseDelay: 0 }))

      yield* Effect.exit(call(down))

      const { calls, retries } = yield* budget.snapshot
      assert.deepStrictEqual({ calls, retries }, { calls: 1, retries: 2 })
    })
  )

  it.effect("refuses options that make no sense, and says what is allowed", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [string, Record<string, unknown>]> = [
        ...[Number.NaN, Number.POSITIVE_INFINITY, -0.1, 1.1, true, "0.2"].map((share) => ["share", { share }] as const),
        ...[Number.NaN, Number.POSITIVE_INFINITY, -1, true].map(
          (minimumPerSecond) => ["minimumPerSecond", { minimumPerSecond }] as const
        ),
        ...[0, -1, Number.NaN, 999, "forever", true, 2 ** 31].map((window) => ["window", { window }] as const),
        ["ratio", { ratio: 0.2 }]
      ]
      for (const [name, options] of wrong) {
        const error = yield* Effect.flip(RetryBudget.make(options as RetryBudget.Options))
        assert.include(String(error), `retry.budget.${name}`)
      }
      yield* RetryBudget.make({ share: 1, minimumPerSecond: 0.5, window: "1 second" })
    })
  )

  it("agrees with a list of all calls and retries, whatever is asked and when", () => {
    const bucketMillis = 250
    const steps = fc.array(
      fc.record({
        kind: fc.constantFrom("deposit", "deposit", "withdraw", "withdraw"),
        times: fc.integer({ min: 1, max: 20 }),
        after: fc.oneof(fc.constant(0), fc.integer({ min: -500, max: 1500 }), fc.integer({ min: 0, max: 9000 }))
      }),
      { maxLength: 60 }
    )
    fc.assert(
      fc.property(steps, fc.constantFrom(0, 0.1, 0.2, 0.5, 1), fc.constantFrom(0, 1, 3), (steps, share, perSecond) => {
        const budget = Effect.runSync(
          RetryBudget.make({ share, minimumPerSecond: perSecond, window: 10 * bucketMillis })
        )
        const events: Array<{ readonly isCall: boolean; readonly bucket: number }> = []
        let now = 0
        let latest = Number.NEGATIVE_INFINITY
        for (const { kind, times, after } of steps) {
          now += after
          latest = Math.max(latest, Math.floor(now / bucketMillis))
          for (let time = 0; time < times; time++) {
            if (kind === "deposit") {
              budget.deposit(now)
              events.push({ isCall: true, bucket: latest })
            } else {
              const recent = events.filter(({ bucket }) => bucket > latest - 10)
              const calls = recent.filter(({ isCall }) => isCall).length
              const isAllowed = Math.round(1000 * (share * calls + perSecond * 2.5 - (recent.length - calls))) >= 1000
              assert.strictEqual(budget.withdraw(now), isAllowed)
              if (isAllowed) events.push({ isCall: false, bucket: latest })
            }
          }
        }
      }),
      { numRuns: runs }
    )
  })
})
