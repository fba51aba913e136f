import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Pricing from "../../src/model/Pricing.ts"

const million = { inputTokens: 1_000_000, outputTokens: 0 }

const fixed = (cost: number): Pricing.Pricing => ({ costOf: () => cost })

const at = (input: number) => ({ input, output: 0 })

describe("a pricing", () => {
  it.effect("without options knows no price", () =>
    Effect.gen(function* () {
      const pricing = yield* Pricing.make()

      assert.isUndefined(pricing.costOf(million, { provider: "groq", model: "a" }))
      assert.isUndefined(pricing.load)
    })
  )

  it.effect("asks its fallback for every model that it has no price of its own for", () =>
    Effect.gen(function* () {
      const pricing = yield* Pricing.make({ prices: { a: at(1) }, fallback: fixed(42) })

      assert.strictEqual(pricing.costOf(million, { provider: "groq", model: "a" }), 1)
      assert.strictEqual(pricing.costOf(million, { provider: "groq", model: "b" }), 42)
    })
  )

  it.effect("takes prices of one's own on, which go before all others; a wrong one is named", () =>
    Effect.gen(function* () {
      const pricing = yield* Pricing.register(yield* Pricing.register(fixed(42), { a: at(1), b: at(2) }), { a: at(3) })
      const costs = ["a", "b", "c"].map((model) => pricing.costOf(million, { provider: "groq", model }))
      const error = yield* Effect.flip(Pricing.register(fixed(42), { a: at(-1) }))

      assert.deepStrictEqual(costs, [3, 2, 42])
      assert.include(`${error}`, "pricing.prices.a.input")
    })
  )

  it.effect("does not ask its fallback where its own price leaves something open", () =>
    Effect.gen(function* () {
      const pricing = yield* Pricing.make({ prices: { a: { input: 1 } }, fallback: fixed(42) })

      assert.isUndefined(pricing.costOf({ inputTokens: 1, outputTokens: 1 }, { provider: "groq", model: "a" }))
    })
  )

  const prices = {
    "mine/a": at(1),
    "groq/a": at(2),
    a: at(3),
    "mine/*": at(4),
    "groq/*": at(5),
    alias: at(6),
    "mine/alias": at(7)
  }
  const special = [
    ["its provider and model", { provider: "mine", vendor: "groq", model: "a" }, 1],
    ["its vendor and model", { provider: "other", vendor: "groq", model: "a" }, 2],
    ["its model", { provider: "other", model: "a" }, 3],
    ["its provider", { provider: "mine", vendor: "groq", model: "b" }, 4],
    ["its vendor", { provider: "other", vendor: "groq", model: "b" }, 5],
    ["the model that was asked for", { provider: "other", model: "alias-2026-01-01", requestedModel: "alias" }, 6],
    [
      "its provider and the model that was asked for",
      { provider: "mine", model: "alias-2026-01-01", requestedModel: "alias" },
      7
    ],
    ["nothing", { provider: "other", model: "b" }, undefined]
  ] as const

  it.effect.each(special)("takes the most special price of an answer: by %s", ([, answerer, expected]) =>
    Effect.gen(function* () {
      const pricing = yield* Pricing.make({ prices })

      assert.strictEqual(pricing.costOf(million, answerer), expected)
    })
  )

  it.effect("has its fallback's loading, and what is asked for after it", () =>
    Effect.gen(function* () {
      let cost: number | undefined
      const load = Effect.sync(() => {
        cost = 5
      })
      const pricing = yield* Pricing.make({ prices: { a: at(1) }, fallback: { costOf: () => cost, load } })
      assert.isUndefined(pricing.costOf(million, { provider: "groq", model: "b" }))

      yield* pricing.load ?? Effect.void

      assert.strictEqual(pricing.costOf(million, { provider: "groq", model: "b" }), 5)
    })
  )

  const wrong: ReadonlyArray<readonly [string, unknown]> = [
    ["pricing.price is not an option; allowed: prices, fallback", { price: {} }],
    ["pricing.fallback is 5; allowed: a Pricing", { fallback: 5 }],
    ["pricing.fallback is null; allowed: a Pricing", { fallback: null }],
    ["pricing.prices is an empty list; allowed: an object with a price for each model", { prices: [] }],
    ["pricing.prices is null; allowed: an object with a price for each model", { prices: null }],
    [
      "pricing.prices.gemini-2.5-pro.output is NaN; allowed: a number from 0 to 1000000",
      { prices: { "gemini-2.5-pro": { input: 1, output: Number.NaN } } }
    ],
    [
      "pricing.prices is [object Map]; allowed: an object with a price for each model",
      { prices: new Map([["a", at(1)]]) }
    ],
    ...["*", "a/gpt-*", "a/", "", "/*", "/a", "*/*", "a/*/b", " a", "a/* "].map((key): readonly [string, unknown] => [
      `pricing.prices has the key ${JSON.stringify(key)}; allowed: a key that is a model, "provider/model", or "provider/*"`,
      { prices: { [key]: at(1) } }
    ]),
    [
      "pricing.prices.groq/a.input is -1; allowed: a number from 0 to 1000000",
      { prices: { "groq/a": { input: -1, output: 1 } } }
    ]
  ]

  it.effect.each(wrong)("is refused: %s", ([message, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Pricing.make(options as Pricing.Options))

      assert.include(String(error), message)
    })
  )
})

describe("a key of a price", () => {
  it.effect.each(["a", "a/b", "meta/llama/3:free", "a/*", "http://localhost:8000/v1/*", "https://x/v1//*", "a b"])(
    "may be %s",
    (key) => Pricing.make({ prices: { [key]: at(1) } })
  )
})

describe("an estimate of usage", () => {
  it("counts a token for every 4.5 characters, rounded up", () => {
    assert.deepStrictEqual(Pricing.estimateUsage(9, 10), { inputTokens: 2, outputTokens: 3 })
    assert.deepStrictEqual(Pricing.estimateUsage(0, 1), { inputTokens: 0, outputTokens: 1 })
  })

  it("is made of whole numbers from zero for any lengths, and grows with them", () => {
    fc.assert(
      fc.property(fc.double(), fc.double(), fc.nat(), (request, answer, more) => {
        const { inputTokens, outputTokens } = Pricing.estimateUsage(request, answer)

        for (const count of [inputTokens, outputTokens]) assert.isTrue(count >= 0 && Number.isInteger(count))
        if (Number.isFinite(answer)) {
          assert.isAtLeast(Pricing.estimateUsage(request, answer + more).outputTokens, outputTokens)
        }
      })
    )
  })
})
