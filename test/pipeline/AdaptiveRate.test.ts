import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Random, Ref, TestClock } from "effect"
import * as AdaptiveRate from "../../src/pipeline/AdaptiveRate.ts"
import type { Change } from "../../src/pipeline/AdaptiveRateState.ts"
import * as Limiter from "../../src/pipeline/Limiter.ts"
import * as Monotonic from "../../src/pipeline/Monotonic.ts"
import { interruptAtEveryOperation } from "../interruptAt.ts"
import { limitedProvider, type ProviderKind } from "./limitedProvider.ts"
import { runVirtually } from "./virtualTime.ts"

/** A failure that means throttling, with or without a hint. */
interface Throttled {
  readonly retryAfterMillis?: number | undefined
}

const classify = (error: Throttled | "other"): AdaptiveRate.Throttling | undefined =>
  error === "other" ? undefined : { retryAfter: error.retryAfterMillis }

const make = (options: AdaptiveRate.Options = {}, hooks: Partial<AdaptiveRate.Hooks<Throttled | "other">> = {}) =>
  AdaptiveRate.make<Throttled | "other">(options, { classify, ...hooks })

const fail = (retryAfterMillis?: number) => Effect.fail({ retryAfterMillis })

const numberOf = (effect: Effect.Effect<number | undefined>) => Effect.map(effect, (value) => value ?? Number.NaN)

/** Keeps a provider as busy as the rate allows and counts, minute by minute, what was sent and what was throttled. */
const minutesOf = (
  kind: ProviderKind,
  hasHint: boolean,
  phases: ReadonlyArray<readonly [minutes: number, perMinute: number]>,
  seed: string,
  options: AdaptiveRate.Options = {}
) => {
  const minutes = phases.reduce((total, [count]) => total + count, 0)
  const sent = Array.from({ length: minutes }, () => 0)
  const lost = Array.from({ length: minutes }, () => 0)
  const note = (counts: Array<number>, now: number) => {
    const minute = Math.floor(now / 60_000)
    if (minute < minutes) counts[minute] = (counts[minute] ?? 0) + 1
  }
  const simulation = Effect.gen(function* () {
    const adaptive = yield* make({ maxWait: "1 hour", ...options })
    const provider = limitedProvider(kind, phases)
    const call = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      note(sent, now)
      const waitMillis = provider(now)
      const latency = yield* waitMillis > 0 ? Random.nextIntBetween(50, 150) : Random.nextIntBetween(300, 2300)
      yield* Effect.sleep(latency)
      if (waitMillis === 0) return
      note(lost, now)
      return yield* fail(hasHint ? Math.max(1, waitMillis - latency) : undefined)
    })
    const worker = Effect.forever(Effect.exit(adaptive.run(call)))
    yield* Effect.forkAll(Array.from({ length: 14 }, () => worker))
    yield* Effect.sleep(Duration.minutes(minutes))
  })
  const run = runVirtually(Effect.withRandom(Effect.scoped(simulation), Random.make(seed)))
  assert.isTrue(run.exit !== undefined && Exit.isSuccess(run.exit))
  return { sent, lost }
}

/** Lets the test runner breathe: a simulation runs in one piece. */
const breathe = () => Effect.runPromise(Effect.sleep(1))

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((total, number) => total + number, 0)

describe("AdaptiveRate", () => {
  it.effect("limits nothing until the first throttling, which takes what was accepted as its base", () =>
    Effect.gen(function* () {
      const adaptive = yield* make()
      for (let call = 0; call < 120; call++) {
        yield* adaptive.run(Effect.void)
        yield* TestClock.adjust(call < 60 ? 0 : 500)
      }
      const before = yield* adaptive.rate

      yield* Effect.exit(adaptive.run(fail()))

      assert.isUndefined(before)
      // 30 s in: 120 calls, so 240 a minute.
      assert.closeTo(yield* numberOf(adaptive.rate), 240 * 0.85, 1)
    })
  )

  it.effect("ten simultaneous throttlings are one congestion: the rate is cut once", () =>
    Effect.gen(function* () {
      const lowered: Array<Change> = []
      const adaptive = yield* make(
        { initial: 600, burst: 10 },
        { onLowered: (change) => Effect.sync(() => lowered.push(change)) }
      )

      const fibers = yield* Effect.forkAll(
        Array.from({ length: 10 }, (_, index) =>
          Effect.exit(adaptive.run(Effect.zipRight(Effect.sleep(100 + index * 10), fail(5000))))
        )
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fibers)

      // Nothing was accepted before: the cut is the deepest there is.
      assert.deepStrictEqual(lowered, [{ from: 600, to: 300 }])
    })
  )

  it.effect("a call that began after the cut is a new congestion, if another has succeeded in between", () =>
    Effect.gen(function* () {
      const adaptive = yield* make({ initial: 100 })
      const throttledNow = Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now, 1))

      yield* throttledNow
      yield* TestClock.adjust(10)
      yield* throttledNow
      assert.strictEqual(yield* adaptive.rate, 50)
      yield* TestClock.adjust(10)
      yield* Effect.flatMap(Monotonic.millis, adaptive.onSuccess)
      yield* TestClock.adjust(10)
      yield* throttledNow

      assert.closeTo(yield* numberOf(adaptive.rate), 25, 0.1)
    })
  )

  it.effect("a hint blocks until it is over; the waiters come out spread, not together", () =>
    Effect.gen(function* () {
      const adaptive = yield* make({ initial: 120, burst: 5, maxWait: "1 hour" })
      const times: Array<number> = []
      yield* Effect.exit(adaptive.run(fail(30_000)))

      const fiber = yield* Effect.forkAll(
        Array.from({ length: 4 }, () =>
          adaptive.run(Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => times.push(now))))
        )
      )
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)

      assert.isAtLeast(times[0] ?? 0, 30_000)
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
      assert.isTrue(
        gaps.every((gap) => gap > 900),
        gaps.join()
      )
    })
  )

  it.effect("without a hint it pauses for a second, then twice as long each time until a call succeeds", () =>
    Effect.gen(function* () {
      const adaptive = yield* make({ initial: 600, maxWait: 0 })
      const pauses: Array<number> = []
      const blocked = Effect.map(Effect.flip(adaptive.run(Effect.succeed(1))), (error) =>
        typeof error === "object" && "wait" in error ? Duration.toMillis(error.wait) : Number.NaN
      )
      for (let round = 0; round < 8; round++) {
        yield* Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now))
        const wait = yield* blocked
        pauses.push(wait)
        yield* TestClock.adjust(wait + 1000)
      }
      yield* adaptive.run(Effect.void)
      yield* TestClock.adjust(1000)
      yield* Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now))
      pauses.push(yield* blocked)

      assert.deepStrictEqual(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 1000])
    })
  )

  it.effect("the rate rises only while it is used", () =>
    Effect.gen(function* () {
      const adaptive = yield* make({ initial: 60, maxWait: "1 minute" })
      const busy = Effect.repeatN(adaptive.run(Effect.void), 59)
      for (let minute = 0; minute < 3; minute++) {
        for (let call = 0; call < 10; call++) {
          yield* adaptive.run(Effect.void)
          yield* TestClock.adjust("6 seconds")
        }
      }
      const afterIdling = yield* adaptive.rate

      const fiber = yield* Effect.fork(busy)
      yield* TestClock.adjust("2 minutes")
      yield* Fiber.join(fiber)

      assert.strictEqual(afterIdling, 60)
      assert.isAbove(yield* numberOf(adaptive.rate), 60)
    })
  )

  it.effect("stays between floor and ceiling", () =>
    Effect.gen(function* () {
      const adaptive = yield* make({ floor: 20, ceiling: 100 })
      const rates: Array<number> = []
      for (let round = 0; round < 6; round++) {
        yield* TestClock.adjust("1 minute")
        yield* Effect.flatMap(Monotonic.millis, adaptive.onSuccess)
        yield* TestClock.adjust(1)
        yield* Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now, 1))
        rates.push(yield* numberOf(adaptive.rate))
      }
      yield* TestClock.adjust(1)
      for (let call = 0; call < 5000; call++) {
        yield* Effect.flatMap(Monotonic.millis, adaptive.onSuccess)
      }

      assert.deepStrictEqual(rates.slice(-2), [20, 20])
      assert.strictEqual(yield* adaptive.rate, 100)
    })
  )

  it.effect("other failures, defects and interruptions change nothing", () =>
    Effect.gen(function* () {
      const adaptive = yield* make({ initial: 600, burst: 10 })

      yield* Effect.exit(adaptive.run(Effect.fail("other" as const)))
      yield* Effect.exit(adaptive.run(Effect.die("bug")))
      yield* Effect.exit(adaptive.run(Effect.interrupt))

      assert.strictEqual(yield* adaptive.rate, 600)
      assert.strictEqual((yield* adaptive.limiter.snapshot).inFlight, 0)
    })
  )

  it.effect("hints that make no sense count as none", () =>
    Effect.gen(function* () {
      for (const hint of [Number.NaN, -5, 0, Number.POSITIVE_INFINITY]) {
        const adaptive = yield* make({ initial: 600, maxWait: 0 })
        yield* TestClock.adjust(1)
        yield* Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now, hint))

        const error = yield* Effect.flip(adaptive.run(Effect.void))

        assert.strictEqual("wait" in error ? Duration.toMillis(error.wait) : 0, 1000, `${hint}`)
      }
    })
  )

  it.effect("the callbacks are told after the fact, and a defect in them breaks nothing", () =>
    Effect.gen(function* () {
      const seen = yield* Ref.make<ReadonlyArray<readonly [Change, number | undefined]>>([])
      let rate: Effect.Effect<number | undefined> = Effect.succeed(undefined)
      const note = (change: Change) =>
        Effect.zipRight(
          Effect.flatMap(
            Effect.suspend(() => rate),
            (now) => Ref.update(seen, (all) => [...all, [change, now] as const])
          ),
          Effect.die("a bug in the listener")
        )
      const adaptive = yield* make({ initial: 60, burst: 100 }, { onLowered: note, onRaised: note })
      rate = adaptive.rate
      for (let call = 0; call < 40; call++) yield* adaptive.run(Effect.void)

      yield* Effect.exit(adaptive.run(fail(1)))

      const changes = yield* Ref.get(seen)
      assert.isAbove(changes.length, 2)
      assert.isTrue(changes.every(([change, now]) => change.to === now))
      assert.isBelow(changes.at(-1)?.[0].to ?? 0, changes.at(-1)?.[0].from ?? 0)
    })
  )

  it.effect("steers a limiter that it is given, which keeps its own burst", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60, burst: 3 }, concurrency: 2 })
      const adaptive = yield* make({ ceiling: 60 }, { limiter })

      yield* Effect.exit(adaptive.run(fail(1)))
      yield* TestClock.adjust("10 minutes")

      assert.strictEqual(yield* adaptive.rate, 30)
      assert.strictEqual((yield* limiter.snapshot).requestsLeft, 3)
    })
  )

  it.effect("a clock that steps back an hour or forward a year does not stop it from learning", () =>
    Effect.gen(function* () {
      for (const jump of [-3_600_000, 365 * 24 * 3_600_000]) {
        yield* TestClock.setTime(5_000_000)
        const adaptive = yield* make({ initial: 100, burst: 100 })
        yield* Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now, 1))
        yield* TestClock.setTime(5_000_000 + jump)

        for (let round = 0; round < 3; round++) {
          yield* TestClock.adjust(10)
          yield* Effect.flatMap(Monotonic.millis, adaptive.onSuccess)
          yield* TestClock.adjust(10)
          yield* Effect.flatMap(Monotonic.millis, (now) => adaptive.onThrottled(now, 1))
        }

        assert.isBelow(yield* numberOf(adaptive.rate), 20)
      }
    })
  )

  it("keeps nothing of a call that is interrupted at any of its operations", async () => {
    await interruptAtEveryOperation(() => {
      const adaptive = Effect.runSync(make({ initial: 600, burst: 10 }))
      return {
        run: Effect.zipRight(adaptive.run(Effect.void), adaptive.run(fail(1))),
        check: (_, operation) =>
          assert.deepStrictEqual(Effect.runSync(adaptive.limiter.snapshot).inFlight, 0, `operation ${operation}`)
      }
    })
  })

  const kinds: ReadonlyArray<ProviderKind> = ["fixed window", "sliding window", "bucket"]
  const loops = kinds.flatMap((kind) => [true, false].map((hasHint) => [kind, hasHint] as const))

  it.each(loops)(
    "closed loop, %s, hints %s: comes within 10 %% of the limit and loses less than 2 %%",
    async (kind, hasHint) => {
      for (const [perMinute, minutes] of [
        [30, 60],
        [60, 45],
        [300, 24]
      ] as const) {
        await breathe()
        const { sent, lost } = minutesOf(kind, hasHint, [[minutes, perMinute]], `${kind} ${perMinute}`)
        const rate = sum(sent.slice(12)) / (minutes - 12)
        const share = sum(lost.slice(12)) / sum(sent.slice(12))
        const said = `${kind}, hints ${hasHint}, ${perMinute} a minute: sent ${rate}, lost ${(share * 100).toFixed(2)} %`
        if (process.env.LLMFUSE_MODEL_RUNS !== undefined) console.log(said)
        assert.closeTo(rate / perMinute, 1, 0.1, said)
        assert.isBelow(share, 0.02, said)
      }
    }
  )

  it.each(loops)("closed loop, %s, hints %s: follows a limit that rises and one that falls", (kind, hasHint) => {
    for (const [before, after, measured] of [
      [60, 300, 12],
      [300, 60, 25]
    ] as const) {
      const { sent, lost } = minutesOf(
        kind,
        hasHint,
        [
          [10, before],
          [12 + measured, after]
        ],
        `${kind} ${after}`
      )
      const rate = sum(sent.slice(-measured)) / measured
      const share = sum(lost.slice(-measured)) / sum(sent.slice(-measured))
      const said = `${kind}, hints ${hasHint}, ${before} to ${after}: sent ${rate}, lost ${(share * 100).toFixed(2)} %`
      if (process.env.LLMFUSE_MODEL_RUNS !== undefined) console.log(said)
      assert.closeTo(rate / after, 1, 0.1, said)
      assert.isBelow(share, 0.02, said)
    }
  })

  it("refuses every option that is not what it should be, and names it", () => {
    const poison = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, true, "5", {}]
    const wrong = [
      ...["initial", "floor", "ceiling", "decrease", "increase", "burst", "interval"].flatMap((option) =>
        poison
          .filter((value) => option !== "interval" || value !== "5")
          .map((value) => [option, { [option]: value }] as const)
      ),
      ["decrease", { decrease: 0.4 }],
      ["decrease", { decrease: 0.91 }],
      ["increase", { increase: 1.1 }],
      ["burst", { burst: 1.5 }],
      ["maxWait", { maxWait: -1 }],
      ["ceiling", { floor: 10, ceiling: 9 }],
      ["initial", { initial: 11, ceiling: 10 }],
      ["initial", { initial: 1, floor: 2 }],
      ["rate", { rate: 1 }]
    ] as const
    for (const [option, options] of wrong) {
      const exit = Effect.runSyncExit(make(options as AdaptiveRate.Options))
      assert.isTrue(Exit.isFailure(exit), JSON.stringify(options))
      assert.include(String(exit), `adaptive.${option} is `)
    }
  })
})
