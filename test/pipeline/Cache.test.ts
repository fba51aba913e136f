import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Deferred, Effect, Either, Exit, Fiber, TestClock } from "effect"
import * as Cache from "../../src/pipeline/Cache.ts"
import * as CacheStore from "../../src/pipeline/CacheStore.ts"
import { interruptAtEveryOperation } from "../interruptAt.ts"

const rules = { ttl: "10 seconds", staleIfError: "1 minute" } as const

/** An effect that counts its runs and answers "1", "2", ... after a while. */
const counting = (millis = 0) => {
  const seen = { runs: 0, cleanUps: 0 }
  const effect = Effect.suspend(() => {
    seen.runs += 1
    return Effect.as(millis === 0 ? Effect.void : Effect.sleep(millis), String(seen.runs))
  }).pipe(Effect.onInterrupt(() => Effect.sync(() => (seen.cleanUps += 1))))
  return { seen, effect }
}

const settle = TestClock.adjust(0)

/** The clock in force, with its wall time moved; the time that passes stays as it is. */
const withWallMovedBy =
  (millis: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.clockWith((clock) => {
      const moved: Clock.Clock = {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        sleep: (duration) => clock.sleep(duration),
        unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() + millis,
        unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
        currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis),
        currentTimeNanos: clock.currentTimeNanos
      }
      return Effect.withClock(effect, moved)
    })

describe("Cache: fresh and stale", () => {
  it.effect("serves a kept value until it is exactly ttl old, and says how old it is", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { seen, effect } = counting()

      const first = yield* cache.through("key", effect)
      yield* TestClock.adjust(9_999)
      const second = yield* cache.through("key", effect)
      yield* TestClock.adjust(1)
      const third = yield* cache.through("key", effect)

      assert.deepStrictEqual(first, { value: "1", source: "miss", ageMillis: 0 })
      assert.deepStrictEqual(second, { value: "1", source: "fresh", ageMillis: 9_999 })
      assert.deepStrictEqual(third, { value: "2", source: "miss", ageMillis: 0 })
      assert.strictEqual(seen.runs, 2)
    })
  )

  it.effect("counts the age from the end of the run", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { effect } = counting(8_000)
      const fiber = yield* Effect.fork(cache.through("key", effect))
      yield* TestClock.adjust(8_000)
      yield* Fiber.join(fiber)

      yield* TestClock.adjust(9_000)

      assert.strictEqual((yield* cache.through("key", effect)).ageMillis, 9_000)
    })
  )

  it.effect("keeps keys apart, also those that objects have by themselves", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      for (const key of ["a", "b", "", "__proto__", "constructor"]) {
        assert.strictEqual((yield* cache.through(key, Effect.succeed(key))).source, "miss")
      }
      assert.strictEqual((yield* cache.through("__proto__", Effect.succeed("new"))).value, "__proto__")
    })
  )

  it.effect("serves a stale value when the run fails, with the failure, until staleIfError is over", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)
      yield* cache.through("key", Effect.succeed("old"))

      yield* TestClock.adjust(69_999)
      const stale = yield* cache.through("key", Effect.fail("down"))
      yield* TestClock.adjust(1)
      const error = yield* Effect.flip(cache.through("key", Effect.fail("down")))

      assert.deepStrictEqual(stale, { value: "old", source: "stale", ageMillis: 69_999, error: "down" })
      assert.strictEqual(error, "down")
    })
  )

  it.effect("a value that grew too old while the run was failing is not served", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)
      yield* cache.through("key", Effect.succeed("old"))
      yield* TestClock.adjust(60_000)

      const fiber = yield* Effect.fork(cache.through("key", Effect.zipRight(Effect.sleep(10_000), Effect.fail("down"))))
      yield* TestClock.adjust(10_000)

      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.fail("down"))
    })
  )

  it.effect("serves nothing stale unless asked for", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>({ ttl: 1000 })
      yield* cache.through("key", Effect.succeed("old"))
      yield* TestClock.adjust(1000)

      assert.strictEqual(yield* Effect.flip(cache.through("key", Effect.fail("down"))), "down")
      assert.deepStrictEqual((yield* cache.snapshot).size, { entries: 0, bytes: 0 })
    })
  )

  it.effect("mayServeStale says which failures a stale value may stand in for; never a defect or an interruption", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>({ ...rules, mayServeStale: (error) => error === "down" })
      yield* cache.through("key", Effect.succeed("old"))
      yield* TestClock.adjust("10 seconds")

      const refused = yield* Effect.exit(cache.through("key", Effect.fail("refused")))
      const defect = yield* Effect.exit(cache.through("key", Effect.die("bug")))
      const interrupted = yield* Effect.exit(cache.through("key", Effect.interrupt))
      const down = yield* cache.through("key", Effect.fail("down"))

      assert.deepStrictEqual(refused, Exit.fail("refused"))
      assert.deepStrictEqual(defect, Exit.die("bug"))
      assert.isTrue(Exit.isInterrupted(interrupted))
      assert.strictEqual(down.source, "stale")
    })
  )

  it.effect("a failure is not kept: the next caller runs", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)

      yield* Effect.flip(cache.through("key", Effect.fail("down")))

      assert.strictEqual((yield* cache.through("key", Effect.succeed("up"))).source, "miss")
    })
  )

  it.effect("isKept says what is kept; what was kept before it may still help out", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>({ ...rules, isKept: (value) => value !== "half" })
      yield* cache.through("key", Effect.succeed("whole"))
      yield* TestClock.adjust("10 seconds")

      const half = yield* cache.through("key", Effect.succeed("half"))
      const stale = yield* cache.through("key", Effect.fail("down"))

      assert.deepStrictEqual([half.source, half.value], ["miss", "half"])
      assert.deepStrictEqual([stale.source, stale.value], ["stale", "whole"])
    })
  )

  it.effect("an incomplete answer is not kept and replayed for an hour (gonka#1722)", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<{ text: string; isComplete: boolean }>({
        ttl: "1 hour",
        isKept: ({ isComplete }) => isComplete
      })

      yield* cache.through("key", Effect.succeed({ text: "The answer is", isComplete: false }))
      const next = yield* cache.through("key", Effect.succeed({ text: "The answer is 42.", isComplete: true }))

      assert.strictEqual(next.source, "miss")
      assert.strictEqual(next.value.text, "The answer is 42.")
    })
  )

  it.effect("a hook that throws is a defect of the callers who meet it", () =>
    Effect.gen(function* () {
      const broken = () => JSON.parse("{")
      const exits = [
        yield* Effect.exit((yield* Cache.make({ ttl: 1, isKept: broken })).through("key", Effect.succeed(1))),
        yield* Effect.exit((yield* Cache.make({ ttl: 1, sizeOf: broken })).through("key", Effect.succeed(1)))
      ]

      for (const exit of exits) assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
    })
  )

  it.effect("a clock set back an hour or forward a year changes nothing", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)
      yield* cache.through("key", Effect.succeed("old"))

      yield* TestClock.adjust(5_000)
      const back = yield* withWallMovedBy(-3_600_000)(cache.through("key", Effect.fail("down")))
      yield* TestClock.adjust(4_999)
      const forward = yield* withWallMovedBy(365 * 86_400_000)(cache.through("key", Effect.fail("down")))
      yield* TestClock.adjust(1)
      const stale = yield* withWallMovedBy(-3_600_000)(cache.through("key", Effect.fail("down")))

      assert.deepStrictEqual([back.source, back.ageMillis], ["fresh", 5_000])
      assert.deepStrictEqual([forward.source, forward.ageMillis], ["fresh", 9_999])
      assert.deepStrictEqual([stale.source, stale.ageMillis], ["stale", 10_000])
    })
  )

  it.effect("even a clock that really steps back makes no age negative", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      yield* TestClock.setTime(100_000)
      yield* cache.through("key", Effect.succeed("old"))

      yield* TestClock.setTime(0)

      assert.strictEqual((yield* cache.through("key", Effect.succeed("new"))).ageMillis, 0)
    })
  )

  it.effect("without a key it runs every time", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { seen, effect } = counting()

      yield* cache.through(undefined, effect)
      const second = yield* cache.through(undefined, effect)

      assert.deepStrictEqual(second, { value: "2", source: "miss", ageMillis: 0 })
      assert.strictEqual(seen.runs, 2)
      assert.deepStrictEqual((yield* cache.snapshot).size, { entries: 0, bytes: 0 })
    })
  )
})

describe("Cache: one flight per key", () => {
  it.effect("100 concurrent callers share one run; the first made it, the others share it", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { seen, effect } = counting(1000)

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 100 }, () => cache.through("key", effect)),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust(1000)
      const served = yield* Fiber.join(fiber)

      assert.strictEqual(seen.runs, 1)
      assert.isTrue(served.every(({ value }) => value === "1"))
      assert.strictEqual(served.filter(({ source }) => source === "miss").length, 1)
      assert.strictEqual(served.filter(({ source }) => source === "shared").length, 99)
      assert.deepStrictEqual((yield* cache.snapshot).served, { fresh: 0, stale: 0, shared: 99, miss: 1 })
    })
  )

  it.effect("other keys run beside it", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { seen, effect } = counting(1000)

      const fibers = yield* Effect.forEach(["a", "b", "c"], (key) => Effect.fork(cache.through(key, effect)))
      yield* settle
      const { flights } = yield* cache.snapshot
      yield* TestClock.adjust(1000)
      yield* Fiber.joinAll(fibers)

      assert.strictEqual(flights, 3)
      assert.strictEqual(seen.runs, 3)
      assert.strictEqual((yield* cache.snapshot).flights, 0)
    })
  )

  it.effect("interrupting the one who began it does not end it for the others", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { seen, effect } = counting(1000)
      const first = yield* Effect.fork(cache.through("key", effect))
      yield* settle
      const second = yield* Effect.fork(cache.through("key", effect))
      yield* TestClock.adjust(500)

      const exit = yield* Fiber.interrupt(first)
      yield* TestClock.adjust(500)

      assert.isTrue(Exit.isInterrupted(exit))
      assert.strictEqual((yield* Fiber.join(second)).source, "shared")
      assert.deepStrictEqual(seen, { runs: 1, cleanUps: 0 })
      assert.strictEqual((yield* cache.through("key", effect)).source, "fresh")
    })
  )

  it.effect("interrupting the last who waits ends it at once, and waits for its cleanup", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const isClean = yield* Deferred.make<void>()
      let hasEnded = false
      const slowToEnd = Effect.onInterrupt(Effect.never, () =>
        Effect.zipRight(
          Deferred.await(isClean),
          Effect.sync(() => (hasEnded = true))
        )
      )
      const first = yield* Effect.fork(cache.through("key", slowToEnd))
      yield* settle
      const second = yield* Effect.fork(cache.through("key", slowToEnd))
      yield* settle

      yield* Fiber.interrupt(second)
      const { flights } = yield* cache.snapshot
      const ending = yield* Effect.fork(Fiber.interrupt(first))
      yield* settle
      const before = ending.unsafePoll()
      yield* Deferred.succeed(isClean, undefined)
      yield* Fiber.join(ending)

      assert.strictEqual(flights, 1)
      assert.isNull(before)
      assert.isTrue(hasEnded)
    })
  )

  it.effect("who comes while a run is being interrupted begins a new one", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const isClean = yield* Deferred.make<void>()
      const first = yield* Effect.fork(
        cache.through(
          "key",
          Effect.onInterrupt(Effect.never, () => Deferred.await(isClean))
        )
      )
      yield* settle
      const ending = yield* Effect.fork(Fiber.interrupt(first))
      yield* settle

      const next = yield* cache.through("key", Effect.succeed("new"))

      assert.isNull(ending.unsafePoll())
      assert.deepStrictEqual([next.source, next.value], ["miss", "new"])
      yield* Deferred.succeed(isClean, undefined)
      yield* Fiber.join(ending)
      assert.strictEqual((yield* cache.through("key", Effect.succeed("newer"))).value, "new")
    })
  )

  it.effect("a run that succeeds in spite of its interruption replaces nothing newer", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const stubborn = Effect.uninterruptible(Effect.as(Effect.sleep(1000), "late"))
      const first = yield* Effect.fork(cache.through("key", stubborn))
      yield* settle
      const ending = yield* Effect.fork(Fiber.interrupt(first))
      yield* settle
      yield* cache.through("key", Effect.succeed("new"))

      yield* TestClock.adjust(1000)
      yield* Fiber.join(ending)

      assert.strictEqual((yield* cache.through("key", Effect.succeed("newer"))).value, "new")
    })
  )

  it.effect("each caller has a deadline of its own", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { seen, effect } = counting(1000)

      const hasty = yield* Effect.fork(Effect.timeout(cache.through("key", effect), 100))
      yield* settle
      const patient = yield* Effect.fork(Effect.timeout(cache.through("key", effect), 5000))
      yield* TestClock.adjust(1000)

      assert.isTrue(Exit.isFailure(yield* Fiber.await(hasty)))
      assert.strictEqual((yield* Fiber.join(patient)).value, "1")
      assert.strictEqual(seen.runs, 1)
    })
  )

  it.effect("a failure reaches all who wait, and so does a defect", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)
      for (const [exit, key] of [
        [Exit.fail("down"), "a"],
        [Exit.die("bug"), "b"]
      ] as const) {
        const fibers = yield* Effect.forEach([1, 2, 3], () =>
          Effect.fork(cache.through(key, Effect.zipRight(Effect.sleep(100), exit)))
        )
        yield* TestClock.adjust(100)

        assert.deepStrictEqual(yield* Effect.forEach(fibers, (fiber) => fiber.await), [exit, exit, exit])
      }
      assert.strictEqual((yield* cache.snapshot).flights, 0)
    })
  )

  it.effect("a stale value reaches all who waited for the run that failed", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)
      yield* cache.through("key", Effect.succeed("old"))
      yield* TestClock.adjust("10 seconds")

      const fibers = yield* Effect.forEach([1, 2], () =>
        Effect.fork(cache.through("key", Effect.zipRight(Effect.sleep(100), Effect.fail("down"))))
      )
      yield* TestClock.adjust(100)

      for (const fiber of fibers) {
        assert.deepStrictEqual(yield* Fiber.join(fiber), {
          value: "old",
          source: "stale",
          ageMillis: 10_100,
          error: "down"
        })
      }
    })
  )

  it.effect("a caller who is being interrupted already, in a finalizer, still gets a run, and so do others", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { effect } = counting(100)
      const served: Array<string> = []
      const first = yield* Effect.fork(
        Effect.onInterrupt(Effect.never, () =>
          Effect.map(cache.through("key", effect), ({ source }) => served.push(source))
        )
      )
      yield* settle
      yield* Fiber.interruptFork(first)
      yield* settle
      const second = yield* Effect.fork(cache.through("key", effect))

      yield* TestClock.adjust(100)
      yield* Fiber.await(first)

      assert.deepStrictEqual([...served, (yield* Fiber.join(second)).source], ["miss", "shared"])
    })
  )

  it.effect("runs can be interrupted although the one who began it could not", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<boolean>(rules)

      const isInterruptible = Effect.checkInterruptible((is) => Effect.succeed(is))
      const { value } = yield* Effect.uninterruptible(cache.through("key", isInterruptible))

      assert.isTrue(value)
    })
  )

  it("no flight remains wherever its only caller is interrupted, and the next is served", async () => {
    for (const isStale of [false, true]) {
      const interrupted = await interruptAtEveryOperation(() => {
        const cache = Effect.runSync(Cache.make<string, string>({ ttl: 0.001, staleIfError: 60_000 }))
        if (isStale) Effect.runSync(Effect.fork(cache.through("key", Effect.succeed("old"))))
        const state = { begun: 0, ended: 0 }
        const effect = Effect.acquireUseRelease(
          Effect.sync(() => (state.begun += 1)),
          () => Effect.zipRight(Effect.yieldNow(), isStale ? Effect.fail("down") : Effect.succeed("value")),
          () => Effect.sync(() => (state.ended += 1))
        )
        return {
          run: cache.through("key", effect),
          check: async (_, operation) => {
            const { flights } = Effect.runSync(cache.snapshot)
            assert.strictEqual(flights, 0, `a flight after operation ${operation}`)
            assert.strictEqual(state.ended, state.begun, `not cleaned up at operation ${operation}`)
            const next = await Effect.runPromise(cache.through("key", Effect.succeed("next")))
            assert.include(["next", "value"], next.value)
          }
        }
      })
      assert.isAbove(interrupted, 20)
    }
  })

  it("a waiter who is interrupted anywhere takes nothing from the others", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      const cache = Effect.runSync(Cache.make<string>({ ttl: "1 minute" }))
      const { seen, effect } = counting()
      const slow = Effect.zipRight(Effect.sleep(1), effect)
      const first = Effect.runFork(cache.through("key", slow))
      return {
        run: cache.through("key", slow),
        check: async () => {
          assert.strictEqual((await Effect.runPromise(Fiber.join(first))).value, "1")
          assert.strictEqual(Effect.runSync(cache.snapshot).flights, 0)
          assert.strictEqual(seen.runs, 1)
        }
      }
    })
    assert.isAbove(interrupted, 8)
  })
})

describe("Cache: how much is kept", () => {
  const sized = (options: object) => Cache.make<number>({ ttl: "10 seconds", sizeOf: (value) => value, ...options })

  const keep = (cache: Cache.Cache<number, never>, key: string, bytes: number) =>
    cache.through(key, Effect.succeed(bytes))

  /** Which of the keys are kept; to ask changes the order of use. */
  const kept = (cache: Cache.Cache<number, never>, keys: ReadonlyArray<string>) =>
    Effect.filter(keys, (key) => Effect.map(Effect.exit(cache.through(key, Effect.die("missing"))), Exit.isSuccess))

  it.effect("the least recently used goes first", () =>
    Effect.gen(function* () {
      const cache = yield* sized({ maxEntries: 3 })
      for (const key of ["a", "b", "c"]) yield* keep(cache, key, 1)

      yield* keep(cache, "a", 1)
      yield* keep(cache, "d", 1)

      assert.deepStrictEqual(yield* kept(cache, ["a", "b", "c", "d"]), ["a", "c", "d"])
    })
  )

  it.effect("bytes count, those of the key with them, up to exactly the limit", () =>
    Effect.gen(function* () {
      const cache = yield* sized({ maxBytes: 30 })
      yield* keep(cache, "a", 8)
      yield* keep(cache, "b", 18)
      const full = yield* cache.snapshot

      yield* keep(cache, "c", 0)

      assert.deepStrictEqual(full.size, { entries: 2, bytes: 30 })
      assert.deepStrictEqual((yield* cache.snapshot).size, { entries: 2, bytes: 22 })
      assert.deepStrictEqual(yield* kept(cache, ["a", "b", "c"]), ["b", "c"])
    })
  )

  it.effect("what is larger than everything, or of no size at all, is not kept and drives nothing out", () =>
    Effect.gen(function* () {
      const cache = yield* sized({ maxBytes: 30 })
      yield* keep(cache, "a", 8)

      for (const bytes of [29, Number.NaN, -1, Number.POSITIVE_INFINITY]) {
        assert.strictEqual((yield* keep(cache, "b", bytes)).source, "miss")
      }

      assert.deepStrictEqual((yield* cache.snapshot).size, { entries: 1, bytes: 10 })
    })
  )

  it.effect("what has expired makes room before what was used least recently", () =>
    Effect.gen(function* () {
      const cache = yield* sized({ maxEntries: 2 })
      yield* keep(cache, "older", 1)
      yield* TestClock.adjust("5 seconds")
      yield* keep(cache, "newer", 1)
      yield* keep(cache, "older", 1)
      yield* TestClock.adjust("5 seconds")

      yield* keep(cache, "third", 1)

      assert.deepStrictEqual(yield* kept(cache, ["older", "newer", "third"]), ["newer", "third"])
    })
  )

  it.effect("what has expired is dropped when it is met, and when something is kept", () =>
    Effect.gen(function* () {
      const cache = yield* sized({})
      for (const key of ["a", "b", "c"]) yield* keep(cache, key, 1)
      yield* TestClock.adjust("10 seconds")

      yield* kept(cache, ["a"])
      const met = yield* cache.snapshot
      yield* keep(cache, "d", 1)

      assert.strictEqual(met.size?.entries, 2)
      assert.deepStrictEqual((yield* cache.snapshot).size, { entries: 1, bytes: 3 })
    })
  )

  it.effect("10,000 keys leave no more behind than may be kept", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>({ ttl: "1 hour" })

      for (let index = 0; index < 10_000; index++) yield* cache.through(`key ${index}`, Effect.succeed("value"))

      const { size, flights } = yield* cache.snapshot
      assert.strictEqual(size?.entries, 1000)
      assert.strictEqual(flights, 0)
    })
  )

  it.effect("sizes are estimated from what a value holds, circles included", () =>
    Effect.gen(function* () {
      const circle: { self?: object; text: string; bytes: Uint8Array } = { text: "12345", bytes: new Uint8Array(100) }
      circle.self = circle
      const cache = yield* Cache.make<object>({ ttl: 1000 })

      yield* cache.through("k", Effect.succeed(circle))

      const bytes = (yield* cache.snapshot).size?.bytes ?? 0
      assert.isAbove(bytes, 110)
      assert.isBelow(bytes, 250)
    })
  )
})

describe("Cache: forgetting", () => {
  it.effect("what is invalidated is run again, and other keys are not", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      const { effect } = counting()
      yield* cache.through("a", effect)
      yield* cache.through("b", effect)

      yield* cache.invalidate("a")

      assert.strictEqual((yield* cache.through("a", effect)).value, "3")
      assert.strictEqual((yield* cache.through("b", effect)).source, "fresh")
      yield* cache.clear
      assert.strictEqual((yield* cache.through("b", effect)).value, "4")
    })
  )

  it.effect("a run that was under way answers its callers, but is neither joined nor kept", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string>(rules)
      for (const forget of [cache.invalidate("key"), cache.clear]) {
        const { seen, effect } = counting(100)
        const before = yield* Effect.fork(cache.through("key", effect))
        yield* settle

        yield* forget
        const after = yield* Effect.fork(cache.through("key", Effect.as(Effect.sleep(50), "new")))
        yield* TestClock.adjust(100)

        assert.strictEqual((yield* Fiber.join(before)).value, "1")
        assert.strictEqual((yield* Fiber.join(after)).value, "new")
        assert.strictEqual(seen.runs, 1)
        assert.strictEqual((yield* cache.through("key", effect)).value, "new")
        yield* cache.invalidate("key")
      }
    })
  )

  it.effect("a stale value that is invalidated meanwhile helps nobody out", () =>
    Effect.gen(function* () {
      const cache = yield* Cache.make<string, string>(rules)
      yield* cache.through("key", Effect.succeed("old"))
      yield* TestClock.adjust("10 seconds")
      const fiber = yield* Effect.fork(cache.through("key", Effect.zipRight(Effect.sleep(100), Effect.fail("down"))))
      yield* settle

      yield* cache.invalidate("key")
      yield* TestClock.adjust(100)

      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.fail("down"))
    })
  )
})

describe("Cache: a store of one's own", () => {
  /** Text by key, with the age by the clock that the store lives by. */
  const textStore = () => {
    const texts = new Map<string, { text: string; atMillis: number; keepMillis: number }>()
    const store: CacheStore.CacheStore<string> = {
      get: (key) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const entry = texts.get(key)
          return entry && { value: entry.text, ageMillis: now - entry.atMillis }
        }),
      set: (key, text, keepMillis) =>
        Effect.map(Clock.currentTimeMillis, (atMillis) => void texts.set(key, { text, atMillis, keepMillis })),
      remove: (key) => Effect.sync(() => void texts.delete(key)),
      clear: Effect.sync(() => texts.clear())
    }
    return { texts, store }
  }

  const failing: CacheStore.CacheStore<string> = {
    get: () => Effect.fail(new CacheStore.CacheStoreError({ operation: "get", message: "no connection" })),
    set: () => Effect.die(new TypeError("a bug of the store")),
    remove: () => JSON.parse("{"),
    clear: Effect.interrupt
  }

  const hanging: CacheStore.CacheStore<string> = {
    get: () => Effect.never,
    set: () => Effect.never,
    remove: () => Effect.never,
    clear: Effect.never
  }

  it.effect("keeps, serves fresh and stale, and forgets there", () =>
    Effect.gen(function* () {
      const { texts, store } = textStore()
      const cache = yield* Cache.make<string, string>({ ...rules, store })

      const sources = [(yield* cache.through("key", Effect.succeed("old"))).source]
      yield* settle
      const kept = texts.get("key")
      yield* TestClock.adjust(9_999)
      sources.push((yield* cache.through("key", Effect.fail("down"))).source)
      yield* TestClock.adjust(1)
      sources.push((yield* cache.through("key", Effect.fail("down"))).source)
      yield* cache.invalidate("key")
      const error = yield* Effect.flip(cache.through("key", Effect.fail("down")))

      assert.deepStrictEqual(sources, ["miss", "fresh", "stale"])
      assert.deepStrictEqual(kept, { text: "old", atMillis: 0, keepMillis: 70_000 })
      assert.strictEqual(error, "down")
      assert.isUndefined((yield* cache.snapshot).size)
    })
  )

  it.effect("an age from the future counts as new; one of no age at all, or nothing, is a miss", () =>
    Effect.gen(function* () {
      const sources: Array<readonly [string, number]> = []
      for (const kept of [{ value: "old", ageMillis: -5 }, { value: "old", ageMillis: Number.NaN }, null]) {
        const store = { ...textStore().store, get: () => Effect.succeed(kept as CacheStore.Kept<string>) }
        const cache = yield* Cache.make<string>({ ...rules, store })
        const { source, ageMillis } = yield* cache.through("key", Effect.succeed("new"))
        sources.push([source, ageMillis])
      }

      assert.deepStrictEqual(sources, [
        ["fresh", 0],
        ["miss", 0],
        ["miss", 0]
      ])
    })
  )

  it.effect("a store that fails, dies, throws or interrupts itself fails no call and is reported", () =>
    Effect.gen(function* () {
      const reported: Array<CacheStore.CacheStoreError> = []
      const cache = yield* Cache.make<string>({
        ...rules,
        store: failing,
        onStoreError: (error) =>
          Effect.zipRight(
            Effect.sync(() => reported.push(error)),
            Effect.die("a bug of the hook")
          )
      })

      const first = yield* cache.through("key", Effect.succeed("1"))
      yield* settle
      const second = yield* cache.through("key", Effect.succeed("2"))
      yield* settle
      yield* cache.invalidate("key")
      yield* cache.clear

      assert.deepStrictEqual([first.source, second.source], ["miss", "miss"])
      assert.deepStrictEqual(
        reported.map(({ operation }) => operation),
        ["get", "set", "get", "set", "remove", "clear"]
      )
      assert.strictEqual(reported[0]?.message, "no connection")
      assert.instanceOf(reported[1]?.cause, TypeError)
      assert.deepStrictEqual(yield* cache.snapshot, {
        served: { fresh: 0, stale: 0, shared: 0, miss: 2 },
        runs: 2,
        flights: 0,
        storeErrors: 6,
        size: undefined
      })
    })
  )

  it.effect("a store that hangs is given up after 250 ms, or as long as is said", () =>
    Effect.gen(function* () {
      for (const [storeTimeout, millis] of [
        [undefined, 250],
        [40, 40]
      ] as const) {
        const cache = yield* Cache.make<string>({ ...rules, store: hanging, storeTimeout })
        const fiber = yield* Effect.fork(cache.through("key", Effect.succeed("value")))
        yield* TestClock.adjust(millis - 1)
        const before = fiber.unsafePoll()
        yield* TestClock.adjust(1)

        assert.isNull(before)
        assert.strictEqual((yield* Fiber.join(fiber)).value, "value")
      }
    })
  )

  it.effect("an answer is handed out before it is kept, and newcomers get it meanwhile", () =>
    Effect.gen(function* () {
      const { texts, store } = textStore()
      const slow = {
        ...store,
        set: (key: string, text: string, keep: number) => Effect.delay(store.set(key, text, keep), 100)
      }
      const cache = yield* Cache.make<string>({ ...rules, store: slow })

      const first = yield* cache.through("key", Effect.succeed("1"))
      const second = yield* cache.through("key", Effect.succeed("2"))
      const { flights } = yield* cache.snapshot
      yield* TestClock.adjust(100)

      assert.deepStrictEqual([first.source, second.source, second.value], ["miss", "shared", "1"])
      assert.strictEqual(flights, 1)
      assert.strictEqual(texts.get("key")?.text, "1")
      assert.strictEqual((yield* cache.snapshot).flights, 0)
    })
  )

  it.effect("what is being kept while it is invalidated is gone afterwards", () =>
    Effect.gen(function* () {
      const { texts, store } = textStore()
      const slow = {
        ...store,
        set: (key: string, text: string, keep: number) => Effect.delay(store.set(key, text, keep), 100)
      }
      const cache = yield* Cache.make<string>({ ...rules, store: slow })
      for (const forget of [cache.invalidate("key"), cache.clear]) {
        yield* cache.through("key", Effect.succeed("1"))

        const fiber = yield* Effect.fork(forget)
        yield* TestClock.adjust(100)
        yield* Fiber.join(fiber)

        assert.strictEqual(texts.size, 0)
      }
    })
  )

  it.effect("a store is asked once for all who wait", () =>
    Effect.gen(function* () {
      const { store } = textStore()
      let asked = 0
      const counted = {
        ...store,
        get: (key: string) =>
          Effect.tap(store.get(key), () => {
            asked += 1
          })
      }
      const cache = yield* Cache.make<string>({ ...rules, store: counted })

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 10 }, () => cache.through("key", Effect.as(Effect.sleep(100), "value"))),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust(100)
      yield* Fiber.join(fiber)

      assert.strictEqual(asked, 1)
    })
  )

  it.effect("a codec makes a store of values from one of texts; what it cannot read is a miss", () =>
    Effect.gen(function* () {
      const { texts, store } = textStore()
      const reported: Array<string> = []
      const cache = yield* Cache.make<{ readonly n: number }>({
        ...rules,
        onStoreError: ({ operation }) => Effect.sync(() => reported.push(operation)),
        store: CacheStore.encoded(store, {
          encode: (value) => (value.n < 0 ? Either.left("negative") : Either.right(JSON.stringify(value))),
          decode: (text) => Either.try(() => JSON.parse(text))
        })
      })

      yield* cache.through("key", Effect.succeed({ n: 1 }))
      yield* settle
      const served = yield* cache.through("key", Effect.succeed({ n: 2 }))
      texts.set("key", { text: "{", atMillis: 0, keepMillis: 1 })
      const unreadable = yield* cache.through("key", Effect.succeed({ n: 3 }))
      yield* cache.through("other", Effect.succeed({ n: -1 }))
      yield* settle

      assert.deepStrictEqual([served.source, served.value], ["fresh", { n: 1 }])
      assert.deepStrictEqual([unreadable.source, unreadable.value], ["miss", { n: 3 }])
      assert.deepStrictEqual(reported, ["get", "set"])
      assert.isFalse(texts.has("other"))
    })
  )
})

describe("Cache: options", () => {
  const wrong: ReadonlyArray<readonly [message: string, options: object]> = [
    ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, true, 2 ** 31, undefined].map(
      (ttl) => [`cache.ttl is ${ttl === 2 ** 31 ? 2147483648 : ttl}`, { ttl }] as const
    ),
    ...[-1, Number.NaN, Number.POSITIVE_INFINITY, true].map(
      (staleIfError) => [`cache.staleIfError is ${staleIfError}`, { ttl: 1, staleIfError }] as const
    ),
    ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, true].flatMap((number) => [
      [`cache.maxEntries is ${number}`, { ttl: 1, maxEntries: number }] as const,
      [`cache.maxBytes is ${number}`, { ttl: 1, maxBytes: number }] as const
    ]),
    ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, true].map(
      (storeTimeout) => [`cache.storeTimeout is ${storeTimeout}`, { ttl: 1, storeTimeout }] as const
    ),
    ["cache.maxItems is not an option", { ttl: 1, maxItems: 2 }]
  ]

  it.effect.each(wrong)("refuses: %s", ([message, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Cache.make(options as Cache.Options<string>))

      assert.include(String(error), message)
    })
  )
})
