import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { answering } from "./fakeClient.ts"
import { bodyIn, drained, event, only, textsOf } from "./streaming.ts"

interface Typed {
  readonly type: string
}

const asked = Effect.fn(function* (events: ReadonlyArray<Typed>) {
  const body = bodyIn([events.map((data) => event(data, data.type)).join("")])
  const { layer, sent } = answering({ headers: { "content-type": "text/event-stream" }, body })
  const provider = yield* Anthropic.make({ model: "m", apiKey: "fx-key" }).pipe(Effect.provide(layer))
  return { result: yield* drained(provider), sent: sent[0] }
})

/** What becomes of a stream of these events, in one packet. */
const streamed = (...events: ReadonlyArray<Typed>) => Effect.map(asked(events), ({ result }) => result)

const start = (message: object = {}) => ({
  type: "message_start",
  message: { id: "msg_1", model: "claude-1", usage: { input_tokens: 5, output_tokens: 1 }, ...message }
})
const block = (content_block: object, index = 0) => ({ type: "content_block_start", index, content_block })
const delta = (type: string, fields: object, index = 0) => ({
  type: "content_block_delta",
  index,
  delta: { type, ...fields }
})
const text = (words: string, index = 0) => delta("text_delta", { text: words }, index)
const tool = (id: string, index: number, input: object = {}) => block({ type: "tool_use", id, name: "f", input }, index)
const written = (partial_json: string, index: number) => delta("input_json_delta", { partial_json }, index)
const close = (index = 0) => ({ type: "content_block_stop", index })
const end = (stop_reason = "end_turn", usage: object = { output_tokens: 9 }, more: object = {}) => ({
  type: "message_delta",
  delta: { stop_reason, ...more },
  usage
})
const stop = { type: "message_stop" }

describe("requests", () => {
  it.effect("ask for a stream", () =>
    Effect.gen(function* () {
      const { sent } = yield* asked([start(), text("a"), end(), stop])

      assert.strictEqual(sent?.body.stream, true)
      assert.strictEqual(sent?.headers.accept, "text/event-stream, application/json")
    })
  )
})

describe("content", () => {
  it.effect("is handed out as it comes", () =>
    Effect.gen(function* () {
      const result = yield* streamed(
        start(),
        { type: "ping" },
        block({ type: "thinking", thinking: "h" }),
        delta("thinking_delta", { thinking: "m" }),
        delta("signature_delta", { signature: "x" }),
        close(),
        block({ type: "text", text: "a" }, 1),
        text("b", 1),
        text("", 1),
        close(1),
        end(),
        stop
      )

      assert.deepStrictEqual(textsOf(result, "ReasoningDelta"), ["h", "m"])
      assert.deepStrictEqual(textsOf(result), ["a", "b"])
      const opaque = {
        wire: "anthropic-messages",
        provider: "anthropic",
        value: { family: "m", blocks: [{ type: "thinking", thinking: "hm", signature: "x" }] }
      }
      assert.deepStrictEqual(only(result, "End"), [
        { _tag: "End", finishReason: "stop", model: "claude-1", usage: { inputTokens: 5, outputTokens: 9 }, opaque }
      ])
    })
  )

  it.effect("that nobody knows is skipped", () =>
    Effect.gen(function* () {
      const result = yield* streamed(
        start(),
        { type: "news" },
        block({ type: "server_tool_use", id: "1", name: "search", input: {} }),
        delta("input_json_delta", { partial_json: "{" }),
        delta("citations_delta", { citation: {} }),
        block({ type: "text", text: "" }, 1),
        delta("whim_delta", { text: "no" }, 1),
        text("a", 1),
        end(),
        stop
      )

      assert.deepStrictEqual(textsOf(result), ["a"])
      assert.strictEqual(result.parts.length, 2)
    })
  )
})

describe("tool calls", () => {
  it.effect("are pieced together by block", () =>
    Effect.gen(function* () {
      const result = yield* streamed(
        start(),
        tool("a", 0),
        written("", 0),
        tool("b", 1),
        written('{"x":', 1),
        written('{"y":1}', 0),
        written("2}", 1),
        close(0),
        close(1),
        end("tool_use"),
        stop
      )

      assert.deepStrictEqual(only(result, "ToolCall"), [
        { _tag: "ToolCall", id: "a", name: "f", arguments: { y: 1 } },
        { _tag: "ToolCall", id: "b", name: "f", arguments: { x: 2 } }
      ])
      assert.deepStrictEqual(
        only(result, "ToolCallDelta").map(({ index, id, arguments: piece }) => [index, id, piece]),
        [
          [0, "a", ""],
          [1, "b", ""],
          [1, "b", '{"x":'],
          [0, "a", '{"y":1}'],
          [1, "b", "2}"]
        ]
      )
      assert.strictEqual(only(result, "End")[0]?.finishReason, "tool-calls")
    })
  )

  it.effect.each([
    ["no arguments", [tool("a", 0), written("", 0)], {}],
    ["arguments at the start", [tool("a", 0, { x: 1 })], { x: 1 }]
  ] as const)("with %s", ([, events, input]) =>
    Effect.gen(function* () {
      const result = yield* streamed(start(), ...events, close(), end("tool_use"), stop)

      assert.deepStrictEqual(only(result, "ToolCall"), [{ _tag: "ToolCall", id: "a", name: "f", arguments: input }])
    })
  )
})

describe("usage", () => {
  const usageOf = (first: object, last: object) =>
    Effect.map(
      streamed(start({ usage: first }), text("a"), end("end_turn", { output_tokens: 2 }), end("end_turn", last), stop),
      (result) => only(result, "End")[0]?.usage
    )

  it.effect.each([
    [{ input_tokens: 5, output_tokens: 1 }, { output_tokens: 9 }, { inputTokens: 5, outputTokens: 9 }],
    [
      { input_tokens: 5, output_tokens: 1 },
      { input_tokens: 8, output_tokens: 9 },
      { inputTokens: 8, outputTokens: 9 }
    ],
    [
      { input_tokens: 5, output_tokens: 1, cache_read_input_tokens: 3 },
      { input_tokens: null, output_tokens: 9 },
      { inputTokens: 8, outputTokens: 9, cachedInputTokens: 3 }
    ],
    [{}, { output_tokens: 9 }, undefined],
    [
      {
        input_tokens: 5,
        output_tokens: 1,
        cache_creation_input_tokens: 100,
        cache_read_input_tokens: 1000,
        cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 }
      },
      { input_tokens: 5, output_tokens: 9, cache_creation_input_tokens: 100, cache_read_input_tokens: 1000 },
      {
        inputTokens: 1105,
        outputTokens: 9,
        cachedInputTokens: 1000,
        cacheWriteInputTokens: 100,
        cacheWrite1hInputTokens: 60
      }
    ]
  ] as const)("of %j and then %j", ([first, last, usage]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* usageOf(first, last), usage)
    })
  )
})

describe("a second start", () => {
  it.effect("of the same message is none", () =>
    Effect.gen(function* () {
      const result = yield* streamed(start(), text("a"), start(), text("b"), end(), stop)

      assert.deepStrictEqual(textsOf(result), ["a", "b"])
      assert.strictEqual(result.error, undefined)
    })
  )

  it.effect("of another message drops the calls of the first", () =>
    Effect.gen(function* () {
      const other = start({ id: "msg_2" })

      const result = yield* streamed(
        start(),
        tool("a", 0),
        other,
        tool("b", 0),
        written("{}", 0),
        end("tool_use"),
        stop
      )

      assert.deepStrictEqual(
        only(result, "ToolCall").map(({ id }) => id),
        ["b"]
      )
      assert.deepStrictEqual(
        only(result, "ToolCallDelta").map(({ index }) => index),
        [0, 1, 1]
      )
    })
  )

  it.effect("of another message after text breaks the stream: the text cannot be taken back", () =>
    Effect.gen(function* () {
      const result = yield* streamed(start(), text("a"), start({ id: "msg_2" }), text("a"), end(), stop)

      assert.strictEqual(result.error?._tag, "StreamInterruptedError")
      assert.include(result.error?.message, "another message began within the first")
      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )
})

describe("what is no answer", () => {
  it.effect.each([
    [
      "a refusal that is explained",
      [text("I"), end("refusal", {}, { stop_details: { category: "bio", explanation: "Blocked." } })],
      "ContentPolicyError",
      "Blocked."
    ],
    ["a refusal without details", [text("I will not."), end("refusal")], "ContentPolicyError", "I will not."],
    ["nothing", [end()], "EmptyResponseError", "nothing"],
    ["a cut", [text("a")], "StreamInterruptedError", "message_stop"],
    [
      "an overload",
      [{ type: "error", error: { type: "overloaded_error", message: "Busy" } }],
      "OverloadedError",
      "Busy"
    ]
  ] as const)("%s", ([, events, tag, words]) =>
    Effect.gen(function* () {
      const closing = tag === "StreamInterruptedError" ? [] : [stop]

      const result = yield* streamed(start(), ...events, ...closing)

      assert.strictEqual(result.error?._tag as string, tag)
      assert.include(result.error?.message, words)
    })
  )

  it.effect("an error as the first event", () =>
    Effect.gen(function* () {
      const result = yield* streamed({ type: "error", error: { type: "rate_limit_error", message: "Slow" } } as Typed)

      assert.strictEqual(result.error?._tag, "RateLimitError")
    })
  )
})
