import { assert, describe, it } from "@effect/vitest"
import { Data, DateTime, Deferred, Duration, Effect, Exit, Fiber, Random, TestClock } from "effect"
import { CircuitBreaker, CircuitOpenError } from "llmfuse"

class Down extends Data.TaggedError("Down") {}
class Asked extends Data.TaggedError("Asked")<{ readonly forMillis: number }> {}

type Failure = Down | Asked

const down: Effect.Effect<never, Failure> = Effect.suspend(() => Effect.fail(new Down()))
const asked = (forMillis: number): Effect.Effect<never, Failure> =>
  Effect.suspend(() => Effect.fail(new Asked({ forMillis })))

const make = (options: CircuitBreaker.Options = {}, hooks: CircuitBreaker.Hooks<Failure> = {}) =>
  CircuitBreaker.make<Failure>(options, {
    classify: (error) => (error._tag === "Asked" ? { openForMillis: error.forMillis } : "failure"),
    ...hooks
  })

type Breaker = CircuitBreaker.CircuitBreaker<Failure>

const fail = (breaker: Breaker, times: number) => Effect.repeatN(Effect.exit(breaker.protect(down)), times - 1)
const succeed = (breaker: Breaker, times: number) =>
  Effect.repeatN(Effect.exit(breaker.protect(Effect.void)), times - 1)
const take = (breaker: Breaker, duration: Duration.DurationInput) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(Effect.exit(breaker.protect(Effect.sleep(duration))))
    yield* TestClock.adjust(duration)
    yield* Fiber.join(fiber)
  })

/** How many of so many calls in a row are let through. */
const admitted = (breaker: Breaker, calls: number) =>
  Effect.map(
    Effect.forEach(Array.from({ length: calls }), () => Effect.exit(breaker.protect(Effect.void))),
    (exits) => exits.filter(Exit.isSuccess).length
  )

/** How long the circuit, which is open, stays so. */
const openMillis = (breaker: Breaker) =>
  Effect.map(Effect.flip(breaker.protect(Effect.void)), (error) =>
    error instanceof CircuitOpenError && error.retryAfter !== undefined
      ? Duration.toMillis(error.retryAfter)
      : assert.fail(`${error._tag}`)
  )

describe("CircuitBreaker by the share of failures", () => {
  const options = {
    failureThreshold: 1000,
    failureRate: { threshold: 0.5, window: "10 seconds", minimumCalls: 4 }
  } as const

  it.effect("opens when the share of failures in the window reaches the threshold", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      yield* succeed(breaker, 3)
      yield* fail(breaker, 2)
      const before = yield* breaker.state
      yield* fail(breaker, 1)

      assert.strictEqual(before, "Closed")
      assert.strictEqual(yield* breaker.state, "Open")
      assert.strictEqual((yield* breaker.snapshot).reason, "failure-rate")
    })
  )

  it.effect("1 of 1 calls failed is no share to open by: it wants the minimum of calls (litellm PR#17464)", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      yield* fail(breaker, 3)
      const before = yield* breaker.state
      yield* fail(breaker, 1)

      assert.strictEqual(before, "Closed")
      assert.strictEqual(yield* breaker.state, "Open")
    })
  )

  it.effect("failures older than the window do not count", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      yield* fail(breaker, 3)
      yield* TestClock.adjust("10 seconds")
      yield* fail(breaker, 3)

      assert.strictEqual(yield* breaker.state, "Closed")
      assert.deepStrictEqual((yield* breaker.snapshot).failureRate, { rate: 1, calls: 3 })
    })
  )

  it.effect("a silence longer than the window is forgotten in the snapshot too", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)
      yield* fail(breaker, 3)

      yield* TestClock.adjust("365 days")

      assert.deepStrictEqual((yield* breaker.snapshot).failureRate, { rate: 0, calls: 0 })
    })
  )

  it.effect("after it has closed the window begins empty (envoy#40697)", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, resetTimeout: "1 second" })
      yield* fail(breaker, 4)
      yield* TestClock.adjust("1 second")
      yield* succeed(breaker, 1)

      yield* fail(breaker, 3)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("the consecutive rule stands beside it", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, failureThreshold: 3 })
      yield* succeed(breaker, 100)

      yield* fail(breaker, 3)

      assert.strictEqual(yield* breaker.state, "Open")
      assert.strictEqual((yield* breaker.snapshot).reason, "consecutive-failures")
    })
  )

  it.effect("what is nobody's fault is in no window", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options, { classify: (error) => (error._tag === "Asked" ? "ignored" : "failure") })

      yield* Effect.repeatN(Effect.exit(breaker.protect(asked(0))), 9)
      yield* Effect.repeatN(Effect.exit(breaker.protect(Effect.die("a bug"))), 9)
      yield* Effect.repeatN(Effect.exit(breaker.protect(Effect.interrupt)), 9)

      assert.deepStrictEqual((yield* breaker.snapshot).failureRate, { rate: 0, calls: 0 })
    })
  )
})

describe("CircuitBreaker by the share of slow calls", () => {
  const options = {
    slowCall: { slowerThan: "2 seconds", threshold: 0.5, window: "1 minute", minimumCalls: 2 }
  } as const

  it.effect("opens when too many calls are slower than the limit, whatever they end with", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      yield* take(breaker, "2 seconds")
      yield* take(breaker, "3 seconds")

      assert.strictEqual(yield* breaker.state, "Open")
      assert.strictEqual((yield* breaker.snapshot).reason, "slow-calls")
    })
  )

  it.effect("a call that takes exactly the limit is not slow", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      for (const _ of [1, 2, 3, 4]) yield* take(breaker, "2 seconds")

      assert.strictEqual(yield* breaker.state, "Closed")
      assert.deepStrictEqual((yield* breaker.snapshot).slowCall, { rate: 0, calls: 4 })
    })
  )

  it.effect("a probe that is slow opens the circuit again", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, failureThreshold: 1 })
      yield* fail(breaker, 1)
      yield* TestClock.adjust("30 seconds")

      yield* take(breaker, "5 seconds")

      const { state, reason, openedBy } = yield* breaker.snapshot
      assert.deepStrictEqual([state, reason], ["Open", "probe"])
      assert.instanceOf(openedBy, Down)
    })
  )

  it.effect("where the callee began to answer in time the call is not slow, however long the answer is", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)
      const call = (answeredAtMillis: number) =>
        breaker.withPermit(
          () => Effect.sleep("1 minute"),
          () => answeredAtMillis
        )

      const fiber = yield* Effect.fork(Effect.all([call(2000), call(1000), call(500)], { concurrency: 3 }))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )
})

describe("CircuitBreaker that opens again", () => {
  const options = { failureThreshold: 1, resetTimeout: "10 seconds" } as const

  /** The open times of so many openings with a failed probe between each and the next. */
  const openTimes = (breaker: Breaker, openings: number) =>
    Effect.gen(function* () {
      const times: Array<number> = []
      for (let opening = 0; opening < openings; opening++) {
        yield* fail(breaker, 1)
        times.push(yield* openMillis(breaker))
        yield* TestClock.adjust(times.at(-1) ?? 0)
      }
      return times
    })

  it.effect("stays open as long each time, unless asked otherwise", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      assert.deepStrictEqual(yield* openTimes(breaker, 3), [10_000, 10_000, 10_000])
    })
  )

  it.effect("stays open longer each time up to the cap, and begins anew after it has closed (envoy#26758)", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, reopening: { multiplier: 2, maxTimeout: "1 minute" } })

      const times = yield* openTimes(breaker, 5)
      yield* succeed(breaker, 1)
      const again = yield* openTimes(breaker, 1)

      assert.deepStrictEqual(times, [10_000, 20_000, 40_000, 60_000, 60_000])
      assert.deepStrictEqual(again, [10_000])
    })
  )

  it.effect("with jitter it stays open up to so much longer, never shorter", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, reopening: { multiplier: 1, jitter: 0.5 } })

      const times = yield* Effect.withRandom(openTimes(breaker, 30), Random.make("jitter"))

      assert.isTrue(times.every((time) => time >= 10_000 && time < 15_000))
      assert.isTrue(new Set(times).size > 20)
    })
  )

  it.effect("a cap below the reset timeout does not shorten it", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, reopening: { maxTimeout: "1 second" } })

      assert.deepStrictEqual(yield* openTimes(breaker, 2), [10_000, 10_000])
    })
  )

  it.effect("grows to no more than a timer can wait, after any number of openings", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ ...options, reopening: { multiplier: 1e6, maxTimeout: 2 ** 31 - 1, jitter: 1 } })

      const times = yield* openTimes(breaker, 20)

      assert.isTrue(times.every((time) => time >= 10_000 && time <= 2 ** 31 - 1))
    })
  )
})

describe("CircuitBreaker with a hint", () => {
  const options = { failureThreshold: 5, resetTimeout: "10 seconds" } as const
  const pending = (breaker: Breaker, ending: Effect.Effect<never, Failure>) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(Effect.exit(breaker.protect(Effect.zipRight(Deferred.await(gate), ending))))
      yield* Effect.yieldNow()
      return Effect.zipRight(Deferred.succeed(gate, undefined), Fiber.join(fiber))
    })

  it.effect("opens at once, until the moment of the hint", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      yield* Effect.exit(breaker.protect(asked(3000)))

      assert.strictEqual(yield* openMillis(breaker), 3000)
      assert.strictEqual((yield* breaker.snapshot).reason, "immediate")
    })
  )

  it.effect("a longer hint that comes while it is open keeps it open for longer (litellm#40130)", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)
      const late = yield* pending(breaker, asked(60_000))
      yield* Effect.exit(breaker.protect(asked(20_000)))

      yield* late

      assert.strictEqual(yield* openMillis(breaker), 60_000)
    })
  )

  it.effect("a shorter hint that comes while it is open changes nothing", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)
      const late = yield* pending(breaker, asked(5000))
      yield* Effect.exit(breaker.protect(asked(20_000)))

      yield* late

      assert.strictEqual(yield* openMillis(breaker), 20_000)
    })
  )

  it.effect("a hint from two states ago changes nothing", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)
      const late = yield* pending(breaker, asked(60_000))
      yield* Effect.exit(breaker.protect(asked(20_000)))
      yield* TestClock.adjust("20 seconds")
      yield* fail(breaker, 1)

      yield* late

      assert.strictEqual(yield* openMillis(breaker), 10_000)
    })
  )

  it.effect.each([
    [Number.NaN, 10_000],
    [-5, 0],
    [Number.POSITIVE_INFINITY, 2 ** 31 - 1]
  ])("a hint of %s ms is safe", ([hint = 0, expected]) =>
    Effect.gen(function* () {
      const breaker = yield* make(options)

      yield* Effect.exit(breaker.protect(asked(hint)))

      const { openUntil } = yield* breaker.snapshot
      assert.strictEqual(DateTime.toEpochMillis(openUntil ?? assert.fail("not open")), expected)
    })
  )
})

describe("CircuitBreaker with a probe that never reports", () => {
  const options = { failureThreshold: 1, resetTimeout: "10 seconds", halfOpenTimeout: "20 seconds" } as const
  const hanging = (breaker: Breaker) =>
    Effect.tap(Effect.fork(Effect.exit(breaker.protect(Effect.never))), () => Effect.yieldNow())

  const halfOpen = (more: CircuitBreaker.Options = {}) =>
    Effect.tap(make({ ...options, ...more }), (breaker) =>
      Effect.zipRight(fail(breaker, 1), TestClock.adjust("10 seconds"))
    )

  it.effect("gives it up after halfOpenTimeout and lets another through (OmniRoute#13836, resilience4j#935)", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen()
      yield* hanging(breaker)

      yield* TestClock.adjust("19999 millis")
      const early = yield* admitted(breaker, 1)
      yield* TestClock.adjust("1 millis")
      const inTime = yield* admitted(breaker, 1)

      assert.deepStrictEqual([early, inTime], [0, 1])
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("the place of a probe that was given up is not given back a second time", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen()
      const first = yield* hanging(breaker)
      yield* TestClock.adjust("20 seconds")
      yield* hanging(breaker)

      yield* Fiber.interrupt(first)

      assert.strictEqual(yield* admitted(breaker, 1), 0)
      assert.strictEqual((yield* breaker.snapshot).probes, 1)
    })
  )

  it.effect("a probe that was given up may still succeed, for it is news of the callee", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen()
      const gate = yield* Deferred.make<void>()
      const slow = yield* Effect.fork(breaker.protect(Deferred.await(gate)))
      yield* Effect.yieldNow()
      yield* TestClock.adjust("20 seconds")
      yield* hanging(breaker)

      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(slow)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("probes that have succeeded are kept when the rest is given up", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen({ halfOpenCalls: 3 })
      yield* succeed(breaker, 2)
      yield* hanging(breaker)
      yield* TestClock.adjust("20 seconds")
      const gate = yield* Deferred.make<void>()
      const probe = yield* Effect.fork(breaker.protect(Deferred.await(gate)))
      yield* Effect.yieldNow()

      const others = yield* admitted(breaker, 3)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(probe)

      assert.strictEqual(others, 0)
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("at no time are more probes let through than halfOpenCalls while none is overdue", () =>
    Effect.gen(function* () {
      const breaker = yield* halfOpen({ halfOpenCalls: 2 })
      for (const _ of [1, 2, 3, 4, 5]) yield* hanging(breaker)

      assert.strictEqual((yield* breaker.snapshot).probes, 2)
    })
  )
})

describe("CircuitBreaker that ramps up", () => {
  const options = {
    failureThreshold: 1,
    resetTimeout: "10 seconds",
    rampUp: { duration: "100 seconds", initialShare: 0.1 }
  } as const

  const closedAgain = (more: CircuitBreaker.Options = {}) =>
    Effect.tap(make({ ...options, ...more }), (breaker) =>
      Effect.zipRight(fail(breaker, 1), Effect.zipRight(TestClock.adjust("10 seconds"), succeed(breaker, 1)))
    )

  it.effect("lets a share of calls through that grows until it is all of them (bifrost#125)", () =>
    Effect.gen(function* () {
      const breaker = yield* closedAgain()
      const shares: Array<number> = []

      for (const _ of [0, 1, 2, 3, 4]) {
        shares.push((yield* admitted(breaker, 1000)) / 1000)
        yield* TestClock.adjust("25 seconds")
      }

      const expected = [0.1, 0.325, 0.55, 0.775, 1]
      assert.isTrue(
        shares.every((share, index) => Math.abs(share - (expected[index] ?? 0)) < 0.005),
        `${shares}`
      )
    })
  )

  it.effect("with a share of a half, lets every second call through after the first", () =>
    Effect.gen(function* () {
      const breaker = yield* closedAgain({ rampUp: { duration: "10 days", initialShare: 0.5 } })

      assert.strictEqual(yield* admitted(breaker, 10), 6)
    })
  )

  it.effect("says with a rejection that the circuit has just closed", () =>
    Effect.gen(function* () {
      const breaker = yield* closedAgain()
      yield* admitted(breaker, 1)

      const error = yield* Effect.flip(breaker.protect(Effect.void))

      assert.instanceOf(error, CircuitOpenError)
      assert.match(error.message, /just closed/)
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("a new circuit and a restored one let everything through", () =>
    Effect.gen(function* () {
      const breaker = yield* make(options)
      const fresh = yield* admitted(breaker, 20)
      yield* breaker.isolate
      yield* breaker.restore
      const restored = yield* admitted(breaker, 20)

      assert.deepStrictEqual([fresh, restored], [20, 20])
    })
  )

  it.effect("without the option everything comes back at once", () =>
    Effect.gen(function* () {
      const breaker = yield* closedAgain({ rampUp: undefined })

      assert.strictEqual(yield* admitted(breaker, 100), 100)
    })
  )
})

describe("CircuitBreaker by hand", () => {
  it.effect("isolated, it rejects everything for ever and says why", () =>
    Effect.gen(function* () {
      const breaker = yield* make({}, { name: "groq" })
      yield* breaker.isolate
      yield* TestClock.adjust("365 days")

      const error = yield* Effect.flip(breaker.protect(Effect.void))

      assert.instanceOf(error, CircuitOpenError)
      assert.strictEqual(error.message, "groq: circuit isolated by hand")
      assert.isUndefined(error.openUntil)
      assert.strictEqual(yield* breaker.state, "Isolated")
    })
  )

  it.effect("restored, it is closed and has forgotten its failures", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 2 })
      yield* fail(breaker, 1)
      yield* breaker.isolate

      yield* breaker.restore
      yield* fail(breaker, 1)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("an open circuit can be restored before its time", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 })
      yield* fail(breaker, 1)

      yield* breaker.restore

      assert.strictEqual(yield* admitted(breaker, 5), 5)
    })
  )

  it.effect("what was under way when it was isolated can neither open nor close it (resilience4j#991)", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 })
      const gate = yield* Deferred.make<void>()
      const calls = yield* Effect.fork(
        Effect.all(
          [down, asked(1000), Effect.void].map((end) =>
            Effect.exit(breaker.protect(Effect.zipRight(Deferred.await(gate), end)))
          ),
          {
            concurrency: 3
          }
        )
      )
      yield* Effect.yieldNow()
      yield* breaker.isolate

      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(calls)

      assert.strictEqual(yield* breaker.state, "Isolated")
    })
  )

  it.effect("tells each of isolating and restoring once", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const breaker = yield* make(
        {},
        {
          onIsolate: Effect.sync(() => void told.push("isolated")),
          onClose: Effect.sync(() => void told.push("closed"))
        }
      )

      yield* breaker.isolate
      yield* breaker.isolate
      yield* breaker.restore
      yield* breaker.restore

      assert.deepStrictEqual(told, ["isolated", "closed"])
    })
  )
})

describe("CircuitBreaker and its listeners", () => {
  it.effect("a listener that never ends holds up no call", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 }, { onOpen: () => Effect.never })

      const exit = yield* Effect.exit(breaker.protect(down))

      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(yield* breaker.state, "Open")
    })
  )

  it.effect("a listener sees the new state, and may use the circuit itself (std#6967)", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const breaker: Breaker = yield* make(
        { failureThreshold: 1 },
        {
          onOpen: () =>
            Effect.gen(function* () {
              seen.push(yield* breaker.state)
              yield* breaker.restore
            })
        }
      )

      yield* fail(breaker, 1)

      assert.deepStrictEqual(seen, ["Open"])
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )
})

describe("CircuitBreaker.snapshot", () => {
  it.effect("tells how the circuit stands, since when, and what it has counted", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 3, resetTimeout: "10 seconds" })
      yield* TestClock.adjust("1 second")
      yield* fail(breaker, 2)
      const closed = yield* breaker.snapshot
      yield* TestClock.adjust("1 second")
      yield* fail(breaker, 1)
      const open = yield* breaker.snapshot

      assert.deepStrictEqual(closed, {
        state: "Closed",
        since: DateTime.unsafeMake(0),
        openings: 0,
        consecutiveFailures: 2,
        probes: 0
      })
      assert.deepStrictEqual(open, {
        state: "Open",
        since: DateTime.unsafeMake(2000),
        openUntil: DateTime.unsafeMake(12_000),
        openedBy: new Down(),
        reason: "consecutive-failures",
        openings: 1,
        consecutiveFailures: 0,
        probes: 0
      })
    })
  )
})

describe("CircuitBreaker and wrong options", () => {
  const no = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, true, "many", null]
  const wrong: ReadonlyArray<readonly [option: string, values: ReadonlyArray<unknown>]> = [
    ["failureThreshold", [...no.slice(0, 6), 1.5]],
    ["halfOpenCalls", [...no.slice(0, 6), 1.5]],
    ["resetTimeout", [Number.NaN, -1, 0, true, "soon", 2 ** 31]],
    ["halfOpenTimeout", [Number.NaN, -1, 0, true, "soon", 2 ** 31]],
    ["failureRate.threshold", [...no.slice(0, 6), 1.01]],
    ["failureRate.buckets", [...no.slice(0, 6), 2.5, 10_001]],
    ["failureRate.minimumCalls", [...no.slice(0, 6), 2.5]],
    ["failureRate.window", [Number.NaN, -1, 0, true, "long"]],
    ["slowCall.slowerThan", [Number.NaN, -1, 0, true, undefined]],
    ["reopening.multiplier", [Number.NaN, Number.POSITIVE_INFINITY, 0.5, true]],
    ["reopening.maxTimeout", [Number.NaN, -1, 0, true]],
    ["reopening.jitter", [Number.NaN, -0.1, 1.1, true]],
    ["rampUp.duration", [Number.NaN, -1, 0, true, undefined]],
    ["rampUp.initialShare", [...no.slice(0, 6), 1.01]]
  ]
  const cases = wrong.flatMap(([option, values]) => values.map((value) => [option, value] as const))

  it.effect.each(cases)("refuses %s of %s, and names it", ([option, value]) =>
    Effect.gen(function* () {
      const [outer = "", inner] = option.split(".")
      const options = { [outer]: inner === undefined ? value : { ...needed[outer], [inner]: value } }

      const error = yield* Effect.flip(CircuitBreaker.make(options as CircuitBreaker.Options))

      assert.match(`${error}`, new RegExp(`breaker\\.${option} is .*; allowed: `))
    })
  )

  const needed: Readonly<Record<string, object>> = {
    slowCall: { slowerThan: "1 second" },
    rampUp: { duration: "1 second" }
  }

  it.effect("refuses an option that it does not know", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        CircuitBreaker.make({ failureRate: { treshold: 0.5 } } as CircuitBreaker.Options)
      )

      assert.match(`${error}`, /breaker\.failureRate\.treshold is not an option/)
    })
  )
})
