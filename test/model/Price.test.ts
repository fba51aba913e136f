import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import * as fc from "fast-check"
import * as Price from "../../src/model/Price.ts"
import type { Usage } from "../../src/model/Usage.ts"

const million = 1_000_000

const tokens = fc.integer({ min: 0, max: 10 * million })

const dollars = fc.double({ min: 0, max: million, noNaN: true })

const flat: fc.Arbitrary<Price.Rates> = fc.record(
  {
    input: dollars,
    output: dollars,
    cachedInput: dollars,
    cacheWrite: dollars,
    cacheWrite1h: dollars,
    reasoning: dollars
  },
  { requiredKeys: ["input", "output"] }
)

const usages: fc.Arbitrary<Usage> = fc
  .tuple(tokens, tokens, tokens, tokens, tokens, tokens)
  .map(([cached, kept, kept1h, uncached, reasoned, said]) => ({
    inputTokens: cached + kept + kept1h + uncached,
    outputTokens: reasoned + said,
    cachedInputTokens: cached,
    cacheWriteInputTokens: kept + kept1h,
    cacheWrite1hInputTokens: kept1h,
    reasoningTokens: reasoned
  }))

const tiered: fc.Arbitrary<Price.Price> = fc
  .tuple(flat, dollars, fc.uniqueArray(fc.tuple(tokens, flat), { maxLength: 4, selector: ([above]) => above }))
  .map(([rates, request, tiers]) => ({
    ...rates,
    request,
    tiers: tiers.map(([above, rates]) => ({ above, ...rates }))
  }))

const costOf = (price: Price.Price, usage: Usage): number => {
  const cost = Price.costOf(price, usage)
  assert.isDefined(cost)
  return cost
}

const sum = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedInputTokens: (a.cachedInputTokens ?? 0) + (b.cachedInputTokens ?? 0),
  cacheWriteInputTokens: (a.cacheWriteInputTokens ?? 0) + (b.cacheWriteInputTokens ?? 0),
  cacheWrite1hInputTokens: (a.cacheWrite1hInputTokens ?? 0) + (b.cacheWrite1hInputTokens ?? 0),
  reasoningTokens: (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0)
})

const assertNear = (actual: number, expected: number) =>
  assert.approximately(actual, expected, 1e-9 * Math.max(1, expected))

describe("a cost", () => {
  it.each([
    ["input and output", { input: 2, output: 8 }, { inputTokens: million, outputTokens: million / 2 }, 6],
    ["nothing used", { input: 2, output: 8 }, { inputTokens: 0, outputTokens: 0 }, 0],
    ["a free model", { input: 0, output: 0 }, { inputTokens: million, outputTokens: million }, 0],
    [
      "cached input at its own price",
      { input: 2, output: 8, cachedInput: 0.5 },
      { inputTokens: million, outputTokens: 0, cachedInputTokens: million / 2 },
      1.25
    ],
    [
      "cached input at the price of input where it has none",
      { input: 2, output: 8 },
      { inputTokens: million, outputTokens: 0, cachedInputTokens: million / 2 },
      2
    ],
    [
      "more cached input than input, as no more than it",
      { input: 2, output: 8, cachedInput: 0.5 },
      { inputTokens: million, outputTokens: 0, cachedInputTokens: 5 * million },
      0.5
    ],
    [
      "input written to the cache at its own price, beside what was read from it",
      { input: 2, output: 8, cachedInput: 0.5, cacheWrite: 3 },
      { inputTokens: million, outputTokens: 0, cachedInputTokens: million / 2, cacheWriteInputTokens: million / 4 },
      1.5
    ],
    [
      "input written to the cache at the price of input where it has none",
      { input: 2, output: 8, cachedInput: 0.5 },
      { inputTokens: million, outputTokens: 0, cacheWriteInputTokens: million / 2 },
      2
    ],
    [
      "input that is cached for an hour at its own price",
      { input: 2, output: 8, cacheWrite: 3, cacheWrite1h: 4 },
      {
        inputTokens: million,
        outputTokens: 0,
        cacheWriteInputTokens: million / 2,
        cacheWrite1hInputTokens: million / 4
      },
      2.75
    ],
    [
      "input that is cached for an hour at the price of other writes where it has none",
      { input: 2, output: 8, cacheWrite: 3 },
      { inputTokens: million, outputTokens: 0, cacheWriteInputTokens: million, cacheWrite1hInputTokens: million },
      3
    ],
    [
      "more read from the cache and written to it than input, as no more than it",
      { input: 2, output: 8, cachedInput: 0.5, cacheWrite: 3, cacheWrite1h: 4 },
      {
        inputTokens: million,
        outputTokens: 0,
        cachedInputTokens: million / 2,
        cacheWriteInputTokens: 5 * million,
        cacheWrite1hInputTokens: 9 * million
      },
      2.25
    ],
    [
      "reasoning at the price of output",
      { input: 2, output: 8 },
      { inputTokens: 0, outputTokens: million, reasoningTokens: million / 2 },
      8
    ],
    [
      "reasoning at its own price",
      { input: 2, output: 8, reasoning: 2 },
      { inputTokens: 0, outputTokens: million, reasoningTokens: million / 2 },
      5
    ],
    ["a fee for the request", { input: 2, output: 8, request: 0.01 }, { inputTokens: million, outputTokens: 0 }, 2.01],
    ["an embedding without a price of output", { input: 2 }, { inputTokens: million, outputTokens: 0 }, 2]
  ] as const)("counts %s", (_, price, usage, expected) => {
    assert.approximately(costOf(price, usage), expected, 1e-12)
  })

  it.each([
    [100_000, 1],
    [200_000, 1],
    [200_001, 2],
    [500_000, 2],
    [500_001, 4]
  ])("of %d input tokens has one tier for all of them, by the price of %d", (inputTokens, rate) => {
    const tiers = [
      { above: 500_000, input: 4, output: 4 },
      { above: 200_000, input: 2, output: 2 }
    ]

    for (const order of [tiers, tiers.toReversed()]) {
      const price = { input: 1, output: 1, tiers: order }

      assertNear(costOf(price, { inputTokens, outputTokens: 10_000 }), ((inputTokens + 10_000) * rate) / million)
    }
  })

  it.each([
    ["output where only input has a price", { input: 2 }, { inputTokens: 1, outputTokens: 1 }],
    ["a negative count", { input: 2, output: 8 }, { inputTokens: -1, outputTokens: 100 }],
    ["a count that is no number", { input: 2, output: 8 }, { inputTokens: 1, outputTokens: Number.NaN }],
    ["an infinite count", { input: 2, output: 8 }, { inputTokens: Infinity, outputTokens: 0 }],
    [
      "a negative count of cached tokens",
      { input: 2, output: 8 },
      { inputTokens: 9, outputTokens: 0, cachedInputTokens: -1 }
    ],
    [
      "a count of tokens written to the cache that is no number",
      { input: 2, output: 8 },
      { inputTokens: 9, outputTokens: 0, cacheWriteInputTokens: Number.NaN }
    ],
    [
      "a negative count of tokens cached for an hour",
      { input: 2, output: 8 },
      { inputTokens: 9, outputTokens: 0, cacheWriteInputTokens: 1, cacheWrite1hInputTokens: -1 }
    ],
    [
      "a count of reasoning that is no number",
      { input: 2, output: 8 },
      { inputTokens: 9, outputTokens: 0, reasoningTokens: Number.NaN }
    ]
  ] as const)("is unknown for %s", (_, price, usage) => {
    assert.isUndefined(Price.costOf(price, usage))
  })

  it("is never negative and never infinite or NaN, for any price that is not refused", () => {
    fc.assert(
      fc.property(tiered, usages, (price, usage) => {
        assert.isTrue(Either.isRight(Price.check(price, "price")))
        const cost = costOf(price, usage)
        assert.isTrue(Number.isFinite(cost) && cost >= 0)
      })
    )
  })

  it("is never negative, infinite or NaN for any counts at all", () => {
    const count = fc.oneof(fc.double(), tokens)
    const any = fc.record(
      {
        inputTokens: count,
        outputTokens: count,
        cachedInputTokens: count,
        cacheWriteInputTokens: count,
        cacheWrite1hInputTokens: count,
        reasoningTokens: count
      },
      { requiredKeys: ["inputTokens", "outputTokens"] }
    )
    fc.assert(
      fc.property(tiered, any, (price, usage) => {
        const cost = Price.costOf(price, usage)
        assert.isTrue(cost === undefined || (Number.isFinite(cost) && cost >= 0))
      })
    )
  })

  it("does not fall when more is used, and two requests cost as much as one of both sizes, without tiers", () => {
    fc.assert(
      fc.property(flat, usages, usages, (price, usage, more) => {
        const both = costOf(price, sum(usage, more))

        assert.isAtLeast(both * (1 + 1e-12), costOf(price, usage))
        assertNear(both, costOf(price, usage) + costOf(price, more))
      })
    )
  })
})

const wrongPrices: ReadonlyArray<readonly [unknown, string]> = [
  [{ input: Number.NaN, output: 1 }, "price.input is NaN; allowed: a number from 0 to 1000000"],
  [{ input: 1, output: -1 }, "price.output is -1; allowed: a number from 0 to 1000000"],
  [{ input: Infinity, output: 1 }, "price.input is Infinity; allowed: a number from 0 to 1000000"],
  [{ output: 1 }, "price.input is undefined; allowed: a number from 0 to 1000000"],
  [{ input: "1", output: 1 }, 'price.input is "1"; allowed: a number from 0 to 1000000'],
  [{ input: 1, output: 1, cachedInput: -0.1 }, "price.cachedInput is -0.1; allowed: a number from 0 to 1000000"],
  [{ input: 1, output: 1, cacheWrite: -1 }, "price.cacheWrite is -1; allowed: a number from 0 to 1000000"],
  [{ input: 1, output: 1, cacheWrite1h: -1 }, "price.cacheWrite1h is -1; allowed: a number from 0 to 1000000"],
  [{ input: 1, output: 1, reasoning: -1 }, "price.reasoning is -1; allowed: a number from 0 to 1000000"],
  [{ input: 1, output: 1, request: -1 }, "price.request is -1; allowed: a number from 0 to 1000000"],
  [
    { input: 1, ouput: 1 },
    "price.ouput is not an option; allowed: input, output, cachedInput, cacheWrite, cacheWrite1h, reasoning, request, tiers"
  ],
  [
    undefined,
    "price is undefined; allowed: an object with input, output, cachedInput, cacheWrite, cacheWrite1h, reasoning, request, tiers"
  ],
  [{ input: 1, tiers: 5 }, "price.tiers is 5; allowed: a list of tiers"],
  [{ input: 1, tiers: [{ above: -1, input: 1 }] }, "price.tiers.0.above is -1; allowed: a whole number from 0"],
  [
    {
      input: 1,
      tiers: [
        { above: 7, input: 1 },
        { above: 8, input: 1 },
        { above: 7, input: 2 }
      ]
    },
    "price.tiers.2.above is 7; allowed: a number that no other tier has"
  ],
  [
    {
      input: 1,
      tiers: [
        { above: 1, input: 1 },
        { above: 2, input: 1, output: Number.NaN }
      ]
    },
    "price.tiers.1.output is NaN; allowed: a number from 0 to 1000000"
  ]
]

describe("a price", () => {
  it.each(wrongPrices)("is refused by the name of what is wrong: %o", (price, message) => {
    const checked = Price.check(price as Price.Price, "price")

    assert.include(String(Either.getOrThrowWith(Either.flip(checked), () => new Error("taken"))), message)
  })
})
