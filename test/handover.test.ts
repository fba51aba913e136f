import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import * as Handover from "../src/fuse/Handover.ts"
import { ShuffledTime } from "./shuffledTime.ts"

describe("the way of a stream's events to its reader", () => {
  it("loses nothing and never hangs, wherever the two are stopped between two operations", async () => {
    for (let seed = 1; seed <= 2000; seed++) {
      const time = new ShuffledTime(seed)
      const line = Handover.make<number, string>(2)
      const giver = Effect.zipRight(
        Effect.forEach([1, 2, 3, 4, 5], (it) => line.offer(it)),
        line.end(Exit.fail("the end"))
      )
      const taken: Array<number> = []
      const taker = Effect.forever(
        Effect.map(line.takeAll, (all) => {
          assert.isAtMost(all.length, 2)
          taken.push(...all)
        })
      )

      const fibers = [time.fork(Effect.flip(taker)), time.fork(giver)] as const
      await time.settle()

      assert.deepStrictEqual(fibers[0].unsafePoll(), Exit.succeed("the end"), `hangs with seed ${seed}`)
      assert.deepStrictEqual(taken, [1, 2, 3, 4, 5])
    }
  })

  it.effect("a giver waits for room, and is given it by the taker", () =>
    Effect.gen(function* () {
      const line = Handover.make<number, string>(1)
      yield* line.offer(1)

      const giver = yield* Effect.fork(line.offer(2))
      yield* Effect.yieldNow()
      const before = giver.unsafePoll()
      const first = yield* line.takeAll
      yield* Fiber.join(giver)

      assert.isNull(before)
      assert.deepStrictEqual([first, yield* line.takeAll], [[1], [2]])
    })
  )

  it.effect("a taker who was interrupted takes nothing away from the next", () =>
    Effect.gen(function* () {
      const line = Handover.make<number, string>(1)
      const gone = yield* Effect.fork(line.takeAll)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(gone)

      const next = yield* Effect.fork(line.takeAll)
      yield* Effect.yieldNow()
      yield* line.offer(1)

      assert.deepStrictEqual(yield* Fiber.join(next), [1])
    })
  )

  it.effect("after the end what is given is dropped, and nobody waits", () =>
    Effect.gen(function* () {
      const line = Handover.make<number, string>(1)
      yield* line.offer(1)
      yield* line.end(Exit.fail("the end"))
      yield* line.end(Exit.fail("another"))

      yield* line.offer(2)

      assert.deepStrictEqual(yield* line.takeAll, [1])
      assert.strictEqual(yield* Effect.flip(line.takeAll), "the end")
    })
  )
})
