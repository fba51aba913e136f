import { assert, describe, it } from "@effect/vitest"
import { type ConfigError, ConfigProvider, Effect, Either, Layer } from "effect"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import type { Provider } from "../../src/provider/Provider.ts"
import {
  AzureOpenAi,
  Cerebras,
  DeepSeek,
  Fireworks,
  Gemini,
  Groq,
  LlamaCpp,
  LmStudio,
  Mistral,
  Ollama,
  OpenAi,
  OpenRouter,
  Together,
  Vllm,
  Xai
} from "../../src/provider/vendors.ts"
import { answering, completion } from "./fakeClient.ts"

const withKey = [
  ["groq", Groq, "https://api.groq.com/openai/v1/chat/completions", "GROQ_API_KEY"],
  ["gemini", Gemini, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "GEMINI_API_KEY"],
  ["openai", OpenAi, "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"],
  ["mistral", Mistral, "https://api.mistral.ai/v1/chat/completions", "MISTRAL_API_KEY"],
  ["deepseek", DeepSeek, "https://api.deepseek.com/chat/completions", "DEEPSEEK_API_KEY"],
  ["xai", Xai, "https://api.x.ai/v1/chat/completions", "XAI_API_KEY"],
  ["openrouter", OpenRouter, "https://openrouter.ai/api/v1/chat/completions", "OPENROUTER_API_KEY"],
  ["together", Together, "https://api.together.ai/v1/chat/completions", "TOGETHER_API_KEY"],
  ["fireworks", Fireworks, "https://api.fireworks.ai/inference/v1/chat/completions", "FIREWORKS_API_KEY"],
  ["cerebras", Cerebras, "https://api.cerebras.ai/v1/chat/completions", "CEREBRAS_API_KEY"]
] as const

const local = [
  ["ollama", Ollama, "http://localhost:11434/v1/chat/completions"],
  ["lmstudio", LmStudio, "http://localhost:1234/v1/chat/completions"],
  ["vllm", Vllm, "http://localhost:8000/v1/chat/completions"],
  ["llamacpp", LlamaCpp, "http://localhost:8080/v1/chat/completions"]
] as const

const ask = (provider: Provider, extra: object = {}) =>
  provider.complete({ messages: [{ role: "user", content: "hello" }], ...extra })

const variables = (entries: Readonly<Record<string, string>>) =>
  Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(entries))))

describe("vendors with a key", () => {
  it.effect.each(withKey)("%s reads its variable and asks its own address", ([name, Vendor, url, variable]) =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion() })

      const provider = yield* Vendor.make({ model: "m" }).pipe(
        variables({ [variable]: "fx-key\n" }),
        Effect.provide(layer)
      )
      yield* ask(provider)

      assert.strictEqual(provider.name, name)
      assert.strictEqual(sent[0]?.url, url)
      assert.strictEqual(sent[0]?.headers.authorization, "Bearer fx-key")
    })
  )

  it.effect.each(withKey)("%s without a key says which variable is missing", ([, Vendor, , variable]) =>
    Effect.gen(function* () {
      const { layer } = answering({})

      const error: ConfigError.ConfigError = yield* Vendor.make({ model: "m" }).pipe(
        variables({}),
        Effect.provide(layer),
        Effect.flip
      )

      assert.strictEqual(error._op, "MissingData")
      assert.include(String(error), variable)
    })
  )

  it.effect("an empty variable is no key", () =>
    Effect.gen(function* () {
      const { layer } = answering({})

      const error = yield* Groq.make({ model: "m" }).pipe(
        variables({ GROQ_API_KEY: " " }),
        Effect.provide(layer),
        Effect.flip
      )

      assert.include(String(error), "GROQ_API_KEY is empty")
    })
  )
})

describe("vendors on this machine", () => {
  it.effect.each(local)("%s needs no key", ([name, Vendor, url]) =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion() })

      const provider = yield* Vendor.make({ model: "m" }).pipe(variables({}), Effect.provide(layer))
      yield* ask(provider)

      assert.strictEqual(provider.name, name)
      assert.strictEqual(sent[0]?.url, url)
      assert.notProperty(sent[0]?.headers ?? {}, "authorization")
    })
  )

  it.effect("takes one where there is one", () =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion() })

      yield* Effect.flatMap(Vllm.make({ model: "m", apiKey: "fx-key" }), ask).pipe(Effect.provide(layer))

      assert.strictEqual(sent[0]?.headers.authorization, "Bearer fx-key")
    })
  )
})

describe("dialects", () => {
  const bodyOf = (Vendor: typeof Groq | typeof OpenAi | typeof Cerebras | typeof Xai | typeof Mistral) =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion() })
      const provider = yield* Vendor.make({ model: "m", apiKey: "k", maxTokens: 7 }).pipe(Effect.provide(layer))
      yield* ask(provider, { seed: 3 })
      return Object.keys(sent[0]?.body)
    })

  it.effect.each([OpenAi, Groq, Cerebras])("$key limits completion tokens", (Vendor) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* bodyOf(Vendor), ["model", "messages", "max_completion_tokens", "seed"])
    })
  )

  it.effect("others limit tokens", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* bodyOf(Xai), ["model", "messages", "max_tokens", "seed"])
    })
  )

  it.effect("Mistral has another word for the seed", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* bodyOf(Mistral), ["model", "messages", "max_tokens", "random_seed"])
    })
  )
})

describe("what vendors can do", () => {
  const made = (Vendor: Pick<typeof Groq, "make">, own: object = {}) =>
    Vendor.make({ model: "m", apiKey: "k", ...own }).pipe(Effect.provide(answering({}).layer))

  it.effect.each([
    ["OpenAI begins every answer itself", OpenAi, { prefill: false }],
    ["DeepSeek keeps to no schema", DeepSeek, { prefill: false, jsonSchema: false }],
    ["Groq reads no files", Groq, { files: false }],
    ["of others nothing is sure", Xai, undefined]
  ] as const)("%s", ([, Vendor, capabilities]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* made(Vendor)).capabilities, capabilities)
    })
  )

  it.effect("is what they are told that it is", () =>
    Effect.gen(function* () {
      const provider = yield* made(Groq, { capabilities: { files: true, tools: false } })

      assert.deepStrictEqual(provider.capabilities, { files: true, tools: false })
    })
  )

  it.effect.each([OpenAi, Gemini, Mistral, OpenRouter, Together, Fireworks, Ollama, LmStudio, Vllm, LlamaCpp])(
    "$key embeds",
    (Vendor) =>
      Effect.gen(function* () {
        const provider = yield* made(Vendor)

        assert.isDefined(provider.embed)
        assert.strictEqual(provider.embeddingSpace, `${provider.name}/m`)
      })
  )

  it.effect.each([Groq, DeepSeek, Xai, Cerebras])("$key does not", (Vendor) =>
    Effect.gen(function* () {
      assert.isUndefined((yield* made(Vendor)).embed)
    })
  )
})

describe("a server of one's own", () => {
  it.effect.each([
    [{ jsonSchema: "yes" }, 'p.jsonSchema is "yes"; allowed: "native", "tool", "mode", "instruction"'],
    [{ toolChoice: true }, 'p.toolChoice is true; allowed: "named", "words", false'],
    [{ maxStops: 0 }, "p.maxStops is 0; allowed: a whole number from 1"]
  ] as const)("with a wrong dialect is refused: %j", ([dialect, words]) =>
    Effect.gen(function* () {
      const options = { name: "p", model: "m", baseUrl: "https://llm.example.test/v1", ...dialect }
      const error = yield* OpenAiCompatible.make(options as never).pipe(
        Effect.provide(answering({}).layer),
        Effect.flip
      )

      assert.include(String(error), words)
    })
  )
})

describe("Azure", () => {
  it.effect("is asked for a deployment of a resource", () =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion() })
      const made = AzureOpenAi.make({ model: "my gpt" })

      const provider = yield* made.pipe(
        variables({ AZURE_OPENAI_API_KEY: "fx-key", AZURE_OPENAI_ENDPOINT: "https://fx.openai.azure.com/" }),
        Effect.provide(layer)
      )
      yield* ask(provider, { maxTokens: 9 })

      assert.strictEqual(
        sent[0]?.url,
        "https://fx.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
      )
      assert.strictEqual(sent[0]?.headers["api-key"], "fx-key")
      assert.notProperty(sent[0]?.headers ?? {}, "authorization")
      assert.strictEqual(sent[0]?.body.max_completion_tokens, 9)
    })
  )

  it.effect("says what is missing", () =>
    Effect.gen(function* () {
      const error = yield* AzureOpenAi.make({ model: "m", apiKey: "k" }).pipe(
        variables({}),
        Effect.provide(answering({}).layer),
        Effect.flip
      )

      assert.include(String(error), "AZURE_OPENAI_ENDPOINT")
    })
  )
})

describe("a vendor class", () => {
  class Mine extends OpenAiCompatible.Service<Mine>()({
    name: "mine",
    baseUrl: "https://mine.test/v1/",
    apiKey: "MINE_KEY",
    headers: { "x-vendor": "v" }
  }) {}

  it.effect("is an effect that needs its layer", () =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion("from the layer") })
      const program: Effect.Effect<Provider, never, Mine | Anthropic> = Effect.zipRight(Anthropic, Mine)
      const layers = Layer.merge(
        Mine.layer({ model: "m", apiKey: "fx-key", headers: { "X-Own": "o" } }),
        Anthropic.layer({ model: "c", apiKey: "fx-key" })
      )

      const provider = yield* program.pipe(Effect.provide(Layer.provide(layers, layer)))
      const answer = yield* ask(provider)

      assert.strictEqual(typeof answer === "string" ? answer : answer.text, "from the layer")
      assert.strictEqual(sent[0]?.url, "https://mine.test/v1/chat/completions")
      assert.deepInclude(sent[0]?.headers, { "x-vendor": "v", "x-own": "o" })
    })
  )

  it.effect("gives way to what it is told", () =>
    Effect.gen(function* () {
      const { sent, layer } = answering({ body: completion() })
      const limits = { requestsPerMinute: 30 }

      const provider = yield* Mine.make({
        model: "m",
        name: "mine-too",
        apiKey: "k",
        baseUrl: "http://proxy.test/mine?region=eu#top",
        timeout: "3 seconds",
        limits
      }).pipe(Effect.provide(layer))
      yield* ask(provider)

      assert.strictEqual(sent[0]?.url, "http://proxy.test/mine/chat/completions?region=eu")
      assert.deepInclude(provider, { name: "mine-too", model: "m", timeout: "3 seconds", limits })
      assert.strictEqual(yield* provider, provider)
    })
  )

  it.effect("with a layer that cannot be built fails as a whole", () =>
    Effect.gen(function* () {
      const result = yield* Mine.pipe(
        Effect.provide(Layer.provide(Mine.layer({ model: "m" }), answering({}).layer)),
        variables({}),
        Effect.either
      )

      assert.include(String(Either.getOrElse(Either.flip(result), () => "")), "MINE_KEY")
    })
  )
})
