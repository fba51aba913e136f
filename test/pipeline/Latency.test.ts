import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import fc from "fast-check"
import * as Latency from "../../src/pipeline/Latency.ts"

const runs = Number(process.env.LLMFUSE_MODEL_RUNS ?? 200)

const from = (samples: ReadonlyArray<number>, options: Latency.Options = { minimumSamples: 1 }) =>
  Effect.map(Latency.make(options), (latency) => {
    for (const millis of samples) latency.record(millis)
    return latency
  })

const oneToHundred = Array.from({ length: 100 }, (_, index) => index + 1)

describe("Latency", () => {
  it.effect("tells what a share of the calls keeps within, by nearest rank", () =>
    Effect.gen(function* () {
      const latency = yield* from(oneToHundred.toReversed())

      const told = [0, 0.01, 0.5, 0.55, 0.95, 0.951, 1].map(latency.percentile)

      assert.deepStrictEqual(told, [1, 1, 50, 55, 95, 96, 100])
    })
  )

  it.effect("tells nothing before there are enough samples: an empty history is no latency of zero", () =>
    Effect.gen(function* () {
      const latency = yield* Latency.make()
      const told: Array<number | undefined> = []
      for (let sample = 0; sample < 20; sample++) {
        told.push(latency.percentile(0.95))
        latency.record(300)
      }

      assert.isTrue(told.every((millis) => millis === undefined))
      assert.strictEqual(latency.percentile(0.95), 300)
    })
  )

  it.effect("tells nothing for what is no share, such as a 95 that was meant as 0.95", () =>
    Effect.gen(function* () {
      const latency = yield* from(oneToHundred)

      assert.deepStrictEqual([95, -0.1, Number.NaN].map(latency.percentile), [undefined, undefined, undefined])
    })
  )

  it.effect("forgets the oldest: after as many samples as it keeps, an incident is over", () =>
    Effect.gen(function* () {
      const latency = yield* from(Array.from({ length: 128 }, () => 60_000))
      for (let sample = 0; sample < 127; sample++) latency.record(100)
      const before = latency.percentile(1)

      latency.record(100)

      assert.strictEqual(before, 60_000)
      assert.strictEqual(latency.percentile(1), 100)
    })
  )

  it.effect("leaves out what is no time", () =>
    Effect.gen(function* () {
      const latency = yield* from([5, Number.NaN, -1, Number.POSITIVE_INFINITY, 5])

      assert.deepStrictEqual([0, 1].map(latency.percentile), [5, 5])
    })
  )

  it.effect("takes in successes only: no failure, no defect and no cancelled call (concurrency-limits#146)", () =>
    Effect.gen(function* () {
      const latency = yield* Latency.make({ minimumSamples: 1 })
      const fiber = yield* Effect.fork(latency.measured(Effect.never))
      yield* Effect.exit(latency.measured(Effect.fail("failed")))
      yield* Effect.exit(latency.measured(Effect.die("bug")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      const before = latency.percentile(1)

      const slow = yield* Effect.fork(latency.measured(Effect.sleep(1234)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(slow)

      assert.isUndefined(before)
      assert.strictEqual(latency.percentile(1), 1234)
    })
  )

  it.effect("refuses options that make no sense, and says what is allowed", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [string, Record<string, unknown>]> = [
        ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, true].flatMap((number) => [
          ["samples", { samples: number }] as const,
          ["minimumSamples", { minimumSamples: number }] as const
        ]),
        ["minimumSamples", { samples: 10, minimumSamples: 11 }],
        ["size", { size: 10 }]
      ]
      for (const [name, options] of wrong) {
        const error = yield* Effect.flip(Latency.make(options as Latency.Options))
        assert.include(String(error), `latency.${name}`)
      }
      const single = yield* Latency.make({ samples: 1 })
      single.record(7)
      single.record(8)
      assert.strictEqual(single.percentile(0.5), 8)
    })
  )

  it("agrees with sorting the latest samples, whatever they are", () =>
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.integer({ min: 0, max: 20 }), fc.double({ min: 0, max: 1e6, noNaN: true })), {
          maxLength: 100
        }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 100 }),
        (samples, size, percent) => {
          const latency = Effect.runSync(from([], { samples: size, minimumSamples: 1 }))
          for (const [index, millis] of samples.entries()) {
            latency.record(millis)
            const latest = samples.slice(Math.max(0, index + 1 - size), index + 1).toSorted((a, b) => a - b)
            const rank = Math.max(1, Math.ceil((percent * latest.length) / 100))
            assert.strictEqual(latency.percentile(percent / 100), latest[rank - 1])
          }
        }
      ),
      { numRuns: runs }
    ))
})
