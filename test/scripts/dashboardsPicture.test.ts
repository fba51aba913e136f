import { assert, describe, it } from "@effect/vitest"
import { type Outage, type Point, simulate } from "../../scripts/dashboards/outageRun.ts"
import { draw } from "../../scripts/dashboards/svg.ts"

const outage: Outage = await simulate(7)

const between = (from: number, to: number): ReadonlyArray<Point> =>
  outage.points.filter(({ second }) => second >= from && second < to)

/** The primary's share of the answers. */
const shareOf = (points: ReadonlyArray<Point>): number => {
  const sum = (of: "primary" | "secondary") => points.reduce((total, { rates }) => total + rates[of], 0)
  return sum("primary") / (sum("primary") + sum("secondary"))
}

describe("the picture of an outage", () => {
  it("shows that the other provider answers meanwhile, and only then", () => {
    assert.strictEqual(shareOf(between(20, outage.from)), 1)
    assert.strictEqual(shareOf(between(outage.from + 20, outage.to)), 0)
    assert.strictEqual(shareOf(between(outage.to + 40, outage.points.length)), 1)
    assert.strictEqual(outage.failedCalls, 0)
  })

  it("shows the circuit open soon, try again, and close when the provider is back", () => {
    const states = (from: number, to: number) => [...new Set(between(from, to).map(({ circuit }) => circuit))].sort()

    assert.deepStrictEqual(states(0, outage.from), [0])
    assert.isTrue(between(outage.from, outage.from + 15).some(({ circuit }) => circuit === 2))
    assert.deepStrictEqual(states(outage.from + 15, outage.to), [1, 2])
    assert.deepStrictEqual(states(outage.to + 40, outage.points.length), [0])
  })

  it("shows latency rise until the circuit opens, and fall again", () => {
    const highest = (from: number, to: number) => Math.max(...between(from, to).map(({ latency }) => latency.p99))
    const [before, opening] = [highest(30, outage.from), highest(outage.from, outage.from + 30)]
    const open = highest(outage.from + 60, outage.to)

    assert.isAbove(opening, 3 * before)
    assert.isBelow(open, opening / 2)
    assert.isBelow(highest(outage.to + 80, outage.points.length), 1.5 * before)
  })

  it("is the same for the same seed", async () => {
    const again = draw(await simulate(7))

    assert.strictEqual(draw(outage), again)
    assert.notStrictEqual(draw(await simulate(8)), again)
  })

  it("is well-formed, names its axes, and has colours for light and dark pages", () => {
    const svg = draw(outage)

    const open: Array<string> = []
    for (const [, isEnd, name = "", isEmpty] of svg.matchAll(/<(\/?)(\w+)(?:\s[\w-]+="[^"<]*")*(\/?)>/g)) {
      if (isEnd === "/") assert.strictEqual(open.pop(), name)
      else if (isEmpty !== "/") open.push(name)
    }
    assert.deepStrictEqual(open, [])
    for (const words of ["per second", "seconds", "minutes", "half-open", "prefers-color-scheme: dark"]) {
      assert.include(svg, words)
    }
    assert.notMatch(svg, /NaN|Infinity|undefined/)
  })
})
