import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { answering } from "./fakeClient.ts"

const hello: ChatRequest = { messages: [{ role: "user", content: "hello" }] }

const message = (content: ReadonlyArray<object>, stop_reason = "end_turn", more: object = {}) => ({
  type: "message",
  model: "claude-1",
  content,
  stop_reason,
  ...more
})

const text = (words: string) => ({ type: "text", text: words })

const ask = Effect.fn(function* (body: unknown, request = hello, own: object = {}) {
  const { layer, sent } = answering({ body: JSON.stringify(body) })
  const provider = yield* Anthropic.make({ model: "claude", apiKey: "fx-key", ...own }).pipe(Effect.provide(layer))
  const answer = (yield* provider.complete(request)) as ProviderAnswer
  return { answer, sent: sent[0] }
})

describe("requests", () => {
  it.effect("carry the key, the version and a token limit", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(message([text("Hi.")]))

      assert.strictEqual(sent?.url, "https://api.anthropic.com/v1/messages")
      assert.deepInclude(sent?.headers, { "x-api-key": "fx-key", "anthropic-version": "2023-06-01" })
      assert.notProperty(sent?.headers ?? {}, "authorization")
      assert.deepStrictEqual(sent?.body, {
        model: "claude",
        messages: [{ role: "user", content: "hello" }],
        max_tokens: 4096
      })
    })
  )

  it.effect("lift the system out, and merge what one says in a row", () =>
    Effect.gen(function* () {
      const request: ChatRequest = {
        system: "be brief",
        messages: [
          { role: "user", content: "one" },
          { role: "system", content: "be kind" },
          { role: "user", content: [text("t"), text("wo")] as never },
          { role: "assistant", content: "three" }
        ],
        maxTokens: 5,
        temperature: 0,
        topP: 0.5,
        stop: ["END"],
        seed: 7,
        extra: { top_k: 3 }
      }

      const { sent } = yield* ask(message([text("Hi.")]), request, { maxTokens: 100 })

      assert.deepStrictEqual(sent?.body, {
        model: "claude",
        system: "be brief\n\nbe kind",
        messages: [
          { role: "user", content: [text("one"), text("two")] },
          { role: "assistant", content: "three" }
        ],
        max_tokens: 5,
        temperature: 0,
        top_p: 0.5,
        stop_sequences: ["END"],
        top_k: 3
      })
    })
  )

  it.effect("let the user choose the version", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(message([text("Hi.")]), hello, { version: "2026-10-21", maxTokens: 100 })

      assert.strictEqual(sent?.headers["anthropic-version"], "2026-10-21")
      assert.strictEqual(sent?.body.max_tokens, 100)
    })
  )
})

describe("answers", () => {
  it.effect("skip blocks that are not known", () =>
    Effect.gen(function* () {
      const blocks = [{ type: "redacted_thinking", data: "x" }, text("a"), { type: "server_tool_use" }, text("b")]

      const { answer } = yield* ask(message(blocks, "pause_turn"))

      const { opaque, ...rest } = answer
      assert.deepStrictEqual(rest, { text: "ab", model: "claude-1", finishReason: "unknown", toolCalls: [] })
      assert.strictEqual(opaque?.wire, "anthropic-messages")
    })
  )

  it.effect("that were cut are answers without text too", () =>
    Effect.gen(function* () {
      assert.deepInclude((yield* ask(message([], "max_tokens"))).answer, { text: "", finishReason: "length" })
    })
  )
})

describe("what is no answer", () => {
  it.effect.each([
    ["nothing", message([]), "EmptyResponseError", "nothing"],
    ["no content", { type: "message" }, "InvalidResponseError", "content"],
    [
      "an error",
      { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
      "OverloadedError",
      "Overl"
    ],
    ["a refusal in words", message([text("I can't.")], "refusal"), "ContentPolicyError", "I can't."],
    ["a refusal without", message([], "refusal", { stop_details: null }), "ContentPolicyError", "refused"],
    [
      "a refusal with a reason",
      message([text("Half")], "refusal", {
        stop_details: { type: "refusal", category: "cyber", explanation: "Because." }
      }),
      "ContentPolicyError",
      "Because."
    ]
  ] as const)("%s", ([, body, tag, words]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(ask(body))

      assert.strictEqual(error._tag as string, tag)
      assert.include(error.message, words)
    })
  )
})
