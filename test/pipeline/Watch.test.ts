import { assert, describe, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as Watch from "../../src/pipeline/Watch.ts"

describe("Watch", () => {
  it.effect("runs each wait out at its own moment, and never one that was stopped", () =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const expired: Array<string> = []
      const watch = Watch.make(10_000)
      const start = (who: string) => watch.start(clock, () => expired.push(who))

      start("first")
      yield* TestClock.adjust("4 seconds")
      const stop = start("stopped")
      start("second")
      stop()
      stop()
      yield* TestClock.adjust("5999 millis")
      const early = [...expired]
      yield* TestClock.adjust("1 millis")
      const atTen = [...expired]
      yield* TestClock.adjust("4 seconds")

      assert.deepStrictEqual(early, [])
      assert.deepStrictEqual(atTen, ["first"])
      assert.deepStrictEqual(expired, ["first", "second"])
    })
  )

  it.effect("watches again after it had nothing to watch", () =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const expired: Array<string> = []
      const watch = Watch.make(100)

      watch.start(clock, () => expired.push("one"))()
      yield* TestClock.adjust("1 hour")
      watch.start(clock, () => expired.push("two"))
      yield* TestClock.adjust("100 millis")

      assert.deepStrictEqual(expired, ["two"])
    })
  )

  it.effect("stopped, it runs nothing out any more", () =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const expired: Array<string> = []
      const watch = Watch.make(100)
      watch.start(clock, () => expired.push("one"))

      yield* watch.stop
      yield* TestClock.adjust("1 hour")

      assert.deepStrictEqual(expired, [])
    })
  )
})
