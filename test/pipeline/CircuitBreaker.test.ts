import { assert, describe, it } from "@effect/vitest"
import { Cause, type Clock, Data, DateTime, Deferred, Duration, Effect, Exit, Fiber, TestClock } from "effect"
import { CircuitBreaker, CircuitOpenError } from "llmfuse"
import { interruptAtEveryOperation } from "../interruptAt.ts"

class Down extends Data.TaggedError("Down") {}
class NotMyFault extends Data.TaggedError("NotMyFault") {}

type Failure = Down | NotMyFault

const down: Effect.Effect<never, Failure> = Effect.suspend(() => Effect.fail(new Down()))
const notMyFault: Effect.Effect<never, Failure> = Effect.suspend(() => Effect.fail(new NotMyFault()))

const make = (options: CircuitBreaker.Options = {}, hooks: CircuitBreaker.Hooks<Failure> = {}) =>
  CircuitBreaker.make<Failure>(options, {
    classify: (error) => (error._tag === "Down" ? "failure" : "ignored"),
    ...hooks
  })

const fail = (breaker: CircuitBreaker.CircuitBreaker<Failure>, times: number) =>
  Effect.repeatN(Effect.exit(breaker.protect(down)), times - 1)

/** A breaker that has just opened, for 30 seconds. */
const opened = (options: CircuitBreaker.Options = {}, hooks: CircuitBreaker.Hooks<Failure> = {}) =>
  Effect.tap(make({ failureThreshold: 1, ...options }, hooks), (breaker) => fail(breaker, 1))

/** A breaker whose next call is a probe. */
const probing = (options: CircuitBreaker.Options = {}, hooks: CircuitBreaker.Hooks<Failure> = {}) =>
  Effect.tap(opened(options, hooks), () => TestClock.adjust("30 seconds"))

describe("CircuitBreaker", () => {
  it.effect("begins closed and lets everything through", () =>
    Effect.gen(function* () {
      const breaker = yield* make()

      const answer = yield* breaker.protect(Effect.succeed("hello"))

      assert.strictEqual(answer, "hello")
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("opens exactly at the threshold of consecutive failures", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 3 })

      yield* fail(breaker, 2)
      const before = yield* breaker.state
      yield* fail(breaker, 1)

      assert.strictEqual(before, "Closed")
      assert.strictEqual(yield* breaker.state, "Open")
    })
  )

  it.effect("a success in between starts the count again", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 3 })

      yield* fail(breaker, 2)
      yield* breaker.protect(Effect.void)
      yield* fail(breaker, 2)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("open, it calls nobody and says until when, for how long and why", () =>
    Effect.gen(function* () {
      const breaker = yield* opened({ resetTimeout: "30 seconds" }, { name: "groq" })
      yield* TestClock.adjust("10 seconds")
      let isCalled = false

      const error = yield* Effect.flip(
        breaker.protect(
          Effect.sync(() => {
            isCalled = true
          })
        )
      )

      assert.instanceOf(error, CircuitOpenError)
      assert.isFalse(isCalled)
      assert.strictEqual(error.provider, "groq")
      assert.strictEqual(DateTime.toEpochMillis(error.openUntil ?? assert.fail("no openUntil")), 30_000)
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(20))
      assert.instanceOf(error.openedBy, Down)
    })
  )

  it.effect("probes at 30.0 seconds, not at 29.9", () =>
    Effect.gen(function* () {
      const breaker = yield* opened()

      yield* TestClock.adjust("29.9 seconds")
      const early = yield* Effect.exit(breaker.protect(Effect.succeed("probe")))
      yield* TestClock.adjust("100 millis")
      const inTime = yield* Effect.exit(breaker.protect(Effect.succeed("probe")))

      assert.isTrue(Exit.isFailure(early))
      assert.deepStrictEqual(inTime, Exit.succeed("probe"))
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("to look at the state changes nothing: it is the next call that probes", () =>
    Effect.gen(function* () {
      const breaker = yield* probing()

      assert.strictEqual(yield* breaker.state, "Open")
    })
  )

  it.effect("a failed probe opens the circuit again for the whole reset timeout", () =>
    Effect.gen(function* () {
      const breaker = yield* probing()

      yield* fail(breaker, 1)
      yield* TestClock.adjust("29.9 seconds")
      const early = yield* Effect.exit(breaker.protect(Effect.void))
      yield* TestClock.adjust("100 millis")
      const inTime = yield* Effect.exit(breaker.protect(Effect.void))

      assert.isTrue(Exit.isFailure(early))
      assert.isTrue(Exit.isSuccess(inTime))
    })
  )

  it.effect("needs as many successful probes as it lets through", () =>
    Effect.gen(function* () {
      const breaker = yield* probing({ halfOpenCalls: 2 })

      yield* breaker.protect(Effect.void)
      const afterOne = yield* breaker.state
      yield* breaker.protect(Effect.void)

      assert.strictEqual(afterOne, "HalfOpen")
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("the count of failures starts anew after the circuit has closed", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 3 })
      yield* fail(breaker, 3)
      yield* TestClock.adjust("30 seconds")
      yield* breaker.protect(Effect.void)

      yield* fail(breaker, 2)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  for (const halfOpenCalls of [1, 3]) {
    it.effect(`lets exactly ${halfOpenCalls} of 1,000 concurrent callers through while half-open`, () =>
      Effect.gen(function* () {
        const breaker = yield* probing({ halfOpenCalls })
        const gate = yield* Deferred.make<void>()
        let entered = 0
        const call = breaker.protect(
          Effect.suspend(() => {
            entered += 1
            return Deferred.await(gate)
          })
        )

        const fiber = yield* Effect.fork(
          Effect.all(
            Array.from({ length: 1000 }, () => Effect.exit(call)),
            { concurrency: "unbounded" }
          )
        )
        yield* TestClock.adjust("1 second")
        const enteredBeforeAnyEnded = entered
        yield* Deferred.succeed(gate, undefined)
        const exits = yield* Fiber.join(fiber)

        assert.strictEqual(enteredBeforeAnyEnded, halfOpenCalls)
        assert.strictEqual(entered, halfOpenCalls)
        assert.strictEqual(exits.filter(Exit.isSuccess).length, halfOpenCalls)
        assert.strictEqual(yield* breaker.state, "Closed")
      })
    )
  }

  const endings: ReadonlyArray<readonly [how: string, effect: Effect.Effect<unknown, Failure>]> = [
    ["a failure that is not the callee's", notMyFault],
    ["a defect", Effect.die(new TypeError("bug"))],
    ["its own interruption", Effect.interrupt]
  ]

  it.effect.each(endings)("a probe that ends in %s gives its place to the next caller", ([, effect]) =>
    Effect.gen(function* () {
      const breaker = yield* probing()

      const probe = yield* Effect.exit(breaker.protect(effect))
      const after = yield* breaker.state
      const next = yield* Effect.exit(breaker.protect(Effect.succeed("next")))

      assert.isTrue(Exit.isFailure(probe))
      assert.strictEqual(after, "HalfOpen")
      assert.deepStrictEqual(next, Exit.succeed("next"))
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("a probe that is interrupted from outside gives its place to the next caller", () =>
    Effect.gen(function* () {
      const breaker = yield* probing()
      const probe = yield* Effect.fork(breaker.protect(Effect.never))
      yield* TestClock.adjust("1 second")
      const during = yield* Effect.flip(breaker.protect(Effect.void))

      yield* Fiber.interrupt(probe)
      yield* breaker.protect(Effect.void)

      assert.instanceOf(during, CircuitOpenError)
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("a classification that throws is a defect, and still gives the probe's place back", () =>
    Effect.gen(function* () {
      let isBroken = false
      const classify = () => {
        if (isBroken) throw new TypeError("broken classify")
        return "failure" as const
      }
      const breaker = yield* probing({}, { classify })
      isBroken = true

      const probe = yield* Effect.exit(breaker.protect(down))
      const next = yield* Effect.exit(breaker.protect(Effect.succeed("next")))

      assert.isTrue(Exit.isFailure(probe) && Cause.isDieType(probe.cause))
      assert.deepStrictEqual(next, Exit.succeed("next"))
    })
  )

  it.effect("failures that are not the callee's, defects and interruptions never open it", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 })

      for (const [, effect] of endings) yield* Effect.exit(breaker.protect(effect))

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("a success that was admitted before the circuit opened does not close it", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 })
      const old = yield* Effect.fork(breaker.protect(Effect.sleep("1 second")))
      yield* TestClock.adjust(0)
      yield* fail(breaker, 1)

      yield* TestClock.adjust("1 second")
      yield* Fiber.join(old)

      assert.strictEqual(yield* breaker.state, "Open")
    })
  )

  it.effect("a failure that was admitted before the circuit opened does not open it for longer", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 })
      const old = yield* Effect.fork(Effect.exit(breaker.protect(Effect.zipRight(Effect.sleep("20 seconds"), down))))
      yield* TestClock.adjust(0)
      yield* fail(breaker, 1)

      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(old)
      yield* breaker.protect(Effect.void)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("what was admitted in an earlier generation neither fails nor frees a probe of a later one", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 1 })
      const oldFailure = yield* Effect.fork(
        Effect.exit(breaker.protect(Effect.zipRight(Effect.sleep("31 seconds"), down)))
      )
      const oldInterrupted = yield* Effect.fork(breaker.protect(Effect.never))
      yield* TestClock.adjust(0)
      yield* fail(breaker, 1)
      yield* TestClock.adjust("30 seconds")
      const probe = yield* Effect.fork(breaker.protect(Effect.sleep("10 seconds")))

      yield* TestClock.adjust("1 second")
      yield* Fiber.join(oldFailure)
      yield* Fiber.interrupt(oldInterrupted)
      const during = yield* Effect.exit(breaker.protect(Effect.void))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(probe)

      assert.isTrue(Exit.isFailure(during))
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("an outcome can open it at once and for its own time", () =>
    Effect.gen(function* () {
      const breaker = yield* make({ failureThreshold: 5 }, { classify: () => ({ openForMillis: 90_000 }) })

      yield* fail(breaker, 1)
      yield* TestClock.adjust("89.9 seconds")
      const early = yield* Effect.exit(breaker.protect(Effect.void))
      yield* TestClock.adjust("100 millis")
      const inTime = yield* Effect.exit(breaker.protect(Effect.void))

      assert.isTrue(Exit.isFailure(early))
      assert.isTrue(Exit.isSuccess(inTime))
    })
  )

  it.effect("tells of each transition once, after it is done", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const note = (what: string) => Effect.sync(() => void told.push(what))
      const breaker = yield* make(
        { failureThreshold: 2 },
        {
          onOpen: ({ error, openUntil }) =>
            note(`open until ${DateTime.toEpochMillis(openUntil)} by ${(error as Failure)._tag}`),
          onHalfOpen: note("half-open"),
          onClose: note("closed")
        }
      )

      yield* Effect.all(
        Array.from({ length: 10 }, () => Effect.exit(breaker.protect(Effect.zipRight(Effect.yieldNow(), down)))),
        {
          concurrency: "unbounded"
        }
      )
      yield* TestClock.adjust("30 seconds")
      yield* breaker.protect(Effect.void)

      assert.deepStrictEqual(told, ["open until 30000 by Down", "half-open", "closed"])
    })
  )

  it.effect("a listener that breaks harms neither the call nor the circuit", () =>
    Effect.gen(function* () {
      const broken = Effect.die("listener broke")
      const breaker = yield* probing({}, { onOpen: () => broken, onHalfOpen: broken, onClose: broken })

      const answer = yield* breaker.protect(Effect.succeed("hello"))

      assert.strictEqual(answer, "hello")
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it.effect("runs on monotonic time: a wall clock that is set back does not keep it open", () =>
    Effect.gen(function* () {
      const test = yield* Effect.clock
      let offset = 0
      const clock: Clock.Clock = {
        ...test,
        unsafeCurrentTimeMillis: () => test.unsafeCurrentTimeMillis() + offset,
        currentTimeMillis: Effect.map(test.currentTimeMillis, (now) => now + offset),
        unsafeCurrentTimeNanos: () => test.unsafeCurrentTimeNanos(),
        sleep: (duration) => test.sleep(duration)
      }

      const breaker = yield* Effect.withClock(opened(), clock)
      offset = -3_600_000
      yield* TestClock.adjust("30 seconds")
      yield* Effect.withClock(breaker.protect(Effect.void), clock)

      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it("loses no probe wherever its caller is interrupted", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      const breaker = Effect.runSync(
        CircuitBreaker.make<Failure>({ failureThreshold: 1, resetTimeout: 1 }, { classify: () => "failure" })
      )
      Effect.runSync(Effect.exit(breaker.protect(down)))
      return {
        run: Effect.zipRight(Effect.sleep(2), breaker.protect(Effect.yieldNow())),
        check: async (_, operation) => {
          await Effect.runPromise(Effect.sleep(2))
          const next = await Effect.runPromiseExit(breaker.protect(Effect.succeed("next")))
          assert.isTrue(Exit.isSuccess(next), `interrupted at operation ${operation}`)
        }
      }
    })

    assert.isAbove(interrupted, 20)
  })

  const wrong: ReadonlyArray<readonly [message: string, options: object]> = [
    ["breaker.failureThreshold is 0", { failureThreshold: 0 }],
    ["breaker.failureThreshold is NaN", { failureThreshold: Number.NaN }],
    ["breaker.failureThreshold is 1.5", { failureThreshold: 1.5 }],
    ["breaker.resetTimeout is 0", { resetTimeout: 0 }],
    ["breaker.resetTimeout is -5", { resetTimeout: -5 }],
    ["breaker.halfOpenCalls is 0", { halfOpenCalls: 0 }],
    ["breaker.halfOpenCalls is Infinity", { halfOpenCalls: Number.POSITIVE_INFINITY }],
    ["breaker.threshold is not an option", { threshold: 3 }]
  ]

  it.effect.each(wrong)("refuses: %s", ([message, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(CircuitBreaker.make(options))

      assert.include(String(error), message)
      assert.include(String(error), "allowed: ")
    })
  )
})
