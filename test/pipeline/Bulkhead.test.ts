import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, TestClock } from "effect"
import { ThrottledError } from "llmfuse"
import * as Bulkhead from "../../src/pipeline/Bulkhead.ts"
import { interruptAtEveryOperation } from "../interruptAt.ts"
import { ManualTime } from "./manualTime.ts"

describe("Bulkhead", () => {
  it.effect("lets so many run at once, the others in order when one has ended", () =>
    Effect.gen(function* () {
      const bulkhead = yield* Bulkhead.make({ concurrency: 2, maxWait: "1 minute" })
      const begun: Array<number> = []
      let running = 0
      let peak = 0
      const call = (index: number) =>
        bulkhead.withPermit(
          Effect.gen(function* () {
            begun.push(index)
            peak = Math.max(peak, ++running)
            yield* Effect.sleep(10)
            running -= 1
          })
        )

      const fiber = yield* Effect.fork(
        Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], call, { concurrency: "unbounded" })
      )
      yield* TestClock.adjust(50)
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(begun, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
      assert.strictEqual(peak, 2)
      assert.deepStrictEqual(yield* bulkhead.snapshot, { inFlight: 0, queued: 0 })
    })
  )

  it.effect("refuses at once when the queue is full, or when nobody may wait", () =>
    Effect.gen(function* () {
      for (const options of [{ maxQueue: 0 }, { maxWait: 0 }]) {
        const bulkhead = yield* Bulkhead.make({ concurrency: 1, ...options }, "groq")
        const holder = yield* Effect.fork(bulkhead.withPermit(Effect.never))
        yield* TestClock.adjust(0)

        const error = yield* Effect.flip(bulkhead.withPermit(Effect.void))

        assert.instanceOf(error, ThrottledError)
        assert.strictEqual(error.message, "groq: throttled by our own limit: too many calls in flight")
        assert.strictEqual(error.limit, "concurrency")
        assert.deepStrictEqual(error.wait, Duration.zero)
        yield* Fiber.interrupt(holder)
      }
    })
  )

  it.effect("drops nobody who waits within maxWait (failsafe#365)", () =>
    Effect.gen(function* () {
      const bulkhead = yield* Bulkhead.make({ concurrency: 1, maxWait: "1 second" })

      const fiber = yield* Effect.fork(
        Effect.forEach(Array.from({ length: 10 }), () => bulkhead.withPermit(Effect.sleep(100)), {
          concurrency: "unbounded"
        })
      )
      yield* TestClock.adjust("1 second")

      assert.isTrue(Exit.isSuccess(yield* fiber.await))
    })
  )

  it("capacity neither decays nor grows under timeouts, interruptions and failures", () => {
    const time = new ManualTime()
    const bulkhead = time.run(Bulkhead.make({ concurrency: 3, maxQueue: 4, maxWait: 7 }))
    let running = 0
    let peak = 0
    const use = (round: number) =>
      Effect.suspend(() => {
        peak = Math.max(peak, ++running)
        return Effect.sleep(1 + ((round * 7) % 11))
      }).pipe(
        Effect.zipRight(round % 3 === 0 ? Effect.fail("no") : Effect.void),
        Effect.ensuring(Effect.sync(() => (running -= 1)))
      )

    for (let round = 0; round < 2000; round++) {
      const fiber = time.fork(bulkhead.withPermit(use(round)))
      time.advance(round % 4)
      if (round % 5 === 0) fiber.unsafeInterruptAsFork(fiber.id())
      time.settle()
    }
    time.advance(1000)

    assert.deepStrictEqual(time.run(bulkhead.snapshot), { inFlight: 0, queued: 0 })
    assert.deepStrictEqual([peak, running, time.timers], [3, 0, 0])
    for (const _ of [1, 2, 3]) time.fork(bulkhead.withPermit(Effect.never))
    assert.strictEqual(time.run(bulkhead.snapshot).inFlight, 3)
  })

  it("gives its place back wherever a caller is interrupted, running or waiting (Effect-TS#6081)", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      const bulkhead = Effect.runSync(Bulkhead.make({ concurrency: 1 }))
      const end = Deferred.unsafeMake<void>(Fiber.id(Effect.runFork(Effect.void)))
      const holder = Effect.runFork(bulkhead.withPermit(Deferred.await(end)))
      const run = Effect.zipRight(
        Effect.fork(Effect.zipRight(Effect.yieldNow(), Deferred.succeed(end, undefined))),
        bulkhead.withPermit(Effect.void)
      )
      return {
        run,
        check: async (_, operation) => {
          Effect.runSync(Deferred.succeed(end, undefined))
          await Effect.runPromise(holder.await)
          await Effect.runPromise(Effect.yieldNow())
          const where = `operation ${operation}`
          assert.deepStrictEqual(Effect.runSync(bulkhead.snapshot), { inFlight: 0, queued: 0 }, where)
          await Effect.runPromise(bulkhead.withPermit(Effect.void))
        }
      }
    })
    assert.isAbove(interrupted, 30)
  })

  it("refuses every option that is not what it should be, and names it", () => {
    const wrong: ReadonlyArray<readonly [string, object]> = [
      ...[Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1.5, true, "5", undefined].map(
        (concurrency) => ["bulkhead.concurrency is", { concurrency }] as const
      ),
      ...[Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, true, "5"].map(
        (maxQueue) => ["bulkhead.maxQueue is", { concurrency: 1, maxQueue }] as const
      ),
      ...[Number.NaN, Number.POSITIVE_INFINITY, -1, true].map(
        (maxWait) => ["bulkhead.maxWait is", { concurrency: 1, maxWait }] as const
      ),
      ["bulkhead.requests is not an option", { concurrency: 1, requests: { limit: 1 } }]
    ]
    for (const [message, options] of wrong) {
      const exit = Effect.runSyncExit(Bulkhead.make(options as Bulkhead.Options))
      assert.isTrue(Exit.isFailure(exit), JSON.stringify(options))
      assert.include(String(exit), message)
    }
  })
})
