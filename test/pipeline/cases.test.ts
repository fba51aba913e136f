/** Faults that users of other resilience libraries reported; the names say the kind and, in brackets, the report. */
import { getEventListeners } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Data,
  DateTime,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Random,
  Scope,
  Supervisor,
  TestClock
} from "effect"
import {
  Bulkhead,
  CircuitBreaker,
  CircuitOpenError,
  FuseClient,
  fallback,
  Limiter,
  LlmFuse,
  type Options,
  Provider,
  RateLimitError,
  RetryPolicy,
  retry,
  ThrottledError,
  TokenBucket
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { attemptTimeout } from "../../src/pipeline/AttemptTimeout.ts"
import * as CircuitRules from "../../src/pipeline/CircuitRules.ts"
import * as CircuitState from "../../src/pipeline/CircuitState.ts"
import * as FailureWindow from "../../src/pipeline/FailureWindow.ts"
import { badRequest, outage, overloaded } from "../errors.ts"
import { makeFuse } from "../fuse.ts"
import { ManualTime } from "./manualTime.ts"

class Down extends Data.TaggedError("Down") {}

const down: Effect.Effect<never, Down> = Effect.suspend(() => Effect.fail(new Down()))

const maxTimerMillis = 2 ** 31 - 1

const times = <A>(length: number, make: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length }, (_, index) => make(index))

/** What a fiber has ended with by now. */
const endOf = <A, E>(fiber: Fiber.RuntimeFiber<A, E>) => fiber.unsafePoll() ?? assert.fail("it still waits")

/** The failure that an effect ends with at once. */
const failureOf = <A, E>(time: ManualTime, effect: Effect.Effect<A, E>) => time.run(Effect.flip(effect))

const isOpen = (time: ManualTime, breaker: CircuitBreaker.CircuitBreaker<Down>) =>
  time.run(Effect.exit(breaker.protect(Effect.void)))._tag === "Failure"

/** A breaker that has just opened, for 30 seconds. */
const openedIn = (
  time: ManualTime,
  options: CircuitBreaker.Options = {},
  hooks: CircuitBreaker.Hooks<Down> = {}
): CircuitBreaker.CircuitBreaker<Down> => {
  const breaker = time.run(CircuitBreaker.make<Down>({ failureThreshold: 1, ...options }, hooks))
  failureOf(time, breaker.protect(down))
  return breaker
}

describe("cases: circuit breaker", () => {
  it("failures that pour in from many calls open it once, and it probes at the right time (Hystrix#1781)", () => {
    const time = new ManualTime()
    const told: Array<string> = []
    const tell = (what: string) => Effect.sync(() => void told.push(`${time.nowMillis} ${what}`))
    const hooks = {
      onOpen: ({ openUntil }: CircuitBreaker.Opened) => tell(`open until ${DateTime.toEpochMillis(openUntil)}`),
      onHalfOpen: tell("half-open"),
      onClose: tell("closed")
    }
    const breaker = time.run(CircuitBreaker.make<Down>({ failureThreshold: 5 }, hooks))
    for (let call = 1; call <= 1000; call++) time.fork(breaker.protect(Effect.delay(down, call * 10)))

    time.advance(30_049)
    const isOpenStill = isOpen(time, breaker)
    time.advance(1)
    const isOpenLater = isOpen(time, breaker)

    assert.deepStrictEqual([isOpenStill, isOpenLater], [true, false])
    assert.deepStrictEqual(told, ["50 open until 30050", "30050 half-open", "30050 closed"])
  })

  it.effect("failures in the same moment do not cancel the reset (opossum#385)", () =>
    Effect.gen(function* () {
      let openings = 0
      const onOpen = () => Effect.sync(() => void openings++)
      const breaker = yield* CircuitBreaker.make<Down>({ failureThreshold: 1 }, { onOpen })
      const gate = yield* Deferred.make<void>()
      const call = Effect.exit(breaker.protect(Effect.zipRight(Deferred.await(gate), down)))
      const calls = yield* Effect.fork(
        Effect.forEach(
          times(100, () => call),
          (it) => it,
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("1 second")

      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(calls)
      yield* TestClock.adjust("30 seconds")
      yield* breaker.protect(Effect.void)

      assert.strictEqual(openings, 1)
      assert.strictEqual(yield* breaker.state, "Closed")
    })
  )

  it("a rejection is no outcome: callers who keep knocking do not keep it open (Hystrix#1723)", () => {
    const time = new ManualTime()
    const breaker = openedIn(time)

    for (let call = 0; call < 2999; call++) {
      time.advance(10)
      assert.isTrue(isOpen(time, breaker))
    }
    time.advance(10)

    assert.isFalse(isOpen(time, breaker))
    assert.strictEqual(time.run(breaker.state), "Closed")
  })

  it("a rejection that comes back through the breaker itself does not wedge its probe (Hystrix#1723)", () => {
    const time = new ManualTime()
    const other = openedIn(time, { resetTimeout: "1 hour" })
    const breaker = time.run(
      CircuitBreaker.make<Down | CircuitOpenError>(
        { failureThreshold: 1 },
        { classify: (error) => (error instanceof CircuitOpenError ? "ignored" : "failure") }
      )
    )
    failureOf(time, breaker.protect(down))
    time.advance(30_000)

    const rejected = failureOf(time, breaker.protect(other.protect(Effect.void)))
    const stateBetween = time.run(breaker.state)
    time.run(breaker.protect(Effect.void))

    assert.instanceOf(rejected, CircuitOpenError)
    assert.deepStrictEqual([stateBetween, time.run(breaker.state)], ["HalfOpen", "Closed"])
  })

  it("closes after its second half-open, and after its tenth (opossum#57)", () => {
    const time = new ManualTime()
    const breaker = openedIn(time)

    for (let round = 0; round < 10; round++) {
      time.advance(30_000)
      failureOf(time, breaker.protect(down))
      assert.strictEqual(time.run(breaker.state), "Open")
      time.advance(30_000)
      time.run(breaker.protect(Effect.void))
      assert.strictEqual(time.run(breaker.state), "Closed")
      failureOf(time, breaker.protect(down))
    }
  })

  it("behind a probe that hangs nobody waits: they are rejected at once (cockatiel 4.0.0)", () => {
    const time = new ManualTime()
    const breaker = openedIn(time)
    time.advance(30_000)
    const probe = time.fork(breaker.protect(Effect.never))

    const exits = times(20, () => endOf(time.fork(Effect.flip(breaker.protect(Effect.void)))))

    assert.isTrue(exits.every((exit) => Exit.isSuccess(exit) && exit.value instanceof CircuitOpenError))
    assert.isNull(probe.unsafePoll())
    assert.strictEqual(time.timers, 0)
  })

  it("is open for the whole time from its opening, however long the call took that opened it (std#7097)", () => {
    const time = new ManualTime()
    const breaker = time.run(CircuitBreaker.make<Down>({ failureThreshold: 1 }))
    time.fork(breaker.protect(Effect.delay(down, "25 seconds")))

    time.advance(54_999)
    const isOpenBefore = isOpen(time, breaker)
    time.advance(1)

    assert.isTrue(isOpenBefore)
    assert.isFalse(isOpen(time, breaker))
  })

  it("to be turned away is one step, which leaves the state as it is (resilience4j#2038)", () => {
    const time = new ManualTime()
    const rules = time.run(CircuitRules.resolve({ failureThreshold: 1 }, "breaker"))
    const closed = CircuitState.initial(rules, 0)
    const failure = { outcome: "failure", isSlow: false, error: "down", random: 0 } as const
    const permit = CircuitState.admit(closed, rules, 0)[0]
    assert("generation" in permit)
    const open = CircuitState.settle(closed, permit, failure, rules, 0)
    const breaker = openedIn(time)
    let looks = 0
    const counting = Effect.clockWith((clock) =>
      Effect.withClock(Effect.exit(breaker.protect(Effect.void)), {
        ...clock,
        unsafeCurrentTimeNanos: () => {
          looks += 1
          return clock.unsafeCurrentTimeNanos()
        }
      })
    )

    const [rejected, after] = CircuitState.admit(open, rules, 29_999)
    for (let call = 0; call < 1000; call++) time.run(counting)

    assert.isTrue("_tag" in rejected && rejected.waitMillis === 1)
    assert.strictEqual(after, open)
    assert.strictEqual(looks, 1000)
  })

  it("a call takes one permit (resilience4j#1003)", () => {
    const time = new ManualTime()
    const breaker = openedIn(time, { halfOpenCalls: 3 })
    time.advance(30_000)

    const probes = times(3, () => {
      time.fork(breaker.protect(Effect.delay(Effect.void, 10)))
      return time.run(breaker.snapshot).probes
    })
    const fourth = failureOf(time, breaker.protect(Effect.void))
    time.advance(10)

    assert.deepStrictEqual(probes, [1, 2, 3])
    assert.instanceOf(fourth, CircuitOpenError)
    assert.strictEqual(time.run(breaker.state), "Closed")
  })

  it("each rejection is an error of its own, about the same failure (Polly#1877)", () => {
    const time = new ManualTime()
    const breaker = openedIn(time)

    const errors = times(100, () => failureOf(time, breaker.protect(Effect.void)) as CircuitOpenError)

    assert.strictEqual(new Set(errors).size, 100)
    assert.strictEqual(new Set(errors.map(({ openedBy }) => openedBy)).size, 1)
    assert.strictEqual(new Set(errors.map(({ stack }) => stack?.length)).size, 1)
  })

  it("counts a million calls in the same room (Hystrix PR#804)", () => {
    const rules = { bucketMillis: 100, buckets: 10 }
    let window = FailureWindow.make(rules, 0)
    let [longest, largest] = [0, 0]

    for (let call = 0; call < 1_000_000; call++) {
      window = FailureWindow.record(window, rules, call, call % 3 === 0)
      longest = Math.max(longest, window.full.length)
      largest = Math.max(largest, window.total.calls)
    }

    assert.strictEqual(longest, 10)
    assert.isAtMost(largest, 1000)
    assert.isBelow(JSON.stringify(window).length, 1000)
  })

  it.effect("a deadline of the caller's own that is too short is no fault of the provider (litellm#41223)", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("slow", { latency: "5 seconds" })
      const fuse = yield* makeFuse({ providers: [slow], retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } })

      for (let call = 0; call < 5; call++) yield* Effect.exit(fuse.ask("hi", { deadline: "1 second" }))

      assert.strictEqual(slow.requests.length, 5)
      assert.strictEqual(yield* fuse.circuitState("slow"), "Closed")
      assert.strictEqual((yield* fuse.ask("hi")).provider, "slow")
    })
  )

  it.effect("nor is the share of it that is left for the first of two providers (litellm#41223)", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("slow", { latency: "5 seconds" })
      const fuse = yield* makeFuse({
        providers: [slow, FakeProvider.make("gemini")],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1 }
      })

      const answer = yield* fuse.ask("hi", { deadline: "1 second" })

      assert.strictEqual(answer.provider, "gemini")
      assert.strictEqual(slow.requests.length, 1)
      assert.strictEqual(yield* fuse.circuitState("slow"), "Closed")
    })
  )

  it.effect("a request that is wrong by itself never counts against the provider (litellm#42432)", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: times(20, () => badRequest("groq")) })
      const breaker = { failureThreshold: 1, failureRate: { threshold: 0.1, minimumCalls: 1 } }
      const fuse = yield* makeFuse({ providers: [groq], breaker })

      for (let call = 0; call < 20; call++) yield* Effect.exit(fuse.ask("hi"))

      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
      assert.strictEqual((yield* fuse.ask("hi")).text, "ok")
    })
  )

  it.effect("through the whole pipeline too a call takes one permit (resilience4j#1003)", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 1), latency: "1 second" })
      const breaker = { failureThreshold: 1, resetTimeout: "1 hour", halfOpenCalls: 3 } as const
      const fuse = yield* makeFuse({ providers: [groq], retry: { maxAttempts: 1 }, breaker })
      yield* Effect.exit(fuse.ask("hi"))
      yield* TestClock.adjust("1 hour")

      const three = times(3, () => fuse.complete("hi"))
      const calls = yield* Effect.fork(Effect.all(three, { concurrency: 3 }))
      yield* TestClock.adjust("1 second")
      const answers = yield* Fiber.join(calls)

      assert.deepStrictEqual(
        answers.map(({ provider }) => provider),
        ["groq", "groq", "groq"]
      )
      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
    })
  )
})

describe("cases: retry and its waits", () => {
  const policyOf = (time: ManualTime, options: RetryPolicy.Options) => time.run(RetryPolicy.make(options))

  it("every wait is one that a timer can wait, for a thousand attempts (Polly#1866, cockatiel#86, failsafe#215)", () => {
    const time = new ManualTime()
    const largest = { baseDelay: maxTimerMillis, multiplier: Number.MAX_SAFE_INTEGER, maxDelay: maxTimerMillis }
    const delays: Array<number> = []
    const limited = new RateLimitError({ provider: "groq", retryAfter: Duration.millis(maxTimerMillis) })
    const policy = policyOf(time, { ...largest, maxAttempts: 1001, jitter: "full" })
    const run = retry(Effect.fail(limited), policy, {
      onRetry: ({ delay }) => Effect.sync(() => void delays.push(Duration.toMillis(delay)))
    })

    const fiber = time.fork(Effect.flip(Effect.withRandom(run, Random.make("jitter"))))
    time.advance(1000 * maxTimerMillis)

    assert.deepStrictEqual(endOf(fiber), Exit.succeed(limited))
    assert.strictEqual(delays.length, 1000)
    assert.isTrue(delays.every((delay) => delay === maxTimerMillis))
  })

  it.live("the longest wait of all does not fire at once (actor-ts#771)", () =>
    Effect.gen(function* () {
      let runs = 0
      const failing = Effect.suspend(() => {
        runs += 1
        return down
      })
      const policy = yield* RetryPolicy.make({ baseDelay: maxTimerMillis, maxDelay: maxTimerMillis, jitter: "none" })
      const hinted = Effect.fail(new RateLimitError({ provider: "groq", retryAfter: Duration.millis(maxTimerMillis) }))

      const fibers = yield* Effect.all([
        Effect.fork(retry(failing, policy)),
        Effect.fork(retry(Effect.zipRight(Effect.ignore(failing), hinted), policy))
      ])
      yield* Effect.sleep("50 millis")
      yield* Fiber.interruptAll(fibers)

      assert.strictEqual(runs, 2)
    })
  )

  it.effect(
    "an interruption during the attempt after a failure is an interruption, not that failure (Polly#2375)",
    () =>
      Effect.gen(function* () {
        let runs = 0
        const failsThenHangs = Effect.suspend(() => (++runs === 1 ? down : Effect.never))
        const policy = yield* RetryPolicy.make({ baseDelay: "1 second", jitter: "none" })
        const fiber = yield* Effect.fork(retry(failsThenHangs, policy))
        yield* TestClock.adjust("1 second")

        const exit = yield* Fiber.interrupt(fiber)

        assert.strictEqual(runs, 2)
        assert(Exit.isFailure(exit))
        assert.isTrue(Cause.isInterruptedOnly(exit.cause))
      })
  )

  it("an abort during a wait rejects at once and makes no further call (openai-node#2580)", async () => {
    const groq = FakeProvider.make("groq", { errors: outage("groq", 9) })
    const controller = new AbortController()
    await using client = FuseClient.make({
      providers: [groq],
      retry: { maxAttempts: 3, baseDelay: "1 second", jitter: "none" }
    })
    const call = client.complete("hi", { signal: controller.signal }).then(
      () => assert.fail("it answered"),
      (reason: unknown) => reason
    )
    while (groq.requests.length === 0) await new Promise(setImmediate)
    const startMillis = performance.now()

    controller.abort("enough")
    const reason = await call
    const tookMillis = performance.now() - startMillis
    await new Promise((resolve) => setTimeout(resolve, 1100))

    assert.strictEqual(reason, "enough")
    assert.isBelow(tookMillis, 500)
    assert.strictEqual(groq.requests.length, 1)
  })

  it("a thousand attempts leave no listener behind on the caller's signal (redux-toolkit#5409, langchainjs#7963)", async () => {
    const controller = new AbortController()
    const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length
    const seen: Array<number> = []
    const groq = Provider.fromPromise({
      name: "groq",
      complete: async () => {
        seen.push(listeners(controller.signal))
        if (seen.length <= 1000) throw overloaded("groq")
        return "at last"
      }
    })
    await using client = FuseClient.make({
      providers: [groq],
      retry: { maxAttempts: 1001, baseDelay: 0, budget: false },
      breaker: { failureThreshold: 10_000 }
    })

    const response = await client.complete("hi", { signal: controller.signal })

    assert.strictEqual(response.text, "at last")
    assert.strictEqual(seen.length, 1001)
    assert.isAtMost(Math.max(...seen), 1)
    assert.strictEqual(listeners(controller.signal), 0)
  })

  it("a thousand calls under one signal leave no listener behind (redux-toolkit#5409, langchainjs#7963)", async () => {
    const { signal } = new AbortController()
    const groq = Provider.fromPromise({
      name: "groq",
      complete: async () => {
        await new Promise(setImmediate)
        return "ok"
      }
    })
    await using client = FuseClient.make({ providers: [groq] })
    let most = 0

    for (let call = 0; call < 1000; call++) {
      await client.complete("hi", { signal })
      most = Math.max(most, getEventListeners(signal, "abort").length)
    }

    assert.strictEqual(most, 0)
  })

  it("when it is closed, no timer and no fiber goes on (resilience4j#351)", async () => {
    const time = new ManualTime()
    const supervisor = time.run(Supervisor.track)
    const scope = time.run(Scope.make())
    const providers = [
      Provider.make({ name: "groq", complete: () => Effect.fail(overloaded("groq")) }),
      FakeProvider.make("gemini", { latency: "1 hour" })
    ]
    const options: Options<typeof providers> = {
      providers,
      retry: { maxAttempts: 5, baseDelay: "10 seconds", jitter: "none" },
      hedge: { delay: "1 second" },
      timeouts: { attempt: "30 minutes" },
      cache: { ttl: "1 minute" },
      deadline: "2 hours"
    }
    const service = time.run(
      Effect.supervised(
        Effect.flatMap(Layer.buildWithScope(LlmFuse.layer(options), scope), (context) =>
          Effect.provide(LlmFuse, context)
        ),
        supervisor
      )
    )
    const calls = times(10, (call) => time.fork(Effect.supervised(service.complete(`hi ${call}`), supervisor)))
    time.advance(15_000)
    const timersBefore = time.timers

    for (const call of calls) call.unsafeInterruptAsFork(call.id())
    time.settle()
    time.run(Scope.close(scope, Exit.void))
    const alive = () => time.run(supervisor.value).filter((fiber) => fiber.unsafePoll() === null)
    // The shared timer and the price list, which is loaded on the side, live by the scheduler of the machine.
    for (let turn = 0; turn < 400 && alive().length > 0; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      time.settle()
    }

    assert.isAbove(timersBefore, 0)
    assert.isTrue(calls.every((call) => Exit.isInterrupted(endOf(call))))
    assert.strictEqual(time.timers, 0)
    assert.strictEqual(alive().length, 0)
  })

  it("jittered or without any wait, attempts are bounded: there is no hot loop (Effect-TS#2717)", () => {
    for (const jitter of ["full", "none"] as const) {
      for (const baseDelay of [0, 1000]) {
        const time = new ManualTime()
        let runs = 0
        const failing = Effect.suspend(() => {
          runs += 1
          return down
        })

        const fiber = time.fork(Effect.flip(retry(failing, policyOf(time, { maxAttempts: 50, baseDelay, jitter }))))
        const runsAtOnce = runs
        time.advance(3_600_000)

        assert.isTrue(Exit.isSuccess(endOf(fiber)))
        assert.strictEqual(runs, 50)
        assert.isAtMost(runsAtOnce, 1, `${jitter} ${baseDelay}`)
      }
    }
  })

  it("one attempt is one attempt, and nothing is waited for (Effect-TS#5924)", () => {
    const time = new ManualTime()
    let runs = 0
    let told = 0
    const failing = Effect.suspend(() => {
      runs += 1
      return down
    })

    const error = failureOf(
      time,
      retry(failing, policyOf(time, { maxAttempts: 1 }), { onRetry: () => Effect.sync(() => void told++) })
    )

    assert.instanceOf(error, Down)
    assert.deepStrictEqual([runs, told, time.timers], [1, 0, 0])
  })
})

describe("cases: limits and budgets", () => {
  it("who has waited asks again, and waits on if there is still no room (smithy-typescript#1973)", () => {
    const time = new ManualTime()
    const limiter = time.run(Limiter.make({ requests: { limit: 60, burst: 1 }, maxWait: "1 hour" }))
    const servedAt: Array<number> = []
    const call = limiter.withRoom({}, () => Effect.sync(() => void servedAt.push(time.nowMillis)))
    for (let count = 0; count < 4; count++) time.fork(call)

    time.advance(500)
    time.run(limiter.setRate({ limit: 6, interval: "1 minute" }))
    time.advance(4000)
    time.run(limiter.blockFor("20 seconds"))
    time.advance(60_000)

    const gaps = servedAt.slice(1).map((at, index) => at - (servedAt[index] ?? 0))
    assert.strictEqual(servedAt.length, 4)
    assert.isAtLeast(servedAt[1] ?? 0, 24_500)
    assert.isTrue(gaps.slice(1).every((gap) => gap >= 10_000))
  })

  it.effect("a call that waits for its next attempt is not in flight (Envoy#30205)", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        errors: outage("groq", 1),
        limits: { concurrency: 1, maxQueue: 0 }
      })
      const fuse = yield* makeFuse({ providers: [groq] })
      const first = yield* Effect.fork(fuse.complete("first"))
      yield* TestClock.adjust("500 millis")

      const second = yield* fuse.complete("second")
      yield* TestClock.adjust("1 second")

      assert.deepStrictEqual(
        second.attempts.map(({ outcome }) => outcome),
        ["success"]
      )
      assert.deepStrictEqual(
        (yield* Fiber.join(first)).attempts.map(({ outcome }) => outcome),
        ["failure", "success"]
      )
    })
  )

  it("requests count when they begin, not when they end (go-zero#5011)", () => {
    const time = new ManualTime()
    const limiter = time.run(Limiter.make({ requests: { limit: 60, burst: 5 }, maxWait: 0 }))

    for (let call = 0; call < 5; call++) time.fork(limiter.withRoom({}, () => Effect.never))
    const sixth = failureOf(
      time,
      limiter.withRoom({}, () => Effect.void)
    )

    assert.instanceOf(sixth, ThrottledError)
    assert.deepStrictEqual(time.run(limiter.snapshot), { requestsLeft: 0, inFlight: 5, queued: 0 })
  })

  it.effect("calls that are still under way have paid into the budget already (go-zero#5011)", () =>
    Effect.gen(function* () {
      let calls = 0
      const complete = () =>
        Effect.suspend(() => {
          calls += 1
          return calls <= 4 ? Effect.never : calls === 5 ? Effect.fail(overloaded("groq")) : Effect.succeed("ok")
        })
      const budget = { share: 0.2, minimumPerSecond: 0 }
      const fuse = yield* makeFuse({
        providers: [Provider.make({ name: "groq", complete })],
        retry: { baseDelay: 0, budget }
      })
      yield* Effect.forkAll(times(4, () => fuse.complete("hi")))
      yield* TestClock.adjust(0)

      const fifth = yield* fuse.ask("hi")

      assert.strictEqual(fifth.text, "ok")
      assert.strictEqual(calls, 6)
    })
  )

  it("all places are there after a thousand calls that failed, were retried or interrupted (llm-d-async#311)", () => {
    const time = new ManualTime()
    const limiter = time.run(Limiter.make({ concurrency: 3, maxQueue: 1000, maxWait: "1 hour" }))
    const policy = time.run(RetryPolicy.make({ maxAttempts: 3, baseDelay: 5, jitter: "none" }))
    let inFlight = 0
    let most = 0
    const attempt = (call: number) =>
      Effect.suspend(() => {
        most = Math.max(most, ++inFlight)
        return Effect.sleep(1 + (call % 5))
      }).pipe(
        Effect.zipRight(call % 3 === 0 ? down : call % 7 === 0 ? Effect.die("a bug") : Effect.void),
        Effect.ensuring(Effect.sync(() => void inFlight--))
      )

    for (let call = 0; call < 1000; call++) {
      const fiber = time.fork(
        retry(
          limiter.withRoom({}, () => attempt(call)),
          policy
        )
      )
      time.advance(call % 3)
      if (call % 4 === 0) fiber.unsafeInterruptAsFork(fiber.id())
      time.settle()
    }
    time.advance(60_000)

    assert.strictEqual(most, 3)
    assert.deepStrictEqual(time.run(limiter.snapshot), { inFlight: 0, queued: 0 })
    const four = times(4, () => time.fork(limiter.withRoom({}, () => Effect.never)))
    assert.isTrue(four.every((fiber) => fiber.unsafePoll() === null))
    assert.deepStrictEqual(time.run(limiter.snapshot), { inFlight: 3, queued: 1 })
  })
})

describe("cases: fallback and options", () => {
  it("a rejection that comes after the time limit runs no second fallback (opossum#198)", () => {
    const time = new ManualTime()
    let fallbacks = 0
    const late = Effect.uninterruptible(Effect.delay(down, "2 seconds"))
    const call = late.pipe(
      attemptTimeout("1 second", () => new Down()),
      fallback(() => Effect.sync(() => `fallback ${++fallbacks}`))
    )

    const fiber = time.fork(call)
    time.advance(1000)
    const inTime = fiber.unsafePoll()
    time.advance(60_000)

    assert.deepStrictEqual(inTime, Exit.succeed("fallback 1"))
    assert.strictEqual(fallbacks, 1)
    assert.strictEqual(time.timers, 0)
  })

  it("a zero is a zero and not unset: with maxWait 0 nothing is waited for (opossum#824)", () => {
    const time = new ManualTime()
    const bulkhead = time.run(Bulkhead.make({ concurrency: 1, maxWait: 0 }))
    const limiter = time.run(Limiter.make({ requests: { limit: 60, burst: 1 }, maxWait: 0 }))
    const bucket = time.run(TokenBucket.make({ limit: 60, burst: 1, maxWait: 0 }))
    time.fork(bulkhead.withPermit(Effect.never))
    time.run(limiter.withRoom({}, () => Effect.void))
    time.run(bucket.take())

    const refused = [
      failureOf(time, bulkhead.withPermit(Effect.void)),
      failureOf(
        time,
        limiter.withRoom({}, () => Effect.void)
      ),
      failureOf(time, bucket.take())
    ]

    assert.isTrue(refused.every((error) => error instanceof ThrottledError))
    assert.strictEqual(time.timers, 0)
  })

  it("a zero is a zero and not unset: with baseDelay 0 the next attempt comes at once (opossum#824)", () => {
    const time = new ManualTime()
    let runs = 0
    const failing = Effect.suspend(() => {
      runs += 1
      return down
    })

    const fiber = time.fork(Effect.flip(retry(failing, time.run(RetryPolicy.make({ baseDelay: 0 })))))
    time.advance(0)

    assert.isTrue(Exit.isSuccess(endOf(fiber)))
    assert.deepStrictEqual([runs, time.nowMillis], [3, 0])
  })

  it.effect("the options of the caller are never written to (opossum)", () =>
    Effect.gen(function* () {
      const groq = { name: "groq", complete: () => Effect.succeed("hello"), limits: { requestsPerMinute: 60 } }
      const makeOptions = () =>
        ({
          providers: [groq],
          retry: { maxAttempts: 2, budget: { share: 0.1 } },
          breaker: { failureThreshold: 3, failureRate: { threshold: 0.5 }, reopening: {} },
          limits: { concurrency: 3 },
          timeouts: { attempt: "10 seconds" },
          hedge: { delay: "1 second" },
          cache: { ttl: "1 minute" }
        }) as const
      const makeCall = () => ({ deadline: "5 seconds", providers: ["groq"] }) as const
      const makeRequest = () => ({ messages: [{ role: "user", content: "hi" }], maxTokens: 7 }) as const
      const [options, call, request] = [makeOptions(), makeCall(), makeRequest()].map(frozen) as unknown as [
        ReturnType<typeof makeOptions>,
        ReturnType<typeof makeCall>,
        ReturnType<typeof makeRequest>
      ]

      const fuse = yield* Effect.provide(LlmFuse, LlmFuse.layer(options))
      const answer = yield* fuse.complete(request, call)

      assert.strictEqual(answer.text, "hello")
      assert.deepStrictEqual([options, call, request], [makeOptions(), makeCall(), makeRequest()])
    })
  )
})

/** Frozen to its depths: to write to it throws. */
const frozen = <A>(value: A): A => {
  if (typeof value !== "object" || value === null) return value
  for (const inner of Object.values(value)) frozen(inner)
  return Object.freeze(value)
}
