import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import type { EmbeddingBatch, ProviderEmbeddings } from "../../src/model/Embedding.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import { answering } from "./fakeClient.ts"
import { fixtures } from "./fixtures.ts"
import { drained } from "./streaming.ts"

const hello = { messages: [{ role: "user", content: "hello" }] } as const

const made = Effect.fn(function* (answer: Parameters<typeof answering>[0], own: object = {}) {
  const { layer, sent } = answering(answer)
  const provider = yield* GeminiNative.make({ model: "gemini-3-flash", apiKey: "fx-key-0123456789", ...own }).pipe(
    Effect.provide(layer)
  )
  return { provider, sent }
})

const ask = Effect.fn(function* (body: unknown, own: object = {}) {
  const { provider, sent } = yield* made({ body: JSON.stringify(body) }, own)
  const answer = (yield* provider.complete(hello)) as ProviderAnswer
  return { answer, sent: sent[0] }
})

const embed = Effect.fn(function* (batch: EmbeddingBatch, body: unknown, own: object = {}) {
  const { provider, sent } = yield* made({ body: JSON.stringify(body) }, own)
  const embeddings = yield* provider.embed?.(batch) ?? Effect.die("it cannot embed")
  return { embeddings, sent: sent[0], provider }
})

const candidate = (parts: ReadonlyArray<object>, finishReason: string | undefined = "STOP", more: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, finishReason, index: 0 }],
  ...more
})

const text = (words: string, more: object = {}) => ({ text: words, ...more })

const base = "https://generativelanguage.googleapis.com/v1beta"

describe("the address and the key", () => {
  it.effect("are Google's", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(candidate([text("Hi.")]))

      assert.strictEqual(sent?.url, `${base}/models/gemini-3-flash:generateContent`)
      assert.strictEqual(sent?.headers["x-goog-api-key"], "fx-key-0123456789")
      assert.notProperty(sent?.headers ?? {}, "authorization")
    })
  )

  it.effect("ask for events when streaming", () =>
    Effect.gen(function* () {
      const { provider, sent } = yield* made({}, { baseUrl: "https://proxy.test/v1/?team=a", model: "tunedModels/x y" })

      yield* drained(provider)

      assert.strictEqual(sent[0]?.url, "https://proxy.test/v1/tunedModels/x%20y:streamGenerateContent?team=a&alt=sse")
    })
  )

  it.effect("come from GEMINI_API_KEY unless they are given", () =>
    Effect.gen(function* () {
      const { layer, sent } = answering({ body: JSON.stringify(candidate([text("Hi.")])) })
      const build = GeminiNative.make({ model: "m" }).pipe(Effect.provide(layer))
      const variables = (entries: ReadonlyArray<readonly [string, string]>) =>
        Effect.withConfigProvider(ConfigProvider.fromMap(new Map(entries)))

      const missing = yield* Effect.flip(build.pipe(variables([])))
      const provider = yield* build.pipe(variables([["GEMINI_API_KEY", "from-variable"]]))
      yield* provider.complete(hello)

      assert.include(String(missing), "GEMINI_API_KEY")
      assert.strictEqual(sent[0]?.headers["x-goog-api-key"], "from-variable")
    })
  )

  it.effect.each([
    { status: 400, body: JSON.stringify({ error: { code: 400, message: "API key not valid: fx-key-0123456789" } }) },
    { status: 200, body: JSON.stringify({ error: { code: 403, message: "fx-key-0123456789 may not" } }) },
    { status: 200, body: JSON.stringify({ ...candidate([]), responseId: "fx-key-0123456789" }) },
    { status: 200, body: JSON.stringify({ promptFeedback: { blockReason: "fx-key-0123456789" } }) },
    { status: 200, body: JSON.stringify(candidate([text("a")], "SPII", { responseId: "fx-key-0123456789" })) },
    { status: 200, body: "data: fx-key-0123456789" }
  ])("are in no error: %j", (echo) =>
    Effect.gen(function* () {
      const { provider } = yield* made(echo)

      const whole = yield* Effect.flip(provider.complete(hello))
      const streamed = yield* drained(provider)
      const embedded = yield* Effect.flip(provider.embed?.({ input: ["a"] }) ?? Effect.void)

      for (const seen of [whole, streamed.error, embedded, provider]) {
        assert.isDefined(seen)
        assert.notInclude(inspect(seen, { depth: 9, showHidden: true }) + JSON.stringify(seen), "0123456789")
      }
    })
  )
})

describe("answers", () => {
  it.effect("are read", () =>
    Effect.gen(function* () {
      const parts = [
        text("add", { thought: true }),
        text("4", { thoughtSignature: "dA==" }),
        { functionCall: { name: "a" }, thoughtSignature: "c2ln" },
        { functionCall: { id: "fx2", name: "b", args: { n: 2 } } },
        { executableCode: { code: "1" } }
      ]
      const usageMetadata = {
        promptTokenCount: 8,
        toolUsePromptTokenCount: 2,
        candidatesTokenCount: 3,
        thoughtsTokenCount: 5,
        cachedContentTokenCount: 4
      }

      const { answer } = yield* ask(
        candidate(parts, "STOP", { usageMetadata, modelVersion: "gemini-3-flash-001", responseId: "fxResp" })
      )

      assert.deepStrictEqual(answer, {
        text: "4",
        finishReason: "tool-calls",
        toolCalls: [
          { id: "call_0", name: "a", arguments: {} },
          { id: "fx2", name: "b", arguments: { n: 2 } }
        ],
        model: "gemini-3-flash-001",
        usage: { inputTokens: 10, outputTokens: 8, cachedInputTokens: 4, reasoningTokens: 5 },
        reasoning: "add",
        requestId: "fxResp",
        opaque: {
          wire: "gemini",
          provider: "gemini",
          value: [{ thoughtSignature: "dA==" }, { call: 0, thoughtSignature: "c2ln" }, { call: 1, id: "fx2" }]
        }
      })
    })
  )

  it.effect("in several pieces are put together", () =>
    Effect.gen(function* () {
      const pieces = [
        { ...candidate([text("Hel")], ""), usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 1 } },
        { ...candidate([text("lo")]), usageMetadata: { candidatesTokenCount: 2 } },
        { error: { code: 503, status: "UNAVAILABLE" } }
      ]

      const { answer } = yield* ask(pieces)

      assert.deepInclude(answer, { text: "Hello", finishReason: "stop", usage: { inputTokens: 8, outputTokens: 2 } })
    })
  )

  it.effect.each([
    ["STOP", "stop"],
    ["MAX_TOKENS", "length"],
    ["OTHER", "unknown"],
    ["IMAGE_OTHER", "unknown"],
    ["FINISH_REASON_UNSPECIFIED", "unknown"],
    [undefined, "unknown"]
  ] as const)("that end with %s end with %s", ([word, finishReason]) =>
    Effect.gen(function* () {
      const { answer } = yield* ask({ candidates: [{ content: { parts: [text("a")] }, finishReason: word }] })

      assert.strictEqual(answer.finishReason, finishReason)
    })
  )

  it.effect("go back as they came", () =>
    Effect.gen(function* () {
      const parts = [
        text("I look."),
        { functionCall: { id: "fx1", name: "a", args: { n: 1 } }, thoughtSignature: "c2ln" },
        { functionCall: { id: "fx2", name: "b", args: {} } }
      ]
      const { provider, sent } = yield* made({ body: JSON.stringify(candidate(parts)) })
      const { text: content, toolCalls = [], opaque } = (yield* provider.complete(hello)) as ProviderAnswer
      const results = toolCalls.map(({ id }) => ({ role: "tool", toolCallId: id, content: "ok" }) as const)

      yield* provider.complete({
        messages: [...hello.messages, { role: "assistant", content, toolCalls, opaque }, ...results]
      })

      assert.deepStrictEqual(sent[1]?.body.contents[1], { role: "model", parts })
      assert.deepStrictEqual(sent[1]?.body.contents[2].parts, [
        { functionResponse: { id: "fx1", name: "a", response: { result: "ok" } } },
        { functionResponse: { id: "fx2", name: "b", response: { result: "ok" } } }
      ])
    })
  )

  it.effect("are the first where several were asked for", () =>
    Effect.gen(function* () {
      const { answer } = yield* ask({
        candidates: [
          { index: 1, content: { parts: [text("b")] }, finishReason: "STOP" },
          { content: { parts: [text("a")] }, finishReason: "STOP" }
        ]
      })

      assert.strictEqual(answer.text, "a")
    })
  )
})

const words = (list: string) => list.split(" ")

describe("what is no answer", () => {
  const blocked = words(
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"
  )

  it.effect.each(blocked)("%s stopped it", (word) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(ask(candidate([text("It was")], word)))

      assert.deepInclude(error, { _tag: "ContentPolicyError", stage: "response" })
      assert.include(error.message, word)
    })
  )

  it.effect.each(words("SAFETY OTHER BLOCKLIST PROHIBITED_CONTENT IMAGE_SAFETY MODEL_ARMOR JAILBREAK"))(
    "%s blocked the prompt",
    (blockReason) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(ask({ promptFeedback: { blockReason }, usageMetadata: {} }))

        assert.deepInclude(error, { _tag: "ContentPolicyError", stage: "prompt" })
        assert.include(error.message, blockReason)
      })
  )

  it.effect.each(words("MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE"))(
    "%s is invalid",
    (word) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(ask(candidate([text("a")], word)))

        assert.strictEqual(error._tag as string, "InvalidResponseError")
        assert.include(error.message, word)
      })
  )

  it.effect.each([
    [candidate([]), "EmptyResponseError"],
    [{ candidates: [{ finishReason: "OTHER" }] }, "EmptyResponseError"],
    [{ candidates: [] }, "EmptyResponseError"],
    [{ usageMetadata: { promptTokenCount: 1 }, modelVersion: "m" }, "EmptyResponseError"],
    [candidate([text("a", { thought: true })]), "EmptyResponseError"],
    [{}, "InvalidResponseError"],
    [[], "InvalidResponseError"],
    [{ embedding: { values: [1] } }, "InvalidResponseError"],
    [[{ error: { code: 503, status: "UNAVAILABLE" } }], "OverloadedError"],
    [[candidate([text("a")], ""), { error: { code: 429, status: "RESOURCE_EXHAUSTED" } }], "RateLimitError"]
  ] as const)("%j", ([body, tag]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(ask(body))

      assert.strictEqual(error._tag as string, tag)
    })
  )
})

describe("embeddings", () => {
  it.effect("of one text", () =>
    Effect.gen(function* () {
      const { embeddings, sent } = yield* embed(
        { input: ["a"], dimensions: 2, taskType: "RETRIEVAL_QUERY", extra: { title: "t" } },
        { embedding: { values: [0.5, -0.25] } },
        { embeddingModel: "gemini-embedding-001" }
      )

      assert.strictEqual(sent?.url, `${base}/models/gemini-embedding-001:embedContent`)
      assert.deepStrictEqual(sent?.body, {
        model: "models/gemini-embedding-001",
        content: { parts: [{ text: "a" }] },
        taskType: "RETRIEVAL_QUERY",
        outputDimensionality: 2,
        title: "t"
      })
      assert.deepStrictEqual<ProviderEmbeddings>(embeddings, {
        embeddings: [[0.5, -0.25]],
        model: "gemini-embedding-001"
      })
    })
  )

  it.effect("of several texts, in their order", () =>
    Effect.gen(function* () {
      const { embeddings, sent, provider } = yield* embed(
        { input: ["a", "b"] },
        { embeddings: [{ values: [1] }, { values: [2] }] }
      )

      assert.strictEqual(sent?.url, `${base}/models/gemini-3-flash:batchEmbedContents`)
      assert.deepStrictEqual(
        sent?.body.requests,
        ["a", "b"].map((it) => ({ model: "models/gemini-3-flash", content: { parts: [{ text: it }] } }))
      )
      assert.deepStrictEqual(embeddings.embeddings, [[1], [2]])
      assert.strictEqual(provider.maxEmbeddingInputs, 100)
      assert.strictEqual(provider.embeddingSpace, "gemini/gemini-3-flash")
    })
  )

  it.effect("that are none", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(embed({ input: ["a"] }, {}))

      assert.strictEqual(error._tag, "InvalidResponseError")
    })
  )

  const recorded = fixtures.filter(({ wire }) => (wire as string) === "gemini-embed")

  it.effect.each(recorded)("$name is read", ({ status, headers, body, expect }) =>
    Effect.gen(function* () {
      const { provider } = yield* made({ status, headers, body: String(body) })

      const result = yield* Effect.either(provider.embed?.({ input: ["a"] }) ?? Effect.die("it cannot embed"))

      const { vectors } = expect as { vectors?: ReadonlyArray<ReadonlyArray<number>> }
      if (result._tag === "Right") assert.deepStrictEqual(result.right.embeddings, vectors)
      else assert.strictEqual(result.left._tag, "ModelNotFoundError")
      assert.strictEqual(result._tag, vectors === undefined ? "Left" : "Right")
    })
  )

  it("are recorded", () => {
    assert.strictEqual(recorded.length, 2)
  })
})
