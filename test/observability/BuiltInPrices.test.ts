import { assert, describe, it } from "@effect/vitest"
import { calcPrice, type Provider, waitForUpdate } from "@pydantic/genai-prices"
import { Effect, Exit, Option } from "effect"
import type { Answerer } from "../../src/model/Pricing.ts"
import * as Pricing from "../../src/model/Pricing.ts"
import type { Usage } from "../../src/model/Usage.ts"
import * as BuiltInPrices from "../../src/observability/BuiltInPrices.ts"

const source = () => import("@pydantic/genai-prices")

const loaded = Effect.gen(function* () {
  const prices = BuiltInPrices.make(source)
  yield* prices.load
  return prices
})

const usage: Usage = { inputTokens: 12_000, outputTokens: 3_000, cachedInputTokens: 5_000, reasoningTokens: 1_000 }

const counts = (usage: Usage) => ({
  input_tokens: usage.inputTokens,
  output_tokens: usage.outputTokens,
  ...(usage.cachedInputTokens === undefined ? {} : { cache_read_tokens: usage.cachedInputTokens }),
  ...(usage.cacheWriteInputTokens === undefined ? {} : { cache_write_tokens: usage.cacheWriteInputTokens }),
  ...(usage.cacheWrite1hInputTokens === undefined ? {} : { cache_write_1h_tokens: usage.cacheWrite1hInputTokens }),
  ...(usage.reasoningTokens === undefined ? {} : { output_reasoning_tokens: usage.reasoningTokens })
})

/** What the library itself says. */
const theirs = (providerId: string, model: string, usage: Usage, atMillis = 0) =>
  calcPrice(counts(usage), model, { providerId, timestamp: new Date(atMillis) })?.total_price

/** Whether the library has a price for reading and writing. */
const isListed = (providerId: string, model: string, atMillis: number) => {
  const listed = calcPrice({}, model, { providerId, timestamp: new Date(atMillis) })?.model_price
  return listed?.input_mtok !== undefined && listed.output_mtok !== undefined
}

const assertNear = (actual: number | undefined, expected: number | undefined, what: string) => {
  assert.isDefined(expected, what)
  assert.isDefined(actual, what)
  assert.approximately(actual as number, expected as number, 1e-9 * Math.max(1, expected as number), what)
}

/** Our name of a vendor, the data's, and a model as the vendor reports it. */
const vendors = [
  ["openai", "openai", "gpt-4o-2024-08-06"],
  ["anthropic", "anthropic", "claude-sonnet-4-5-20250929"],
  ["groq", "groq", "llama-3.3-70b-versatile"],
  ["gemini", "google", "gemini-2.5-flash"],
  ["gemini-native", "google", "gemini-2.5-pro"],
  ["mistral", "mistral", "mistral-large-latest"],
  ["deepseek", "deepseek", "deepseek-chat"],
  ["xai", "x-ai", "grok-4-0709"],
  ["openrouter", "openrouter", "openai/gpt-4o"],
  ["together", "together", "meta-llama/Llama-3.3-70B-Instruct-Turbo"],
  ["fireworks", "fireworks", "accounts/fireworks/models/deepseek-v3p2"],
  ["cerebras", "cerebras", "gpt-oss-120b"],
  ["azure", "azure", "gpt-4o-2024-08-06"]
] as const

const addresses = [
  ["https://api.groq.com/openai/v1", "groq", "llama-3.3-70b-versatile"],
  ["https://generativelanguage.googleapis.com/v1beta/openai", "google", "gemini-2.5-flash"],
  ["https://mine.openai.azure.com/openai/deployments/x?api-version=1", "azure", "gpt-4o"]
] as const

const unknown: ReadonlyArray<readonly [string, Answerer]> = [
  ["a model that nobody knows", { provider: "openai", model: "gpt-nonsense" }],
  ["no model", { provider: "openai", model: "" }],
  ["a vendor that nobody knows", { provider: "acme", model: "gpt-4o" }],
  ["a name that only contains a vendor's", { provider: "my-openai-proxy", model: "gpt-4o" }],
  [
    "a known name with an address of one's own",
    { provider: "openai", vendor: "http://localhost:1234/v1", model: "gpt-4o" }
  ],
  ["a name with a price that is not listed", { provider: "cerebras", model: "qwen-3-coder-480b" }],
  ["Ollama", { provider: "ollama", model: "gpt-oss-120b" }],
  ["LM Studio", { provider: "lmstudio", model: "gpt-oss-120b" }],
  ["vLLM", { provider: "vllm", model: "gpt-oss-120b" }],
  ["llama.cpp", { provider: "llamacpp", model: "gpt-oss-120b" }],
  ["a name of JavaScript's", { provider: "__proto__", model: "constructor" }],
  ["speech that is billed by the hour", { provider: "groq", model: "whisper-large-v3" }]
]

const modelsOf = (data: ReadonlyArray<Provider>) =>
  data.flatMap(({ id, models }) => models.map((model) => ({ id, model })))

const conditionsOf = (data: ReadonlyArray<Provider>) =>
  modelsOf(data).flatMap(({ model }) =>
    Array.isArray(model.prices) ? model.prices.flatMap(({ constraint }) => (constraint ? [constraint] : [])) : []
  )

describe("built-in prices", () => {
  it.effect("know nothing before they are loaded, and everything after", () =>
    Effect.gen(function* () {
      const prices = BuiltInPrices.make(source)
      const answerer = { provider: "openai", model: "gpt-4o" }
      assert.isUndefined(prices.costOf(usage, answerer))

      yield* prices.load

      assertNear(prices.costOf(usage, answerer), theirs("openai", "gpt-4o", usage), "after")
    })
  )

  it.effect.each(vendors)("are the library's for %s", ([vendor, id, model]) =>
    Effect.gen(function* () {
      const prices = yield* loaded
      for (const answerer of [
        { provider: vendor, model },
        { provider: "mine", vendor, model },
        { provider: vendor, model: "a-name-of-its-own", requestedModel: model }
      ]) {
        assertNear(prices.costOf(usage, { ...answerer, atMillis: 0 }), theirs(id, model, usage), model)
      }
    })
  )

  it.effect.each(addresses)("know a vendor by the address %s", ([vendor, id, model]) =>
    Effect.gen(function* () {
      const prices = yield* loaded

      assertNear(prices.costOf(usage, { provider: "mine", vendor, model }), theirs(id, model, usage), model)
    })
  )

  it.effect("take Google's models by their path too", () =>
    Effect.gen(function* () {
      const prices = yield* loaded
      const [path, name] = ["models/gemini-2.5-pro", "gemini-2.5-pro"].map((model) =>
        prices.costOf(usage, { provider: "gemini", model })
      )

      assert.isDefined(path)
      assert.strictEqual(path, name)
    })
  )

  it.effect.each(unknown)("do not guess: %s", ([, answerer]) =>
    Effect.gen(function* () {
      const prices = yield* loaded

      assert.isUndefined(prices.costOf({ inputTokens: 10, outputTokens: 10 }, answerer))
    })
  )

  it.effect("are dearer for a long request to gemini-2.5-pro", () =>
    Effect.gen(function* () {
      const prices = yield* loaded
      const costOf = (inputTokens: number) =>
        prices.costOf({ inputTokens, outputTokens: 1_000 }, { provider: "gemini", model: "gemini-2.5-pro" }) ?? 0
      for (const inputTokens of [199_999, 200_000, 200_001, 900_000]) {
        const expected = theirs("google", "gemini-2.5-pro", { inputTokens, outputTokens: 1_000 })
        assertNear(costOf(inputTokens), expected, `${inputTokens}`)
      }

      assert.isAbove(costOf(200_001), 1.3 * costOf(200_000))
    })
  )

  it.effect("of cached input are lower than those of other input", () =>
    Effect.gen(function* () {
      const prices = yield* loaded
      const answerer = { provider: "openai", model: "gpt-4o" }
      const cached = prices.costOf({ inputTokens: 1000, outputTokens: 0, cachedInputTokens: 1000 }, answerer)

      assert.isBelow(cached ?? Infinity, prices.costOf({ inputTokens: 1000, outputTokens: 0 }, answerer) ?? 0)
    })
  )

  it.effect("of what Anthropic writes to its cache are higher than those of other input, and highest for an hour", () =>
    Effect.gen(function* () {
      const prices = yield* loaded
      const model = "claude-sonnet-4-5-20250929"
      const costOf = (usage: Usage) => {
        const cost = prices.costOf(usage, { provider: "anthropic", model, atMillis: 0 })
        assertNear(cost, theirs("anthropic", model, usage), JSON.stringify(usage))
        return cost ?? 0
      }

      const plain = costOf({ inputTokens: 2260, outputTokens: 4, cachedInputTokens: 2051 })
      const kept = costOf({ inputTokens: 2260, outputTokens: 4, cachedInputTokens: 2051, cacheWriteInputTokens: 188 })
      const kept1h = costOf({
        inputTokens: 2260,
        outputTokens: 4,
        cachedInputTokens: 2051,
        cacheWriteInputTokens: 188,
        cacheWrite1hInputTokens: 188
      })

      assert.approximately(kept - plain, (188 * (3.75 - 3)) / 1e6, 1e-12)
      assert.approximately(kept1h - plain, (188 * (6 - 3)) / 1e6, 1e-12)
    })
  )

  it.effect("agree with the library for every model of the data, at any size and time", () =>
    Effect.gen(function* () {
      const data = (yield* Effect.promise(() => waitForUpdate())) ?? []
      const prices = yield* loaded
      const long = { inputTokens: 600_000, outputTokens: 20, cachedInputTokens: 1000 }
      const usages: ReadonlyArray<Usage> = [
        usage,
        long,
        { ...usage, cacheWriteInputTokens: 4000 },
        { ...long, cacheWriteInputTokens: 400_000, cacheWrite1hInputTokens: 100_000 }
      ]
      let compared = 0
      for (const { id, model } of modelsOf(data)) {
        // By the hour where the hour matters.
        const times = Array.isArray(model.prices) ? ["2024-01-01T03:00Z", "2026-11-30T17:00Z"] : ["2026-11-30T17:00Z"]
        for (const atMillis of times.map((time) => Date.parse(time))) {
          for (const usage of usages) {
            const cost = prices.costOf(usage, { provider: id, model: model.id, atMillis })
            if (cost === undefined) {
              assert.isFalse(isListed(id, model.id, atMillis), `${id}/${model.id}`)
              continue
            }
            assertNear(cost, theirs(id, model.id, usage, atMillis), `${id}/${model.id}`)
            compared++
          }
        }
      }

      assert.isAbove(compared, modelsOf(data).length)
    })
  )

  it.effect("follow the hour", () =>
    Effect.gen(function* () {
      const prices = yield* loaded
      const costAt = (time: string) =>
        prices.costOf(usage, { provider: "deepseek", model: "deepseek-chat", atMillis: Date.parse(time) })
      for (const time of ["2025-06-01T00:29:59Z", "2025-06-01T00:30:00Z", "2025-06-01T16:29:59Z"]) {
        assertNear(costAt(time), theirs("deepseek", "deepseek-chat", usage, Date.parse(time)), time)
      }

      assert.notStrictEqual(costAt("2025-06-01T00:29:59Z"), costAt("2025-06-01T00:30:00Z"))
    })
  )

  it.effect("are remembered for a minute at most, and no price changes within one", () =>
    Effect.gen(function* () {
      const data = (yield* Effect.promise(() => waitForUpdate())) ?? []
      const times = conditionsOf(data).flatMap((it) => ("start_time" in it ? [it.start_time, it.end_time] : []))

      assert.isNotEmpty(times)
      for (const time of times) assert.match(time, /^\d\d:\d\d:00(Z|[+-]\d\d:\d\d)$/)
    })
  )

  it.effect("give way to prices of one's own", () =>
    Effect.gen(function* () {
      const fallback = yield* loaded
      const pricing = yield* Pricing.make({
        prices: { "gpt-4o": { input: 1, output: 1 }, "ollama/*": { input: 0, output: 0 } },
        fallback
      })
      const million = { inputTokens: 1_000_000, outputTokens: 0 }

      assert.strictEqual(pricing.costOf(million, { provider: "openai", model: "gpt-4o" }), 1)
      assert.strictEqual(pricing.costOf(million, { provider: "ollama", model: "llama3.2" }), 0)
      assertNear(
        pricing.costOf(usage, { provider: "openai", model: "gpt-4o-mini" }),
        theirs("openai", "gpt-4o-mini", usage),
        "another model"
      )
    })
  )

  it.effect("cost nothing where OpenRouter says so", () =>
    Effect.gen(function* () {
      const prices = yield* loaded

      const cost = prices.costOf(usage, { provider: "openrouter", model: "meta-llama/llama-3.3-70b-instruct:free" })

      assert.strictEqual(cost, 0)
    })
  )
})

describe("loading", () => {
  it.effect("happens once for all who ask, at once and later", () =>
    Effect.gen(function* () {
      let times = 0
      const prices = BuiltInPrices.make(() => {
        times++
        return source()
      })
      assert.strictEqual(times, 0)

      yield* Effect.all([prices.load, prices.load, prices.load], { concurrency: "unbounded" })
      yield* prices.load

      assert.strictEqual(times, 1)
    })
  )

  it.effect("waits for nothing once it is over, even if it failed", () =>
    Effect.gen(function* () {
      for (const from of [source, () => Promise.reject(new Error("no such package"))]) {
        const prices = BuiltInPrices.make(from)
        yield* prices.load

        assert.isTrue(Exit.isSuccess(Effect.runSyncExit(prices.load)))
      }
    })
  )

  it.live("goes on when the one who asked first is interrupted", () =>
    Effect.gen(function* () {
      const prices = BuiltInPrices.make(() => new Promise((resolve) => setTimeout(() => resolve(source()), 20)))
      const interrupted = yield* Effect.timeoutOption(prices.load, "1 millis")
      assert.isTrue(Option.isNone(interrupted))

      yield* prices.load

      assert.isDefined(prices.costOf(usage, { provider: "openai", model: "gpt-4o" }))
    })
  )

  const failures: ReadonlyArray<readonly [string, () => Promise<never>]> = [
    ["is rejected", () => Promise.reject(new Error("no such package"))],
    [
      "throws",
      () => {
        throw new Error("no such package")
      }
    ]
  ]

  it.effect.each(failures)("that %s means that no price is known", ([, failing]) =>
    Effect.gen(function* () {
      const prices = BuiltInPrices.make(failing)

      yield* prices.load

      assert.isUndefined(prices.costOf(usage, { provider: "openai", model: "gpt-4o" }))
    })
  )

  it.effect("of data that break means that no price is known", () =>
    Effect.gen(function* () {
      const broken = () => {
        throw new Error("broken")
      }
      const prices = BuiltInPrices.make(() => Promise.resolve({ calcPrice: broken, findProvider: broken }))

      yield* prices.load

      assert.isUndefined(prices.costOf(usage, { provider: "openai", model: "gpt-4o" }))
    })
  )
})

describe("the memory of prices", () => {
  const counting = Effect.gen(function* () {
    const data = yield* Effect.promise(source)
    const asked: Array<string> = []
    const prices = BuiltInPrices.make(() =>
      Promise.resolve({
        findProvider: data.findProvider,
        calcPrice: (usage, model, options) => {
          asked.push(model)
          return data.calcPrice(usage, model, options)
        }
      })
    )
    yield* prices.load
    return { prices, asked }
  })

  it.effect("asks the data once for a model, known or not", () =>
    Effect.gen(function* () {
      const { prices, asked } = yield* counting
      for (const model of ["gpt-4o", "gpt-nonsense", "gpt-4o", "gpt-nonsense"]) {
        prices.costOf(usage, { provider: "openai", model, atMillis: 5 })
      }

      assert.deepStrictEqual(asked, ["gpt-4o", "gpt-nonsense"])
    })
  )

  it.effect("asks once a minute where the price changes with time, and always without a time", () =>
    Effect.gen(function* () {
      const { prices, asked } = yield* counting
      for (const atMillis of [0, 59_999, 60_000, 119_999, undefined, undefined]) {
        prices.costOf(usage, { provider: "deepseek", model: "deepseek-chat", atMillis })
      }

      assert.strictEqual(asked.length, 4)
    })
  )

  it.effect("is bounded and forgets the oldest", () =>
    Effect.gen(function* () {
      const { prices, asked } = yield* counting
      const ask = (model: string) => prices.costOf(usage, { provider: "openai", model })
      for (let index = 0; index <= 1000; index++) ask(`model-${index}`)
      assert.strictEqual(prices.size(), 1000)

      for (const model of ["model-1000", "model-2", "model-0"]) ask(model)

      assert.deepStrictEqual(asked.slice(1001), ["model-0"])
      assert.strictEqual(prices.size(), 1000)
    })
  )
})
