import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as FailureWindow from "../../src/pipeline/FailureWindow.ts"

const rules: FailureWindow.Rules = { bucketMillis: 100, buckets: 10 }

const recordAll = (of: FailureWindow.Rules, calls: ReadonlyArray<readonly [atMillis: number, isBad: boolean]>) =>
  calls.reduce(
    (window, [atMillis, isBad]) => FailureWindow.record(window, of, atMillis, isBad),
    FailureWindow.make(of, 0)
  )

describe("FailureWindow", () => {
  it("counts calls and the bad ones among them", () => {
    const window = recordAll(rules, [
      [0, true],
      [150, false],
      [980, true],
      [999, false]
    ])

    assert.deepStrictEqual(window.total, { calls: 4, bad: 2 })
    assert.strictEqual(FailureWindow.rate(window), 0.5)
  })

  it("forgets a bucket when it is as old as the window, and not before", () => {
    const window = recordAll(rules, [
      [0, true],
      [99, true],
      [100, false]
    ])

    assert.strictEqual(FailureWindow.at(window, rules, 999.9).total.calls, 3)
    assert.strictEqual(FailureWindow.at(window, rules, 1000).total.calls, 1)
    assert.strictEqual(FailureWindow.at(window, rules, 1100).total.calls, 0)
  })

  it("forgets everything after a silence longer than the window, also after a year", () => {
    const window = recordAll(rules, [[50, true]])

    for (const later of [1000, 10_050, 365 * 86_400_000]) {
      assert.deepStrictEqual(FailureWindow.record(window, rules, later, false).total, { calls: 1, bad: 0 })
    }
  })

  it("a time that steps back costs nothing of what was counted (resilience4j's sliding time window)", () => {
    const window = recordAll(rules, [
      [3_600_000, true],
      [3_600_100, true],
      [100, false]
    ])

    assert.deepStrictEqual(window.total, { calls: 3, bad: 2 })
  })

  it("works with a single bucket (resilience4j#2379)", () => {
    const single = { bucketMillis: 1000, buckets: 1 }
    const window = recordAll(single, [
      [0, true],
      [999, true]
    ])

    assert.strictEqual(window.total.calls, 2)
    assert.deepStrictEqual(FailureWindow.record(window, single, 1000, false).total, { calls: 1, bad: 0 })
  })

  it("no calls are no bad calls", () => {
    assert.strictEqual(FailureWindow.rate(FailureWindow.make(rules, 0)), 0)
  })

  it("takes the same room however many calls there were", () => {
    const many = recordAll(
      rules,
      Array.from({ length: 5000 }, (_, index) => [index * 7, index % 3 === 0] as const)
    )

    assert.strictEqual(many.full.length, rules.buckets)
    assert.strictEqual(JSON.stringify(many).length < 1000, true)
  })

  it("says what a list of all calls says, for any history", () => {
    const history = fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.boolean()), { maxLength: 60 })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 300 }),
        history,
        (buckets, width, steps) => {
          const of = { bucketMillis: width, buckets }
          let now = 0
          let window = FailureWindow.make(of, now)
          const list: Array<{ slot: number; isBad: boolean }> = []
          for (const [step, isBad] of steps) {
            now += step
            window = FailureWindow.record(window, of, now, isBad)
            list.push({ slot: Math.floor(now / width), isBad })
            const recent = list.filter(({ slot }) => slot > Math.floor(now / width) - buckets)
            assert.deepStrictEqual(window.total, {
              calls: recent.length,
              bad: recent.filter((call) => call.isBad).length
            })
          }
        }
      )
    )
  })
})
