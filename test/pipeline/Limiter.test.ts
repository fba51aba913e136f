import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Exit, Fiber, TestClock } from "effect"
import { ThrottledError } from "llmfuse"
import * as Limiter from "../../src/pipeline/Limiter.ts"
import type { Options } from "../../src/pipeline/LimiterOptions.ts"
import { interruptAtEveryOperation } from "../interruptAt.ts"
import { ManualTime } from "./manualTime.ts"

/** One request a second, one at once; any wait. */
const slow = { requests: { limit: 60, burst: 1 }, maxWait: "1 hour" } as const

/** Asks for room and notes who got it when. */
const noting = (
  limiter: Limiter.Limiter,
  notes: Array<string>,
  who: string,
  cost: Limiter.Cost = {},
  use: Effect.Effect<unknown> = Effect.void
) =>
  limiter.withRoom(cost, () =>
    Effect.zipRight(
      Effect.map(Clock.currentTimeMillis, (now) => notes.push(`${who} ${now}`)),
      use
    )
  )

/** Forks in a known order: each has done what it can before the next begins. */
const forkInOrder = <A, E>(...effects: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.forEach(effects, (effect) => Effect.zipLeft(Effect.fork(effect), TestClock.adjust(0)))

const millis = (error: ThrottledError) => Duration.toMillis(error.wait)

describe("Limiter", () => {
  it.effect("without options lets everything through", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make()

      const waited = yield* limiter.withRoom({ tokens: 1e9 }, (permit) => Effect.succeed(permit.waited))

      assert.deepStrictEqual(waited, Duration.zero)
      assert.deepStrictEqual(yield* limiter.snapshot, { inFlight: 0, queued: 0 })
    })
  )

  it.effect("takes requests, tokens and a place in flight together", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60 }, tokens: { limit: 1000 }, concurrency: 2 })

      const during = yield* limiter.withRoom({ tokens: 300 }, () => limiter.snapshot)

      assert.deepStrictEqual(during, { requestsLeft: 4, tokensLeft: 700, inFlight: 1, queued: 0 })
      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 4, tokensLeft: 700, inFlight: 0, queued: 0 })
    })
  )

  it.effect("takes nothing of one limit while it waits for another", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({
        requests: { limit: 60 },
        tokens: { limit: 1000 },
        concurrency: 1,
        maxWait: "1 hour"
      })
      const [holder] = yield* forkInOrder(limiter.withRoom({ tokens: 900 }, () => Effect.never))

      const [waiter] = yield* forkInOrder(limiter.withRoom({ tokens: 200 }, () => Effect.void))
      const waiting = yield* limiter.snapshot

      assert.deepStrictEqual(waiting, { requestsLeft: 4, tokensLeft: 100, inFlight: 1, queued: 1 })
      yield* Fiber.interruptAll([waiter, holder].flatMap((fiber) => fiber ?? []))
      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 4, tokensLeft: 100, inFlight: 0, queued: 0 })
    })
  )

  it.effect("tells the exact wait, and which limit it is, before it waits", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({
        requests: { limit: 60, burst: 1 },
        tokens: { limit: 600 },
        maxWait: "3 seconds"
      })
      yield* limiter.withRoom({ tokens: 590 }, () => Effect.void)

      const forRequests = yield* Effect.flip(
        limiter.withRoom({ tokens: 1, atMost: Duration.millis(999) }, () => Effect.void)
      )
      const forTokens = yield* Effect.flip(limiter.withRoom({ tokens: 60 }, () => Effect.void))

      assert.instanceOf(forRequests, ThrottledError)
      assert.strictEqual(millis(forRequests), 1000)
      assert.strictEqual(forRequests.limit, "requests")
      assert.strictEqual(millis(forTokens), 5000)
      assert.strictEqual(forTokens.limit, "tokens")
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    })
  )

  it.effect("counts those ahead into the wait, and that a full bucket gains nothing meanwhile", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({
        requests: { limit: 60, burst: 1 },
        tokens: { limit: 600, burst: 100 },
        maxWait: "30 seconds"
      })
      yield* limiter.withRoom({ tokens: 100 }, () => Effect.void)
      yield* forkInOrder(limiter.withRoom({ tokens: 100 }, () => Effect.void))

      // At 10 s the one ahead has its tokens; the second request has been there since 1 s, the third comes at 11 s.
      const error = yield* Effect.flip(
        limiter.withRoom({ tokens: 0, atMost: Duration.millis(10_999) }, () => Effect.void)
      )

      assert.strictEqual(millis(error), 11_000)
    })
  )

  it.effect("refuses at once what the bucket can never hold, instead of waiting for ever (smithy-rs#4749)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 1000 }, maxWait: "1 hour" }, "groq")

      for (const tokens of [1001, Number.POSITIVE_INFINITY, Number.NaN, -1]) {
        const error = yield* Effect.flip(limiter.withRoom({ tokens }, () => Effect.void))
        assert.strictEqual(millis(error), Number.POSITIVE_INFINITY)
        assert.strictEqual(error.limit, "tokens")
        assert.strictEqual(
          error.message,
          "groq: throttled by our own limit: asks for more tokens than the bucket holds"
        )
      }
      yield* limiter.withRoom({ tokens: 1000 }, () => Effect.void)
    })
  )

  it.effect("fails at once when it knows that the wait is too long (resilience4j#1283)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ ...slow, maxWait: "2 seconds" })
      yield* limiter.withRoom({}, () => Effect.void)
      yield* forkInOrder(
        limiter.withRoom({}, () => Effect.void),
        limiter.withRoom({}, () => Effect.void)
      )

      const error = yield* Effect.flip(limiter.withRoom({}, () => Effect.void))

      assert.strictEqual(millis(error), 3000)
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    })
  )

  it.effect("a large call is not starved by small ones that come later", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 600, burst: 100 }, maxWait: "1 hour" })
      const notes: Array<string> = []
      yield* limiter.withRoom({ tokens: 100 }, () => Effect.void)

      const fibers = yield* forkInOrder(
        noting(limiter, notes, "large", { tokens: 100 }),
        noting(limiter, notes, "small", { tokens: 1 }),
        noting(limiter, notes, "smaller", { tokens: 0 })
      )
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(notes, ["large 10000", "small 10100", "smaller 10100"])
    })
  )

  it.effect("a newcomer never overtakes, not even in the moment in which a place becomes free", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ concurrency: 1, maxWait: "1 hour" })
      const notes: Array<string> = []
      const end = yield* Deferred.make<void>()
      yield* forkInOrder(noting(limiter, notes, "first", {}, Deferred.await(end)), noting(limiter, notes, "second"))

      const newcomer = yield* Effect.fork(Effect.zipRight(Deferred.await(end), noting(limiter, notes, "newcomer")))
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(newcomer)

      assert.deepStrictEqual(notes, ["first 0", "second 0", "newcomer 0"])
    })
  )

  it.effect("waiters of different keys take turns, so that one tenant does not starve the queue (bike4mind#2841)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make(slow)
      const notes: Array<string> = []
      yield* limiter.withRoom({}, () => Effect.void)

      const fibers = yield* forkInOrder(
        ...["a1", "a2", "a3", "a4", "b1", "b2", "c1"].map((who) =>
          noting(limiter, notes, who, { key: who.slice(0, 1) })
        )
      )
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(
        notes.map((note) => note.split(" ")[0]),
        ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
      )
    })
  )

  it.effect("a tenant whose queue is full leaves the queue of another open", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ concurrency: 1, maxQueue: 1, maxWait: "1 hour" })
      const ask = (key: string) => limiter.withRoom({ key }, () => Effect.never)
      yield* forkInOrder(ask("a"), ask("a"))

      const error = yield* Effect.flip(ask("a"))
      yield* forkInOrder(ask("b"))

      assert.strictEqual(error.limit, "concurrency")
      assert.strictEqual((yield* limiter.snapshot).queued, 2)
    })
  )

  it.effect("the wait of a key counts the turns of the others", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make(slow)
      yield* limiter.withRoom({}, () => Effect.void)
      const ask = (key: string) => limiter.withRoom({ key }, () => Effect.void)
      yield* forkInOrder(ask("a"), ask("a"), ask("a"), ask("b"))

      const third = yield* Effect.flip(limiter.withRoom({ key: "b", atMost: Duration.zero }, () => Effect.void))
      const fresh = yield* Effect.flip(limiter.withRoom({ key: "c", atMost: Duration.zero }, () => Effect.void))

      // a, b, a, b, a and a, b, c
      assert.strictEqual(millis(third), 4000)
      assert.strictEqual(millis(fresh), 3000)
    })
  )

  it.effect(
    "parallel bursts never overshoot: tokens are reserved before, not counted after (litellm#8430, #18518)",
    () =>
      Effect.gen(function* () {
        const limiter = yield* Limiter.make({
          requests: { limit: 100, burst: 100 },
          tokens: { limit: 1000 },
          maxWait: 0
        })

        const exits = yield* Effect.all(
          Array.from({ length: 50 }, () => Effect.exit(limiter.withRoom({ tokens: 30 }, () => Effect.sleep(1)))),
          { concurrency: "unbounded" }
        ).pipe(Effect.zipLeft(TestClock.adjust(1), { concurrent: true }))

        assert.strictEqual(exits.filter(Exit.isSuccess).length, 33)
      })
  )

  it.effect("reconciles the reservation with the real usage, below zero if need be", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 600 }, maxWait: 0 })
      const tokensAfter = (actual: number) =>
        limiter.withRoom({ tokens: 100 }, ({ reconcile }) =>
          Effect.zipRight(
            reconcile(actual),
            Effect.map(limiter.snapshot, ({ tokensLeft }) => tokensLeft)
          )
        )

      assert.strictEqual(yield* tokensAfter(40), 560)
      assert.strictEqual(yield* tokensAfter(Number.NaN), 460)
      assert.strictEqual(yield* tokensAfter(900), -440)
      const error = yield* Effect.flip(limiter.withRoom({ tokens: 10 }, () => Effect.void))
      assert.strictEqual(millis(error), 45_000)
    })
  )

  it.effect("the last word on the usage counts, also after the call has ended", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 600 } })

      const permit = yield* limiter.withRoom({ tokens: 100 }, (permit) =>
        Effect.zipRight(Effect.zipRight(permit.reconcile(300), permit.reconcile(200)), Effect.succeed(permit))
      )
      const before = (yield* limiter.snapshot).tokensLeft
      yield* permit.reconcile(50)

      assert.strictEqual(before, 400)
      assert.strictEqual((yield* limiter.snapshot).tokensLeft, 550)
    })
  )

  it.effect("no usage, however wrong, brings the bucket lower than what an interval makes good", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 600, burst: 60 } })

      yield* limiter.withRoom({ tokens: 1 }, ({ reconcile }) => reconcile(Number.MAX_VALUE))

      assert.strictEqual((yield* limiter.snapshot).tokensLeft, -600)
    })
  )

  it.effect("a refund gives the tokens of a failed call back, once, and never the request", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60 }, tokens: { limit: 600 } })

      yield* limiter.withRoom({ tokens: 100 }, ({ refund }) => Effect.zipRight(refund, refund))

      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 4, tokensLeft: 600, inFlight: 0, queued: 0 })
    })
  )

  it.effect("tokens given back let the waiters go on earlier", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 600, burst: 100 }, maxWait: "1 hour" })
      const notes: Array<string> = []
      yield* forkInOrder(limiter.withRoom({ tokens: 100 }, ({ refund }) => Effect.zipRight(Effect.sleep(500), refund)))
      yield* forkInOrder(noting(limiter, notes, "waiter", { tokens: 100 }))

      yield* TestClock.adjust("1 second")

      assert.deepStrictEqual(notes, ["waiter 500"])
    })
  )

  it.effect("the place is given back exactly once on success, failure, defect and interruption", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ concurrency: 3 })
      const ends: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        Effect.void,
        Effect.fail("no"),
        Effect.die("bug"),
        Effect.interrupt
      ]

      for (const end of ends) {
        yield* Effect.exit(limiter.withRoom({}, () => end))
        assert.strictEqual((yield* limiter.snapshot).inFlight, 0)
      }
      yield* Effect.exit(
        limiter.withRoom({}, (): Effect.Effect<void> => {
          throw new TypeError("in the function itself")
        })
      )
      assert.strictEqual((yield* limiter.snapshot).inFlight, 0)
    })
  )

  it.effect("a waiter that timed out is never handed the place (failsafe#393)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ concurrency: 1, maxWait: "1 second" })
      const end = yield* Deferred.make<void>()
      yield* forkInOrder(limiter.withRoom({}, () => Deferred.await(end)))
      const [waiter] = yield* forkInOrder(Effect.flip(limiter.withRoom({}, () => Effect.void)))
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(end, undefined)
      yield* TestClock.adjust(0)

      const error = waiter && (yield* Fiber.join(waiter))

      assert.strictEqual(error?._tag === "ThrottledError" ? error.limit : undefined, "concurrency")
      assert.deepStrictEqual(yield* limiter.snapshot, { inFlight: 0, queued: 0 })
      yield* limiter.withRoom({}, () => Effect.void)
    })
  )

  it.effect("a cancelled waiter leaves its place in the queue at once (dotnet/runtime#64078)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ concurrency: 1, maxQueue: 1, maxWait: "1 hour" })
      yield* forkInOrder(limiter.withRoom({}, () => Effect.never))
      const [waiter] = yield* forkInOrder(limiter.withRoom({}, () => Effect.void))

      if (waiter) yield* Fiber.interrupt(waiter)
      yield* forkInOrder(limiter.withRoom({}, () => Effect.void))

      assert.strictEqual((yield* limiter.snapshot).queued, 1)
    })
  )

  it.effect("an interrupted first waiter does not block those behind it (golang/go#56924)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ tokens: { limit: 600, burst: 100 }, maxWait: "1 hour" })
      const notes: Array<string> = []
      yield* limiter.withRoom({ tokens: 100 }, () => Effect.void)
      const [first] = yield* forkInOrder(
        limiter.withRoom({ tokens: 100 }, () => Effect.void),
        Effect.asVoid(noting(limiter, notes, "second", { tokens: 10 }))
      )
      yield* TestClock.adjust(500)

      if (first) yield* Fiber.interrupt(first)
      yield* TestClock.adjust("1 minute")

      assert.deepStrictEqual(notes, ["second 1000"])
    })
  )

  it.effect("nobody is stuck although it is idle (bottleneck#194)", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 6000, burst: 2 }, concurrency: 2, maxWait: "1 minute" })
      const call = limiter.withRoom({}, () => Effect.sleep(15))

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 40 }, (_, index) => Effect.exit(index % 3 === 0 ? Effect.timeout(call, 20) : call)),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 2, inFlight: 0, queued: 0 })
    })
  )

  it.effect("with maxQueue 0 nobody waits for a place, but still for the rate", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ ...slow, concurrency: 1, maxQueue: 0 })
      const notes: Array<string> = []
      yield* limiter.withRoom({}, () => Effect.void)
      const [waiter] = yield* forkInOrder(noting(limiter, notes, "waiter", {}, Effect.sleep(100)))
      yield* TestClock.adjust(1050)

      const error = yield* Effect.flip(limiter.withRoom({}, () => Effect.void))

      assert.deepStrictEqual(notes, ["waiter 1000"])
      assert.deepStrictEqual([error.limit, millis(error)], ["concurrency", 0])
      yield* TestClock.adjust(50)
      if (waiter) yield* Fiber.join(waiter)
    })
  )

  it.effect("a hint lets nothing through before it is over; then waiters come at the rate, not together", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60, burst: 5 }, maxWait: "1 hour" })
      const notes: Array<string> = []

      yield* limiter.blockFor("20 seconds")
      const fibers = yield* forkInOrder(...["a", "b", "c"].map((who) => noting(limiter, notes, who)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(notes, ["a 20000", "b 21000", "c 22000"])
    })
  )

  it.effect("a hint fails at once those who already wait and cannot wait so long", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ ...slow, concurrency: 9, maxWait: "5 seconds" })
      yield* limiter.withRoom({}, () => Effect.void)
      const fibers = yield* forkInOrder(
        Effect.flip(limiter.withRoom({}, () => Effect.void)),
        Effect.flip(limiter.withRoom({}, () => Effect.void))
      )

      yield* limiter.blockFor("20 seconds")
      yield* TestClock.adjust(0)
      const errors = yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(
        errors.map((error) => error._tag === "ThrottledError" && millis(error)),
        [20_000, 20_000]
      )
      assert.strictEqual((yield* limiter.snapshot).queued, 0)
    })
  )

  it.effect("a shorter hint does not shorten a block, and none is longer than a day", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ maxWait: 0 })
      const wait = Effect.map(Effect.flip(limiter.withRoom({}, () => Effect.void)), millis)

      yield* limiter.blockFor("20 seconds")
      yield* limiter.blockFor("1 second")
      yield* limiter.blockFor(Number.NaN)
      assert.strictEqual(yield* wait, 20_000)
      yield* limiter.blockFor(Duration.infinity)
      assert.strictEqual(yield* wait, 86_400_000)
      yield* TestClock.adjust("1 day")
      yield* limiter.withRoom({}, () => Effect.void)
    })
  )

  it.effect("what the vendor says remains lowers the bucket, less what other calls in flight have reserved", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60, burst: 50 }, tokens: { limit: 1000 } })
      yield* forkInOrder(limiter.withRoom({ tokens: 100 }, () => Effect.never))

      yield* limiter.withRoom({ tokens: 50 }, (permit) =>
        limiter.correct({ requests: { remaining: 10 }, tokens: { remaining: 400 } }, permit)
      )

      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 9, tokensLeft: 300, inFlight: 1, queued: 0 })
    })
  )

  it.effect("what the vendor says never raises the bucket above what our own options allow", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60, burst: 5 }, tokens: { limit: 1000 } })
      yield* limiter.withRoom({ tokens: 100 }, () => Effect.void)

      yield* limiter.correct({ requests: { remaining: 1e6 }, tokens: { remaining: 1e9, resetMillis: 1 } })

      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 4, tokensLeft: 900, inFlight: 0, queued: 0 })
    })
  )

  it.effect("where the vendor says that nothing remains, nothing goes before the reset", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60, burst: 5 }, maxWait: "1 minute" })
      const notes: Array<string> = []

      yield* limiter.correct({ requests: { remaining: 0, resetMillis: 20_000 } })
      const fibers = yield* forkInOrder(...["a", "b"].map((who) => noting(limiter, notes, who)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(notes, ["a 20000", "b 21000"])
    })
  )

  it.effect("names the limit that the vendor says is used up, also one that we do not know of", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ concurrency: 1 })

      yield* limiter.correct({ tokens: { remaining: 0, resetMillis: 20_000 } })
      const error = yield* Effect.flip(limiter.withRoom({}, () => Effect.void))

      assert.deepStrictEqual([error.limit, millis(error)], ["tokens", 20_000])
    })
  )

  it.effect("numbers of a vendor that make no sense are passed over", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60 }, tokens: { limit: 1000 } })

      for (const wrong of [Number.NaN, -1, Number.POSITIVE_INFINITY, "0", null, {}]) {
        const seen = { remaining: wrong as number, resetMillis: wrong as number }
        yield* limiter.correct({ requests: seen, tokens: seen })
        yield* limiter.correct({ requests: { remaining: 5, resetMillis: wrong as number } })
      }

      assert.deepStrictEqual(yield* limiter.snapshot, { requestsLeft: 5, tokensLeft: 1000, inFlight: 0, queued: 0 })
    })
  )

  it.effect("another rate keeps what has been saved up, and a new one begins with nothing", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ requests: { limit: 60, burst: 10 } })
      yield* limiter.withRoom({}, () => Effect.void)
      const unlimited = yield* Limiter.make()

      yield* limiter.setRate({ limit: 6 })
      yield* unlimited.setRate({ limit: 60 })
      assert.strictEqual((yield* limiter.snapshot).requestsLeft, 9)
      assert.strictEqual((yield* unlimited.snapshot).requestsLeft, 0)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* limiter.snapshot).requestsLeft, 9.5)
      assert.strictEqual((yield* unlimited.snapshot).requestsLeft, 5)
      for (const limit of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) yield* limiter.setRate({ limit })
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* limiter.snapshot).requestsLeft, 10)
    })
  )

  it.effect("waiters go by a new rate from the moment it is set", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({ ...slow, requests: { limit: 1, burst: 1 } })
      const notes: Array<string> = []
      yield* limiter.withRoom({}, () => Effect.void)
      const fibers = yield* forkInOrder(...["a", "b"].map((who) => noting(limiter, notes, who)))

      yield* limiter.setRate({ limit: 60 })
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)

      assert.deepStrictEqual(notes, ["a 1000", "b 2000"])
    })
  )

  it("with room and nobody waiting it sets no timer; while many wait, one each, and none when they are gone", () => {
    const time = new ManualTime()
    const limiter = time.run(Limiter.make(slow))
    const call = limiter.withRoom({}, () => Effect.void)

    time.run(call)
    assert.strictEqual(time.timers, 0)
    const waiters = [time.fork(call), time.fork(call), time.fork(call)]
    assert.strictEqual(time.timers, 3)
    for (const waiter of waiters) waiter.unsafeInterruptAsFork(waiter.id())
    time.settle()
    assert.strictEqual(time.timers, 0)
  })

  it("a clock that steps back an hour or forward a year leaves nobody stuck and nothing beyond the burst", () => {
    for (const jump of [-3_600_000, 365 * 24 * 3_600_000]) {
      const time = new ManualTime()
      time.jump(5_000_000)
      const limiter = time.run(Limiter.make({ ...slow, tokens: { limit: 600 }, concurrency: 5 }))
      const served: Array<number> = []
      const call = limiter.withRoom({ tokens: 1 }, () => Effect.sync(() => served.push(time.nowMillis)))
      time.run(call)
      time.run(limiter.blockFor("2 seconds"))
      for (let count = 0; count < 4; count++) time.fork(call)

      time.jump(jump)
      const start = time.nowMillis
      time.advance(10_000)

      const after = served.slice(1).map((at) => at - start)
      // Forward: the first finds its time come, the others find that they have waited long enough. Back: at worst the 2 s
      // of the block that had begun are waited for again.
      assert.strictEqual(after.length, jump > 0 ? 1 : 4)
      assert.isAtMost(Math.max(...after), jump > 0 ? 2000 : 7000)
      assert.isTrue(after.every((at, index) => index === 0 || at - (after[index - 1] ?? 0) >= 1000))
      const left = time.run(limiter.snapshot)
      assert.isAtMost(left.requestsLeft ?? 0, 1)
      assert.deepStrictEqual([left.inFlight, left.queued], [0, 0])
      time.advance(1000)
      time.run(call)
    }
  })

  it.effect("waits beyond 2^31-1 ms are refused, not turned into a timer that fires at once or never", () =>
    Effect.gen(function* () {
      const limiter = yield* Limiter.make({
        requests: { limit: 1, interval: "24 days", burst: 1 },
        maxWait: 2 ** 31 - 1
      })
      yield* limiter.withRoom({}, () => Effect.void)
      const [waiter] = yield* forkInOrder(limiter.withRoom({}, () => Clock.currentTimeMillis))

      const error = yield* Effect.flip(limiter.withRoom({ atMost: Duration.infinity }, () => Effect.void))
      yield* TestClock.adjust("24 days")

      assert.strictEqual(millis(error), Duration.toMillis("48 days"))
      assert.strictEqual(waiter && (yield* Fiber.join(waiter)), Duration.toMillis("24 days"))
    })
  )

  it("loses nothing wherever a caller is interrupted: at once, waiting for the rate, waiting for a place", async () => {
    let total = 0
    for (const kind of ["at once", "rate", "place"] as const) {
      total += await interruptAtEveryOperation(() => {
        const limiter = Effect.runSync(
          Limiter.make({
            requests: { limit: kind === "rate" ? 600_000 : 1, interval: kind === "rate" ? 60_000 : "1 hour", burst: 2 },
            tokens: { limit: kind === "rate" ? 1e6 : 100, interval: kind === "rate" ? 60_000 : "1 hour" },
            concurrency: 1
          })
        )
        let hasBegun = false
        const use = Effect.sync(() => {
          hasBegun = true
        })
        const one = limiter.withRoom({ tokens: 10 }, () => use)
        const run =
          kind === "at once"
            ? one
            : kind === "rate"
              ? Effect.zipRight(Effect.zipRight(one, one), one)
              : Effect.zipRight(
                  Effect.fork(limiter.withRoom({}, () => Effect.sleep(2))),
                  Effect.zipRight(Effect.yieldNow(), one)
                )
        return {
          run,
          check: async (_, operation) => {
            const where = `${kind}, operation ${operation}`
            if (kind !== "at once") await Effect.runPromise(Effect.sleep(kind === "rate" ? 2 : 6))
            const { requestsLeft = 0, tokensLeft = 0, inFlight, queued } = Effect.runSync(limiter.snapshot)
            assert.deepStrictEqual([inFlight, queued], [0, 0], where)
            if (kind === "at once") {
              const isSpent = requestsLeft < 1.5
              assert.closeTo(requestsLeft, isSpent ? 1 : 2, 0.01, where)
              assert.closeTo(tokensLeft, isSpent ? 90 : 100, 0.01, where)
              assert.isTrue(isSpent || !hasBegun, where)
            }
            await Effect.runPromise(limiter.withRoom({ tokens: 1 }, () => Effect.void).pipe(Effect.ignore))
            assert.strictEqual(Effect.runSync(limiter.snapshot).inFlight, 0, where)
          }
        }
      })
    }
    assert.isAbove(total, 100)
  })

  it("gives nothing back twice and loses no correction wherever a reconciling call is interrupted", async () => {
    await interruptAtEveryOperation(() => {
      const limiter = Effect.runSync(Limiter.make({ tokens: { limit: 100, interval: "1 hour" }, concurrency: 1 }))
      let isReconciled = false
      const run = limiter.withRoom({ tokens: 10 }, ({ reconcile }) =>
        Effect.zipRight(
          reconcile(30),
          Effect.sync(() => {
            isReconciled = true
          })
        )
      )
      return {
        run,
        check: (_, operation) => {
          const { tokensLeft = 0, inFlight } = Effect.runSync(limiter.snapshot)
          const levels = isReconciled ? [70] : [100, 90, 70]
          assert.isTrue(
            levels.some((level) => Math.abs(level - tokensLeft) < 0.01),
            `${tokensLeft} at operation ${operation}`
          )
          assert.strictEqual(inFlight, 0)
        }
      }
    })
  })

  const poison = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, true, "5", null, {}]
  const wrong: ReadonlyArray<readonly [option: string, options: object]> = [
    ...poison.flatMap(
      (value): ReadonlyArray<readonly [string, object]> => [
        ["limits.requests.limit", { requests: { limit: value } }],
        ["limits.tokens.limit", { tokens: { limit: value } }],
        ["limits.requests.burst", { requests: { limit: 1, burst: value === null ? 0 : value } }],
        ["limits.tokens.burst", { tokens: { limit: 1, burst: value } }],
        ["limits.concurrency", { concurrency: value }],
        ...(value === 0 ? [] : [["limits.maxQueue", { maxQueue: value }] as const])
      ]
    ),
    ...[Number.NaN, Number.POSITIVE_INFINITY, -1, true, {}].flatMap(
      (value): ReadonlyArray<readonly [string, object]> => [
        ["limits.requests.interval", { requests: { limit: 1, interval: value } }],
        ["limits.maxWait", { maxWait: value }]
      ]
    ),
    ["limits.tokens.interval", { tokens: { limit: 1, interval: 0 } }],
    ["limits.requests.burst", { requests: { limit: 1, burst: 1.5 } }],
    ["limits.concurrency", { concurrency: 1.5 }],
    ["limits.maxQueue", { maxQueue: 0.5 }],
    ...[0, false, "", 5, []].flatMap(
      (value): ReadonlyArray<readonly [string, object]> => [
        ["limits.requests", { requests: value }],
        ["limits.tokens", { tokens: value }]
      ]
    ),
    ["limits.rate", { rate: 1 }],
    ["limits.requests.per", { requests: { limit: 1, per: 1 } }]
  ]

  it("refuses every option that is not what it should be, and names it", () => {
    for (const [option, options] of wrong) {
      const exit = Effect.runSyncExit(Limiter.make(options as Options))
      assert.isTrue(Exit.isFailure(exit), `${option}: ${JSON.stringify(options)}`)
      assert.match(String(exit), new RegExp(`${option.replaceAll(".", "\\.")} is `), option)
    }
  })
})
