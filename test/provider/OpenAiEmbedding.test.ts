import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import type { EmbeddingBatch } from "../../src/model/Embedding.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { AzureOpenAi, Gemini, LlamaCpp, Mistral, OpenAi, Together } from "../../src/provider/vendors.ts"
import { answering } from "./fakeClient.ts"
import { host, type Maker } from "./openAi.ts"

const two: EmbeddingBatch = { input: ["one", "two"] }

const list = (data: ReadonlyArray<object>, more: object = {}) => JSON.stringify({ object: "list", data, ...more })

const vectors = list([
  { index: 0, embedding: [1, 0] },
  { index: 1, embedding: [0, 1] }
])

const embed = Effect.fn(function* (maker: Maker, batch = two, body = vectors, status = 200) {
  const { layer, sent } = answering({ body, status, headers: { "x-request-id": "req_1" } })
  const provider = yield* maker.make({ model: "m", apiKey: "fx-key" }).pipe(Effect.provide(layer))
  const answer = yield* provider.embed?.(batch) ?? Effect.dieMessage("it cannot embed")
  return { answer, provider, url: sent[0]?.url, headers: sent[0]?.headers, sent: sent[0]?.body }
})

const fixture = (name: string): { readonly body: string; readonly status: number } =>
  JSON.parse(readFileSync(new URL(`../fixtures/${name}.json`, import.meta.url), "utf8"))

describe("requests", () => {
  const batch: EmbeddingBatch = { input: ["one"], dimensions: 2 }

  it.effect.each([
    ["openai", OpenAi, "https://api.openai.com/v1", { dimensions: 2, encoding_format: "float" }],
    ["mistral", Mistral, "https://api.mistral.ai/v1", { output_dimension: 2, encoding_format: "float" }],
    ["together", Together, "https://api.together.ai/v1", { dimensions: 2 }],
    ["a server of one's own", host(), "https://llm.example.test/v1", { dimensions: 2, encoding_format: "float" }]
  ] as const)("to %s", ([, maker, base, fields]) =>
    Effect.gen(function* () {
      const { url, headers, sent } = yield* embed(maker, batch)

      assert.strictEqual(url, `${base}/embeddings`)
      assert.strictEqual(headers?.authorization, "Bearer fx-key")
      assert.deepStrictEqual(sent, { model: "m", input: ["one"], ...fields })
    })
  )

  it.effect("name the model that embeds, and extra fields win", () =>
    Effect.gen(function* () {
      const { sent } = yield* embed(host({ embeddingModel: "e" }), {
        ...two,
        extra: { user: "u", encoding_format: "base64" }
      })

      assert.deepStrictEqual(sent, { model: "e", input: ["one", "two"], encoding_format: "base64", user: "u" })
    })
  )

  it.effect("say what the vendor cannot be told", () =>
    Effect.gen(function* () {
      const task = "taskType was left out: the vendor does not take it."
      const length = "dimensions was left out: the vendor cannot be told how long the vectors are to be."
      const asked = { ...two, dimensions: 2, taskType: "RETRIEVAL_QUERY" }

      const openAi = yield* embed(OpenAi, asked)
      const llamaCpp = yield* embed(LlamaCpp, asked)
      const plain = yield* embed(OpenAi)

      assert.deepStrictEqual(openAi.answer.changes, [task])
      assert.deepStrictEqual(llamaCpp.answer.changes, [task, length])
      assert.notProperty(llamaCpp.sent, "dimensions")
      assert.notProperty(plain.answer, "changes")
    })
  )

  it.effect("to Azure go to the deployment that embeds", () =>
    Effect.gen(function* () {
      const azure = (own: object): Maker => ({ make: (options) => AzureOpenAi.make({ ...options, ...own }) })

      const asked = (own: object) =>
        embed(azure(own)).pipe(
          Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["AZURE_OPENAI_ENDPOINT", "https://fx.test/"]])))
        )

      assert.strictEqual(
        (yield* asked({ embeddingModel: "my e" })).url,
        "https://fx.test/openai/deployments/my%20e/embeddings?api-version=2024-10-21"
      )
      assert.strictEqual(
        (yield* asked({})).url,
        "https://fx.test/openai/deployments/m/embeddings?api-version=2024-10-21"
      )
    })
  )
})

describe("answers", () => {
  it.effect("are read with their usage", () =>
    Effect.gen(function* () {
      const { answer } = yield* embed(OpenAi, two, fixture("openai-embeddings-float").body)

      assert.deepStrictEqual(answer, {
        embeddings: [
          [0.5, -0.25, 0.125],
          [0, 1, 0]
        ],
        model: "text-embedding-3-small",
        usage: { inputTokens: 8, outputTokens: 0 },
        requestId: "req_1"
      })
    })
  )

  it.effect("are put in the order of the texts", () =>
    Effect.gen(function* () {
      const { answer } = yield* embed(OpenAi, two, fixture("openai-embeddings-out-of-order").body)

      assert.deepStrictEqual(answer.embeddings, [
        [1, 0],
        [0, 1]
      ])
    })
  )

  it.effect.each([
    ["without a place", [{ embedding: [1] }, { embedding: [2] }]],
    [
      "all at the first place",
      [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [2] }
      ]
    ]
  ] as const)("%s stay in their order", ([, data]) =>
    Effect.gen(function* () {
      const { answer } = yield* embed(host(), two, list(data))

      assert.deepStrictEqual(answer, { embeddings: [[1], [2]], requestId: "req_1" })
    })
  )

  it.effect("in base64 are floats of four bytes, lowest first", () =>
    Effect.gen(function* () {
      const base64 = (...floats: ReadonlyArray<number>) =>
        Buffer.from(new Float32Array(floats).buffer).toString("base64")

      const { answer } = yield* embed(
        host(),
        two,
        list([
          { index: 1, embedding: base64(0.5, -2) },
          { index: 0, embedding: "AACAPwAAAEA=" }
        ])
      )

      assert.deepStrictEqual(answer.embeddings, [
        [1, 2],
        [0.5, -2]
      ])
    })
  )
})

describe("what is no answer", () => {
  it.effect.each([
    ["a model that is not there", fixture("openai-embeddings-404").body, 404, "ModelNotFoundError", "does not exist"],
    ["an error within a success", '{"error":{"code":503,"message":"busy"}}', 200, "OverloadedError", "busy"],
    ["no data", '{"object":"list"}', 200, "InvalidResponseError", "without data"],
    ["no body", "", 200, "EmptyResponseError", "empty"],
    ["no JSON", "<html>", 200, "InvalidResponseError", "no JSON"],
    ["an item without a vector", list([{ index: 0 }]), 200, "InvalidResponseError", "no list of numbers"],
    ["an empty vector", list([{ embedding: [] }]), 200, "InvalidResponseError", "no list of numbers"],
    ["a vector of texts", list([{ embedding: ["1"] }]), 200, "InvalidResponseError", "no list of numbers"],
    ["half a float", list([{ embedding: "AACA" }]), 200, "InvalidResponseError", "no list of numbers"],
    ["what is no base64", list([{ embedding: "!" }]), 200, "InvalidResponseError", "no list of numbers"]
  ] as const)("%s", ([, body, status, tag, words]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(embed(host(), two, body, status))

      assert.strictEqual(error._tag as string, tag)
      assert.include(error.message, words)
      assert.include(error.message, "host: ")
    })
  )
})

describe("the space of vectors", () => {
  const made = (maker: Maker) => maker.make({ model: "m", apiKey: "k" }).pipe(Effect.provide(answering({}).layer))

  it.effect("is the vendor's and the model's, whatever the provider is called", () =>
    Effect.gen(function* () {
      const named = yield* OpenAi.make({ model: "m", apiKey: "k", name: "mine", embeddingModel: "e" }).pipe(
        Effect.provide(answering({}).layer)
      )

      assert.strictEqual(named.embeddingSpace, "openai/e")
      assert.strictEqual((yield* made(Mistral)).embeddingSpace, "mistral/m")
      assert.strictEqual((yield* made(host({ embeddingSpace: "shared" }))).embeddingSpace, "shared")
    })
  )

  it.effect("comes with how many texts go into a request", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* made(OpenAi)).maxEmbeddingInputs, 2048)
      assert.strictEqual((yield* made(Gemini)).maxEmbeddingInputs, 100)
      assert.isUndefined((yield* made(host())).maxEmbeddingInputs)
    })
  )

  it.effect("is none where a server cannot embed", () =>
    Effect.gen(function* () {
      const provider = yield* OpenAiCompatible.make({
        name: "p",
        model: "m",
        baseUrl: "https://llm.example.test/v1",
        embeddings: false
      }).pipe(Effect.provide(answering({}).layer))

      assert.isUndefined(provider.embed)
      assert.isUndefined(provider.embeddingSpace)
    })
  )
})
