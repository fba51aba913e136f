import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { answering, completion } from "./fakeClient.ts"

const hello: ChatRequest = { messages: [{ role: "user", content: "hello" }] }

const ask = Effect.fn(function* (body: unknown, request = hello, own: object = {}) {
  const { layer, sent } = answering({ body: typeof body === "string" ? body : JSON.stringify(body) })
  const options = { name: "p", model: "m", baseUrl: "https://llm.example.test/v1", ...own }
  const provider = yield* OpenAiCompatible.make(options).pipe(Effect.provide(layer))
  const answer = (yield* provider.complete(request)) as ProviderAnswer
  return { answer, sent: sent[0]?.body }
})

const reply = (message: object | undefined, finish_reason: string | null = "stop", more: object = {}) => ({
  model: "m-1",
  choices: [{ message, finish_reason }],
  ...more
})

describe("requests", () => {
  it.effect("hold what was set, and nothing else", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(completion())

      assert.deepStrictEqual(sent, { model: "m", messages: [{ role: "user", content: "hello" }] })
    })
  )

  it.effect("hold every setting in the wire's words", () =>
    Effect.gen(function* () {
      const request: ChatRequest = {
        system: "be brief",
        messages: [
          { role: "system", content: "be kind" },
          {
            role: "user",
            content: [
              { type: "text", text: "hel" },
              { type: "text", text: "lo" }
            ]
          },
          { role: "assistant", content: "hi" }
        ],
        maxTokens: 5,
        temperature: 0,
        topP: 0.5,
        stop: ["END"],
        seed: 7
      }

      const { sent } = yield* ask(completion(), request, { maxTokens: 100 })

      assert.deepStrictEqual(sent, {
        model: "m",
        messages: [
          { role: "system", content: "be brief" },
          { role: "system", content: "be kind" },
          { role: "user", content: "hello" },
          { role: "assistant", content: "hi" }
        ],
        max_tokens: 5,
        temperature: 0,
        top_p: 0.5,
        stop: ["END"],
        seed: 7
      })
    })
  )

  it.effect("fall back on the provider's token limit, and leave an empty stop out", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(completion(), { ...hello, stop: [] }, { maxTokens: 100 })

      assert.deepStrictEqual(Object.keys(sent), ["model", "messages", "max_tokens"])
      assert.strictEqual(sent.max_tokens, 100)
    })
  )

  it.effect("let extra fields win", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(completion(), { ...hello, extra: { model: "other", reasoning_effort: "low" } })

      assert.deepInclude(sent, { model: "other", reasoning_effort: "low" })
    })
  )
})

describe("answers", () => {
  it.effect.each([
    ["a cut without text is an answer", reply({ content: "" }, "length"), { text: "", finishReason: "length" }],
    ["a cut without a message is one too", reply(undefined, "length"), { text: "", finishReason: "length" }],
    [
      "parts are joined",
      reply({
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" }
        ]
      }),
      { text: "ab" }
    ],
    ["a word nobody knows", reply({ content: "a" }, "whim"), { finishReason: "unknown" }],
    ["no word at all", reply({ content: "a" }, null), { finishReason: "unknown" }],
    ["text beside a null refusal", reply({ content: "a", refusal: null }), { text: "a", finishReason: "stop" }],
    [
      "a call that says stop",
      reply({ tool_calls: [{ id: "1", function: { name: "f", arguments: "" } }] }),
      { finishReason: "tool-calls", toolCalls: [{ id: "1", name: "f", arguments: {} }] }
    ],
    [
      "a call with parsed arguments and no id",
      reply({ tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] }, "tool_calls"),
      { toolCalls: [{ id: "call_0", name: "f", arguments: { a: 1 } }] }
    ],
    [
      "a call with broken arguments",
      reply({ tool_calls: [{ id: "1", function: { name: "f", arguments: '{"a":' } }] }, "tool_calls"),
      { toolCalls: [{ id: "1", name: "f", rawArguments: '{"a":' }] }
    ]
  ] as const)("%s", ([, body, expected]) =>
    Effect.gen(function* () {
      assert.deepInclude((yield* ask(body)).answer, expected)
    })
  )

  it.effect.each([
    [
      { prompt_tokens: 5, completion_tokens: 2 },
      { inputTokens: 5, outputTokens: 2 }
    ],
    [
      { prompt_tokens: 5, total_tokens: 9 },
      { inputTokens: 5, outputTokens: 4 }
    ],
    [
      { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 9 } },
      { inputTokens: 5, outputTokens: 2, cachedInputTokens: 5 }
    ],
    [
      { prompt_tokens: 5, completion_tokens: 2, prompt_cache_hit_tokens: 3 },
      { inputTokens: 5, outputTokens: 2, cachedInputTokens: 3 }
    ],
    [{ prompt_tokens: 5 }, undefined],
    [{ prompt_tokens: "5", completion_tokens: -1 }, undefined],
    [null, undefined]
  ] as const)("usage %j is %j", ([usage, expected]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* ask(reply({ content: "a" }, "stop", { usage }))).answer.usage, expected)
    })
  )
})

describe("the one call of old servers", () => {
  it.effect("is a tool call", () =>
    Effect.gen(function* () {
      const call = { name: "f", arguments: '{"a":1}' }

      const { answer } = yield* ask(reply({ content: null, function_call: call }, "function_call"))

      assert.deepStrictEqual(answer.toolCalls, [{ id: "call_0", name: "f", arguments: { a: 1 } }])
      assert.strictEqual(answer.finishReason, "tool-calls")
    })
  )

  it.effect("is none where the calls of today stand beside it", () =>
    Effect.gen(function* () {
      const tool_calls = [{ id: "1", function: { name: "f", arguments: "{}" } }]

      const { answer } = yield* ask(reply({ tool_calls, function_call: { name: "f", arguments: "{}" } }, "tool_calls"))

      assert.deepStrictEqual(answer.toolCalls, [{ id: "1", name: "f", arguments: {} }])
    })
  )
})

describe("what is no answer", () => {
  it.effect.each([
    ["a refusal", reply({ content: null, refusal: "I will not." }), "ContentPolicyError", "I will not."],
    ["a refusal part", reply({ content: [{ type: "refusal", refusal: "No." }] }), "ContentPolicyError", "No."],
    ["a filtered answer", reply({ content: "Step 1" }, "content_filter"), "ContentPolicyError", "content_filter"],
    ["nothing", reply({ content: "" }), "EmptyResponseError", "nothing"],
    ["thoughts alone", reply({ content: null, reasoning: "hm" }), "EmptyResponseError", "nothing"],
    ["no choice", { choices: [] }, "EmptyResponseError", "nothing"],
    ["no choices", { id: "1" }, "InvalidResponseError", "choices"],
    ["no object", [1], "InvalidResponseError", "choices"],
    ["a flat error", { message: "busy", type: "server_error", code: "" }, "ServerError", "busy"],
    ["a detail", { detail: "what?" }, "InvalidResponseError", "what?"],
    ["an error in the choice", { choices: [{ error: { code: 502, message: "up" } }] }, "ServerError", "up"],
    [
      "an error of Groq's",
      reply({ content: "a" }, null, { x_groq: { error: "over_capacity" } }),
      "OverloadedError",
      "over"
    ],
    ["an error beside an answer", reply({ content: "a" }, "stop", { error: { code: 503 } }), "OverloadedError", "503"],
    ["a model that broke", reply({ content: "a" }, "error"), "ServerError", "error"],
    ["a model that gave up", reply({ content: "a" }, "insufficient_system_resource"), "OverloadedError", "resource"]
  ] as const)("%s", ([, body, tag, words]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(ask(body))

      assert.strictEqual(error._tag as string, tag)
      assert.include(error.message, words)
      if (error._tag === "ContentPolicyError") assert.strictEqual(error.stage, "response")
    })
  )
})
