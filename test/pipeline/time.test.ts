/**
 * Clocks that step: the wall clock goes back an hour, and the monotonic clock leaps a year ahead, which it should not, but
 * does after the sleep of a machine or a move of a virtual one. Nothing sticks, nothing overflows, and waits stay finite.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Clock, Data, DateTime, Duration, Effect, Exit, Random } from "effect"
import {
  AdaptiveRate,
  Bulkhead,
  Cache,
  CircuitBreaker,
  CircuitOpenError,
  Deadline,
  DeadlineExceededError,
  fallback,
  Limiter,
  RateLimitError,
  RetryBudget,
  RetryPolicy,
  retry,
  ThrottledError,
  TokenBucket
} from "llmfuse"
import { attemptTimeout } from "../../src/pipeline/AttemptTimeout.ts"
import { hedge } from "../../src/pipeline/Hedge.ts"
import { ManualTime } from "./manualTime.ts"

class Down extends Data.TaggedError("Down") {}

const down: Effect.Effect<never, Down> = Effect.suspend(() => Effect.fail(new Down()))

const maxTimerMillis = 2 ** 31 - 1
const hour = 3_600_000
const year = 365 * 24 * hour

/** Time whose wall clock can be set apart from its monotonic one. */
class SteppingTime {
  readonly manual = new ManualTime()
  #wallMillis = 0

  constructor() {
    // Far enough from zero that an hour back is still a time.
    this.manual.jump(10 * hour)
  }

  readonly #stepped = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.clockWith((clock) => {
      const wall = () => clock.unsafeCurrentTimeMillis() + this.#wallMillis
      const apart: Clock.Clock = { ...clock, unsafeCurrentTimeMillis: wall, currentTimeMillis: Effect.sync(wall) }
      return Effect.withClock(effect, apart)
    })

  fork<A, E>(effect: Effect.Effect<A, E>) {
    return this.manual.fork(this.#stepped(effect))
  }

  run<A, E>(effect: Effect.Effect<A, E>): A {
    return this.manual.run(this.#stepped(effect))
  }

  /** How an effect that does not wait has ended. */
  exitOf<A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> {
    return this.run(Effect.exit(effect))
  }

  advance(millis: number): void {
    this.manual.advance(millis)
  }

  stepWall(millis: number): void {
    this.#wallMillis += millis
  }

  leap(millis: number): void {
    this.manual.jump(millis)
  }
}

const steps = [
  { name: "the wall clock goes back an hour", isLeap: false, step: (time: SteppingTime) => time.stepWall(-hour) },
  { name: "the wall clock goes a year ahead", isLeap: false, step: (time: SteppingTime) => time.stepWall(year) },
  { name: "all time leaps a year ahead", isLeap: true, step: (time: SteppingTime) => time.leap(year) }
]

describe.each(steps)("time: $name", ({ isLeap, step }) => {
  it("an open circuit stays open no longer than it should, and says so", () => {
    const time = new SteppingTime()
    const breaker = time.run(CircuitBreaker.make<Down>({ failureThreshold: 1, resetTimeout: "30 seconds" }))
    time.exitOf(breaker.protect(down))

    step(time)
    if (!isLeap) {
      time.advance(29_999)
      const error = time.run(Effect.flip(breaker.protect(Effect.void)))
      assert.instanceOf(error, CircuitOpenError)
      assert.deepStrictEqual(error.retryAfter, Duration.millis(1))
      time.advance(1)
    }
    const { since, openUntil } = time.run(breaker.snapshot)
    const wall = time.run(DateTime.now)
    const exit = time.exitOf(breaker.protect(Effect.void))

    assert.isTrue(Exit.isSuccess(exit))
    assert.strictEqual(time.run(breaker.state), "Closed")
    assert.isAtMost(DateTime.toEpochMillis(since), DateTime.toEpochMillis(wall))
    assert(openUntil !== undefined)
    assert.strictEqual(DateTime.toEpochMillis(openUntil) - DateTime.toEpochMillis(since), 30_000)
  })

  it("a circuit counts on, and forgets by age alone", () => {
    const time = new SteppingTime()
    const failureRate = { threshold: 0.5, minimumCalls: 4, window: "1 minute" } as const
    const breaker = time.run(CircuitBreaker.make<Down>({ failureThreshold: 100, failureRate }))
    for (let call = 0; call < 3; call++) time.exitOf(breaker.protect(down))

    step(time)
    const callsAfter = time.run(breaker.snapshot).failureRate?.calls
    time.exitOf(breaker.protect(down))
    const stateAfterOne = time.run(breaker.state)
    for (let call = 0; call < 3; call++) time.exitOf(breaker.protect(down))

    assert.strictEqual(callsAfter, isLeap ? 0 : 3)
    assert.strictEqual(stateAfterOne, isLeap ? "Closed" : "Open")
    assert.strictEqual(time.run(breaker.state), "Open")
  })

  it("those who wait at a limiter are served in their time, and the burst is not exceeded afterwards", () => {
    const time = new SteppingTime()
    const limiter = time.run(
      Limiter.make({ requests: { limit: 60, burst: 2 }, tokens: { limit: 600, burst: 100 }, maxWait: "1 minute" })
    )
    let served = 0
    const call = limiter.withRoom({ tokens: 1 }, () => Effect.sync(() => void served++))
    const fibers = Array.from({ length: 5 }, () => time.fork(call))
    assert.strictEqual(served, 2)

    step(time)
    time.advance(3000)
    const servedLater = served
    const areThrough = fibers.every((fiber) => fiber.unsafePoll() !== null)
    for (let count = 0; count < 10; count++) time.exitOf(limiter.withRoom({ atMost: Duration.zero }, () => call))
    const { requestsLeft = Number.NaN, tokensLeft = Number.NaN, inFlight, queued } = time.run(limiter.snapshot)

    assert.isTrue(areThrough)
    // After a leap of all time one of them may find that it has waited too long.
    assert.isAtLeast(servedLater, isLeap ? 3 : 5)
    assert.isAtMost(served - servedLater, 2)
    assert.isTrue(requestsLeft >= 0 && requestsLeft <= 2 && tokensLeft >= 0 && tokensLeft <= 100)
    assert.deepStrictEqual([inFlight, queued], [0, 0])
  })

  it("a token bucket holds no more than its burst, and its waits are finite", () => {
    const time = new SteppingTime()
    const bucket = time.run(TokenBucket.make({ limit: 60, burst: 3, maxWait: "10 seconds" }))
    time.run(bucket.take(3))
    const waiter = time.fork(bucket.take())

    step(time)
    time.advance(1000)
    const hasWaited = waiter.unsafePoll()
    const available = time.run(bucket.available)
    time.run(bucket.take(Math.floor(available)).pipe(Effect.when(() => available >= 1)))
    const next = time.fork(bucket.take())
    time.advance(1000)

    assert(hasWaited !== null && Exit.isSuccess(hasWaited))
    assert.isTrue(available >= 0 && available <= 3)
    assert(Exit.isSuccess(next.unsafePoll() ?? assert.fail("it still waits")))
  })

  it("a place for which somebody waits is handed over, or refused in time", () => {
    const time = new SteppingTime()
    const bulkhead = time.run(Bulkhead.make({ concurrency: 1, maxWait: "10 seconds" }))
    time.fork(bulkhead.withPermit(Effect.sleep("5 seconds")))
    const lucky = time.fork(bulkhead.withPermit(Effect.never))
    const unlucky = time.fork(Effect.flip(bulkhead.withPermit(Effect.void)))

    step(time)
    time.advance(10_000)
    const exit = unlucky.unsafePoll()

    assert.isNull(lucky.unsafePoll())
    assert(exit !== null && Exit.isSuccess(exit))
    assert.instanceOf(exit.value, ThrottledError)
    assert.deepStrictEqual(time.run(bulkhead.snapshot), { inFlight: 1, queued: 0 })
  })

  it("an adaptive rate goes on after its pause, and still learns", () => {
    const time = new SteppingTime()
    const hooks = { classify: () => ({ retryAfter: 5000 }) }
    const options = { initial: 600, floor: 10, ceiling: 1000, burst: 1, maxWait: "10 seconds" } as const
    const adaptive = time.run(AdaptiveRate.make<Down>(options, hooks))
    time.exitOf(adaptive.run(down))
    const cut = time.run(adaptive.rate) ?? Number.NaN
    const waiter = time.fork(adaptive.run(Effect.void))

    step(time)
    time.advance(5200)
    const hasWaited = waiter.unsafePoll()
    for (let call = 0; call < 50; call++) {
      time.advance(200)
      time.fork(adaptive.run(Effect.void))
    }
    time.advance(10_000)
    const risen = time.run(adaptive.rate) ?? Number.NaN
    time.exitOf(adaptive.run(down))

    assert(hasWaited !== null && Exit.isSuccess(hasWaited))
    assert.isTrue(risen >= cut && risen <= 1000)
    assert.isBelow(time.run(adaptive.rate) ?? Number.NaN, risen)
  })

  it("a cache serves by age alone, and no age is negative", () => {
    const time = new SteppingTime()
    const cache = time.run(Cache.make<string>({ ttl: "10 seconds" }))
    time.run(cache.through("key", Effect.succeed("old")))
    time.advance(4000)

    step(time)
    const now = time.run(cache.through("key", Effect.succeed("new")))
    time.advance(isLeap ? 10_000 : 6000)
    const later = time.run(cache.through("key", Effect.succeed("newer")))

    assert.deepStrictEqual(now, {
      value: isLeap ? "new" : "old",
      source: isLeap ? "miss" : "fresh",
      ageMillis: isLeap ? 0 : 4000
    })
    assert.deepStrictEqual(later, { value: "newer", source: "miss", ageMillis: 0 })
  })

  it("a hedge starts after its delay, and the first answer wins", () => {
    const time = new SteppingTime()
    const asked: Array<number> = []
    const race = hedge(
      [3000, 500],
      (millis, position) => {
        asked.push(position)
        return Effect.delay(Effect.succeed(position), millis)
      },
      { delay: 1000, onExhausted: () => new Down() }
    )

    const fiber = time.fork(race)
    step(time)
    time.advance(999)
    const askedBefore = [...asked]
    time.advance(501)

    assert.deepStrictEqual([askedBefore, asked], [[0], [0, 1]])
    assert.deepStrictEqual(fiber.unsafePoll(), Exit.succeed(1))
    assert.strictEqual(time.manual.timers, 0)
  })

  it("a deadline comes in its time, and what is left of it is never negative", () => {
    const time = new SteppingTime()
    const left: Array<number> = []
    const look = Effect.map(Deadline.remaining, (duration) => void left.push(Duration.toMillis(duration)))
    const body = look.pipe(Effect.zipRight(Effect.sleep(4000)), Effect.zipRight(look), Effect.zipRight(Effect.never))

    const fiber = time.fork(Effect.flip(Deadline.withDeadline("10 seconds")(body)))
    step(time)
    time.advance(9999)
    const early = fiber.unsafePoll()
    time.advance(1)
    const exit = fiber.unsafePoll()

    assert.isNull(early)
    assert(exit !== null && Exit.isSuccess(exit))
    assert.instanceOf(exit.value, DeadlineExceededError)
    assert.deepStrictEqual(left, [10_000, isLeap ? 0 : 6000])
  })

  it("a budget of retries gives back by age alone, and never more than it has", () => {
    const time = new SteppingTime()
    const budget = time.run(RetryBudget.make({ share: 0.2, minimumPerSecond: 1, window: "10 seconds" }))
    const drain = () => {
      let taken = 0
      while (time.run(budget.withdrawal)) taken += 1
      return taken
    }
    assert.strictEqual(drain(), 10)

    step(time)
    const takenAfter = drain()
    time.advance(11_000)
    const takenLater = drain()

    assert.strictEqual(takenAfter, isLeap ? 10 : 0)
    assert.strictEqual(takenLater, 10)
  })

  it("a retry comes after its wait, a time limit after its time, and the fallback after that", () => {
    const time = new SteppingTime()
    const ranAt: Array<number> = []
    const policy = time.run(RetryPolicy.make({ baseDelay: "2 seconds", maxAttempts: 2, jitter: "none" }))
    const hanging = Effect.suspend(() => {
      ranAt.push(time.manual.nowMillis)
      return Effect.never
    })
    const call = hanging.pipe(
      attemptTimeout("3 seconds", () => new Down()),
      retry(policy),
      fallback(() => Effect.succeed("instead"))
    )

    const fiber = time.fork(call)
    step(time)
    const start = time.manual.nowMillis
    time.advance(8000)

    assert.deepStrictEqual(fiber.unsafePoll(), Exit.succeed("instead"))
    assert.strictEqual((ranAt[1] ?? Number.NaN) - start, 5000)
    assert.strictEqual(time.manual.timers, 0)
  })
})

describe("time: beyond what a timer can wait, 2^31-1 ms", () => {
  const tooLong = [2 ** 31, year, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]

  it("a circuit that is told to open for longer opens for the longest time, not for none", () => {
    for (const openForMillis of tooLong) {
      const time = new SteppingTime()
      const breaker = time.run(CircuitBreaker.make<Down>({}, { classify: () => ({ openForMillis }) }))
      time.exitOf(breaker.protect(down))

      const error = time.run(Effect.flip(breaker.protect(Effect.void)))
      time.advance(maxTimerMillis)

      assert.instanceOf(error, CircuitOpenError)
      assert.deepStrictEqual(error.retryAfter, Duration.millis(maxTimerMillis))
      assert.isTrue(Exit.isSuccess(time.exitOf(breaker.protect(Effect.void))))
    }
  })

  it("a hint that is longer ends the retries, and waits for nothing", () => {
    for (const millis of tooLong) {
      const time = new SteppingTime()
      const limited = new RateLimitError({ provider: "groq", retryAfter: Duration.millis(millis) })
      const policy = time.run(RetryPolicy.make({ maxDelay: maxTimerMillis }))

      const exit = time.exitOf(retry(Effect.fail(limited), policy))

      assert.deepStrictEqual(exit, Exit.fail(limited))
      assert.strictEqual(time.manual.timers, 0)
    }
  })

  it("with jitter on top of the longest hint the wait is still one that a timer can wait", () => {
    const time = new SteppingTime()
    const limited = new RateLimitError({ provider: "groq", retryAfter: Duration.millis(maxTimerMillis) })
    const policy = time.run(RetryPolicy.make({ baseDelay: maxTimerMillis, maxDelay: maxTimerMillis, maxAttempts: 2 }))
    let runs = 0
    const failing = Effect.suspend(() => {
      runs += 1
      return Effect.fail(limited)
    })

    const fiber = time.fork(Effect.flip(Effect.withRandom(retry(failing, policy), Random.make("jitter"))))
    time.advance(maxTimerMillis - 1)
    const runsBefore = runs
    time.advance(1)

    assert.deepStrictEqual([runsBefore, runs], [1, 2])
    assert.isNotNull(fiber.unsafePoll())
  })

  it("a bucket that would have to be waited for so long refuses at once, with a finite wait", () => {
    const time = new SteppingTime()
    const bucket = time.run(TokenBucket.make({ limit: 1, interval: "24 days", burst: 100, maxWait: maxTimerMillis }))
    time.run(bucket.take(100))

    const error = time.run(Effect.flip(bucket.take(100)))

    assert.instanceOf(error, ThrottledError)
    assert.strictEqual(Duration.toMillis(error.wait), 100 * Duration.toMillis("24 days"))
    assert.strictEqual(time.manual.timers, 0)
  })

  it("an adaptive rate and a limiter that are told to pause for longer pause for a day", () => {
    for (const millis of tooLong.filter(Number.isFinite)) {
      const time = new SteppingTime()
      const limiter = time.run(Limiter.make({ requests: { limit: 60, burst: 1 }, maxWait: "2 days" }))
      const classify = () => ({ retryAfter: Duration.millis(millis) })
      const adaptive = time.run(AdaptiveRate.make<Down>({ initial: 60, maxWait: "2 days" }, { classify }))
      time.run(limiter.blockFor(Duration.millis(millis)))
      time.exitOf(adaptive.run(down))

      const fibers = [time.fork(limiter.withRoom({}, () => Effect.void)), time.fork(adaptive.run(Effect.void))]
      time.advance(24 * hour - 1)
      const early = fibers.map((fiber) => fiber.unsafePoll())
      time.advance(10_000)

      assert.deepStrictEqual(early, [null, null])
      assert.isTrue(fibers.every((fiber) => fiber.unsafePoll() !== null))
    }
  })

  it.live("a deadline, a time limit and a hedge that are so far off do not come at once", () =>
    Effect.gen(function* () {
      const answer = Effect.delay(Effect.succeed("in time"), "20 millis")
      for (const millis of tooLong) {
        const withDeadline = yield* Deadline.withDeadline(Duration.millis(millis))(answer)
        const withLimit = yield* attemptTimeout(Duration.millis(millis), () => new Down())(answer)
        const hedged = yield* hedge([answer, Effect.succeed("hedge")], (candidate) => candidate, {
          delay: millis,
          onExhausted: () => new Down()
        })

        assert.deepStrictEqual([withDeadline, withLimit, hedged], ["in time", "in time", "in time"])
      }
    })
  )

  it("no option takes such a time", () => {
    const time = new SteppingTime()
    for (const millis of [2 ** 31, year, Number.POSITIVE_INFINITY]) {
      const long = Duration.millis(millis)
      const made: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        CircuitBreaker.make({ resetTimeout: long }),
        RetryPolicy.make({ maxDelay: long }),
        RetryBudget.make({ window: long }),
        Limiter.make({ maxWait: long }),
        TokenBucket.make({ limit: 1, interval: long }),
        Bulkhead.make({ concurrency: 1, maxWait: long }),
        AdaptiveRate.make({ interval: long }, { classify: () => undefined }),
        Cache.make({ ttl: long })
      ]

      assert.isTrue(made.every((effect) => Exit.isFailure(time.exitOf(effect))))
    }
  })
})
