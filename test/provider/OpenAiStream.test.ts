import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { Mistral } from "../../src/provider/vendors.ts"
import { answering } from "./fakeClient.ts"
import { bodyIn, drained, event, only, textsOf } from "./streaming.ts"

const options = { name: "p", model: "m", baseUrl: "https://llm.example.test/v1" }

/** What becomes of a stream of these events, in one packet. */
const streamed = Effect.fn(function* (events: ReadonlyArray<unknown>) {
  const body = bodyIn([events.map((data) => event(data)).join("")])
  const { layer } = answering({ headers: { "content-type": "text/event-stream" }, body })
  const provider = yield* OpenAiCompatible.make(options).pipe(Effect.provide(layer))
  return yield* drained(provider)
})

const delta = (fields: object, more: object = {}) => ({ choices: [{ index: 0, delta: fields, ...more }] })

const text = (content: unknown) => delta({ content })

const call = (...calls: ReadonlyArray<object>) => delta({ tool_calls: calls })

const finish = (finish_reason: string | null = "stop") => delta({}, { finish_reason })

const piece = (index: number | undefined, written: unknown, id?: string, name?: string) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  function: { ...(name === undefined ? {} : { name }), arguments: written }
})

describe("requests", () => {
  const sentBy = Effect.fn(function* (
    make: ReturnType<typeof OpenAiCompatible.make>,
    extra: Readonly<Record<string, unknown>> = {}
  ) {
    const { layer, sent } = answering({ body: bodyIn([event(text("a")), event("[DONE]")]) })
    yield* drained(yield* make.pipe(Effect.provide(layer)), { messages: [{ role: "user", content: "hello" }], extra })
    return sent[0]
  })

  it.effect("ask for a stream, and for its usage", () =>
    Effect.gen(function* () {
      const sent = yield* sentBy(OpenAiCompatible.make(options))

      assert.deepInclude(sent?.body, { model: "m", stream: true, stream_options: { include_usage: true } })
      assert.strictEqual(sent?.headers.accept, "text/event-stream, application/json")
    })
  )

  it.effect("leave the option out for Mistral, which refuses it", () =>
    Effect.gen(function* () {
      const sent = yield* sentBy(Mistral.make({ model: "m", apiKey: "fx-key" }))

      assert.strictEqual(sent?.body.stream, true)
      assert.notProperty(sent?.body, "stream_options")
    })
  )

  it.effect("let extra fields win", () =>
    Effect.gen(function* () {
      const sent = yield* sentBy(OpenAiCompatible.make(options), { stream_options: { include_usage: false } })

      assert.deepStrictEqual(sent?.body.stream_options, { include_usage: false })
    })
  )
})

describe("content", () => {
  it.effect("is handed out as it comes", () =>
    Effect.gen(function* () {
      const result = yield* streamed([
        delta({ role: "assistant", content: "" }),
        delta({ reasoning: "h" }),
        delta({ reasoning_content: "m" }),
        delta({ reasoning: "!", reasoning_content: "!" }),
        text("a"),
        text(null),
        text("b"),
        finish(),
        "[DONE]"
      ])

      assert.deepStrictEqual(textsOf(result), ["a", "b"])
      assert.deepStrictEqual(textsOf(result, "ReasoningDelta"), ["h", "m", "!"])
      assert.strictEqual(result.parts.length, 6)
    })
  )

  it.effect("may come in parts", () =>
    Effect.gen(function* () {
      const result = yield* streamed([
        text([{ type: "thinking", thinking: [{ type: "text", text: "h" }] }]),
        text([
          { type: "text", text: "a" },
          { type: "reference", reference_ids: [1] },
          { type: "text", text: "b" }
        ]),
        finish(),
        "[DONE]"
      ])

      assert.deepStrictEqual(textsOf(result), ["a", "b"])
      assert.deepStrictEqual(textsOf(result, "ReasoningDelta"), ["h"])
    })
  )

  it.effect("of other choices is skipped", () =>
    Effect.gen(function* () {
      const result = yield* streamed([
        { choices: [{ index: 1, delta: { content: "no" }, finish_reason: "length" }] },
        {
          choices: [
            { index: 1, delta: { content: "no" } },
            { index: 0, delta: { content: "yes" } }
          ]
        },
        finish(),
        "[DONE]"
      ])

      assert.deepStrictEqual(textsOf(result), ["yes"])
      assert.strictEqual(only(result, "End")[0]?.finishReason, "stop")
    })
  )

  it.effect("may come as a whole message", () =>
    Effect.gen(function* () {
      const message = { content: "whole", tool_calls: [piece(undefined, "{}", "1", "f")] }

      const result = yield* streamed([{ choices: [{ index: 0, message, finish_reason: "tool_calls" }] }])

      assert.deepStrictEqual(textsOf(result), ["whole"])
      assert.deepStrictEqual(only(result, "ToolCall"), [{ _tag: "ToolCall", id: "1", name: "f", arguments: {} }])
    })
  )

  it.effect("that nobody knows is skipped", () =>
    Effect.gen(function* () {
      const result = yield* streamed([
        { object: "ping" },
        { choices: [] },
        { choices: [{ index: 0, content_filter_results: {} }] },
        delta({ audio: { data: "" }, content: 7 }),
        text("a"),
        finish(),
        "[DONE]"
      ])

      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )
})

describe("tool calls", () => {
  const calls = (...whole: ReadonlyArray<readonly [id: string, written: string]>) =>
    whole.map(([id, written]) => ({ _tag: "ToolCall" as const, id, name: "f", arguments: JSON.parse(written) }))

  it.effect.each([
    ["in pieces", [call(piece(0, "", "a", "f")), call(piece(0, '{"x":')), call(piece(0, "1}"))], [["a", '{"x":1}']]],
    ["whole", [call(piece(0, '{"x":1}', "a", "f"))], [["a", '{"x":1}']]],
    ["without arguments", [call(piece(0, "", "a", "f"))], [["a", "{}"]]],
    [
      "as the one of old servers",
      [delta({ function_call: { name: "f", arguments: "" } }), delta({ function_call: { arguments: '{"x":1}' } })],
      [["call_0", '{"x":1}']]
    ],
    [
      "as the one of old servers, with its name repeated",
      [1, 2].map((it) => delta({ function_call: { name: "f", arguments: it === 1 ? '{"x":' : "1}" } })),
      [["call_0", '{"x":1}']]
    ],
    ["numbered from 1", [call(piece(1, "", "a", "f")), call(piece(1, "{}"))], [["a", "{}"]]],
    [
      "interleaved",
      [call(piece(0, "", "a", "f"), piece(1, "", "b", "f")), call(piece(1, '{"x":2}')), call(piece(0, '{"x":1}'))],
      [
        ["a", '{"x":1}'],
        ["b", '{"x":2}']
      ]
    ],
    [
      "all numbered 0",
      [call(piece(0, '{"x":1}', "a", "f")), call(piece(0, '{"x":', "b", "f")), call(piece(0, "2}"))],
      [
        ["a", '{"x":1}'],
        ["b", '{"x":2}']
      ]
    ],
    [
      "all numbered 0, with every id repeated",
      [
        call(piece(0, '{"x":', "a", "f")),
        call(piece(0, '{"x":', "b", "f")),
        call(piece(0, "1}", "a")),
        call(piece(0, "2}", "b"))
      ],
      [
        ["a", '{"x":1}'],
        ["b", '{"x":2}']
      ]
    ],
    [
      "without numbers",
      [call(piece(undefined, '{"x":', "a", "f")), call(piece(undefined, "1}")), call(piece(undefined, "{}", "b", "f"))],
      [
        ["a", '{"x":1}'],
        ["b", "{}"]
      ]
    ],
    [
      "without numbers and ids",
      [call(piece(undefined, "{}", undefined, "f"), piece(undefined, '{"x":2}', undefined, "f"))],
      [
        ["call_0", "{}"],
        ["call_1", '{"x":2}']
      ]
    ],
    [
      "behind a text, without number and id",
      [text("a"), call(piece(undefined, "{}", undefined, "f"))],
      [["call_0", "{}"]]
    ],
    [
      "with an id that comes late",
      [call(piece(0, '{"x":', undefined, "f")), call(piece(0, "1}", "a"))],
      [["call_0", '{"x":1}']]
    ],
    ["with an empty name repeated", [call(piece(0, "", "a", "f")), call(piece(0, "{}", undefined, ""))], [["a", "{}"]]],
    ["with parsed arguments", [call(piece(0, { x: 1 }, "a", "f"))], [["a", '{"x":1}']]],
    [
      "with a name that comes late",
      [call(piece(0, '{"x":', "a")), call(piece(0, "1}", undefined, "f"))],
      [["a", '{"x":1}']]
    ],
    ["without a name", [text("a"), call(piece(0, "{}", "a"))], []]
  ] as const)("%s", ([, events, whole]) =>
    Effect.gen(function* () {
      const result = yield* streamed([...events, finish("tool_calls"), "[DONE]"])

      assert.deepStrictEqual(only(result, "ToolCall"), calls(...whole))
      const pieces = only(result, "ToolCallDelta")
      for (const [index, [id, written]] of whole.entries()) {
        const own = pieces.filter((part) => part.index === index)
        assert.isTrue(own.every((part) => part.id === id && part.name === "f"))
        assert.deepStrictEqual(JSON.parse(own.map((part) => part.arguments).join("") || "{}"), JSON.parse(written))
      }
    })
  )

  it.effect("stand right before the end, after every delta", () =>
    Effect.gen(function* () {
      const result = yield* streamed([call(piece(0, "{}", "a", "f")), text("b"), finish("stop"), "[DONE]"])

      assert.deepStrictEqual(
        result.parts.map((part) => typeof part !== "string" && part._tag),
        ["ToolCallDelta", "TextDelta", "ToolCall", "End"]
      )
      assert.strictEqual(only(result, "End")[0]?.finishReason, "tool-calls")
    })
  )

  it.effect("may be 1000, and no more", () =>
    Effect.gen(function* () {
      const many = (count: number) =>
        streamed([
          call(...Array.from({ length: count }, (_, index) => piece(index, "{}", `a${index}`, "f"))),
          finish("tool_calls"),
          "[DONE]"
        ])

      const whole = yield* many(1000)
      const { error } = yield* many(1001)

      assert.lengthOf(only(whole, "ToolCall"), 1000)
      assert.strictEqual(error?._tag, "StreamInterruptedError")
      assert.include(error?.message, "more than 1000 tool calls")
    })
  )

  it.effect("may have arguments of 16 MiB, and no longer ones", () =>
    Effect.gen(function* () {
      const million = "x".repeat(1_000_000)
      const long = (more: number) =>
        streamed([
          ...Array.from({ length: 16 }, (_, index) => call(piece(0, million, index === 0 ? "a" : undefined, "f"))),
          call(piece(0, "x".repeat(777_216 + more))),
          finish("tool_calls"),
          "[DONE]"
        ])

      const whole = yield* long(0)
      const { error } = yield* long(1)

      assert.lengthOf(only(whole, "ToolCall")[0]?.rawArguments ?? "", 16_777_216)
      assert.strictEqual(error?._tag, "StreamInterruptedError")
      assert.include(error?.message, "longer than 16777216 characters")
    })
  )

  it.effect("with broken arguments are kept as they were written", () =>
    Effect.gen(function* () {
      const result = yield* streamed([call(piece(0, '{"x":', "a", "f")), finish("length"), "[DONE]"])

      assert.deepStrictEqual(only(result, "ToolCall"), [
        { _tag: "ToolCall", id: "a", name: "f", rawArguments: '{"x":' }
      ])
    })
  )

  it.effect("of a stream that was cut are not handed out", () =>
    Effect.gen(function* () {
      const result = yield* streamed([call(piece(0, '{"x":1}', "a", "f"))])

      assert.strictEqual(result.error?._tag, "StreamInterruptedError")
      assert.deepStrictEqual(only(result, "ToolCall"), [])
    })
  )
})

describe("the end", () => {
  it.effect("tells model, usage and finish reason", () =>
    Effect.gen(function* () {
      const usage = (completion_tokens: number) => ({ prompt_tokens: 5, completion_tokens })
      const result = yield* streamed([
        { model: "", ...text("a") },
        { model: "m-1", usage: usage(1), ...text("a") },
        { model: "m-2", usage: usage(2), ...finish("length") },
        { ...finish("stop"), usage: null },
        { choices: [], usage: usage(3) },
        "[DONE]"
      ])

      assert.deepStrictEqual(only(result, "End"), [
        { _tag: "End", finishReason: "length", model: "m-1", usage: { inputTokens: 5, outputTokens: 3 } }
      ])
    })
  )

  it.effect("reads Groq's own place for usage where there is no other", () =>
    Effect.gen(function* () {
      const x_groq = { usage: { prompt_tokens: 5, completion_tokens: 2 } }

      const result = yield* streamed([text("a"), { ...finish(), x_groq }, "[DONE]"])

      assert.deepStrictEqual(only(result, "End")[0]?.usage, { inputTokens: 5, outputTokens: 2 })
    })
  )

  it.effect.each([
    ["the terminator alone", [text("a"), "[DONE]"], "unknown"],
    ["a finish reason alone", [text("a"), finish("stop")], "stop"],
    ["a finish reason that comes with content", [delta({ content: "a" }, { finish_reason: "stop" })], "stop"],
    ["what follows the terminator", [text("a"), finish("stop"), "[DONE]", { error: { message: "late" } }], "stop"]
  ] as const)("is whole with %s", ([, events, reason]) =>
    Effect.gen(function* () {
      const result = yield* streamed(events)

      assert.strictEqual(result.error, undefined)
      assert.strictEqual(only(result, "End")[0]?.finishReason, reason)
    })
  )

  it.effect.each([
    [
      "refusal deltas",
      [delta({ refusal: "I will" }), delta({ refusal: " not." }), finish()],
      "ContentPolicyError",
      "I will not."
    ],
    ["a refusal part", [text([{ type: "refusal", refusal: "No." }]), finish()], "ContentPolicyError", "No."],
    ["a content filter", [text("a"), finish("content_filter")], "ContentPolicyError", "content_filter"],
    ["a model that broke", [text("a"), finish("error")], "ServerError", "error"],
    ["a model that gave up", [text("a"), finish("insufficient_system_resource")], "OverloadedError", "resource"],
    ["nothing", [finish()], "EmptyResponseError", "nothing"],
    ["thoughts alone", [delta({ reasoning: "hm" }), finish()], "EmptyResponseError", "nothing"]
  ] as const)("fails with %s", ([, events, tag, words]) =>
    Effect.gen(function* () {
      const result = yield* streamed([...events, "[DONE]"])

      assert.strictEqual(result.error?._tag as string, tag)
      assert.include(result.error?.message, words)
      assert.deepStrictEqual(only(result, "End"), [])
    })
  )

  it.effect("may be empty at the token limit", () =>
    Effect.gen(function* () {
      const result = yield* streamed([finish("length"), "[DONE]"])

      assert.deepStrictEqual(result.parts, [{ _tag: "End", finishReason: "length" }])
    })
  )
})

describe("errors within a stream", () => {
  it.effect.each([
    ["nothing", [{ choices: [], prompt_filter_results: [] }, delta({ role: "assistant", content: "" })], "prompt"],
    ["a text", [text("a")], "response"],
    ["a thought", [delta({ reasoning_content: "hm" })], "response"],
    ["a refusal", [delta({ refusal: "no" })], "response"],
    ["a call", [call(piece(0, "", "a", "f"))], "response"]
  ] as const)("a content filter behind %s blames the right one", ([, events, stage]) =>
    Effect.gen(function* () {
      const error = { code: "content_filter", message: "The response was filtered", status: 400 }

      const blamed = (data: ReadonlyArray<object>) =>
        Effect.map(streamed(data), ({ error: it }) => (it?._tag === "ContentPolicyError" ? it.stage : it?._tag))

      assert.strictEqual(yield* blamed([...events, { error }]), stage)
      assert.strictEqual(yield* blamed([...events, { choices: [], error }]), stage)
    })
  )

  it.effect.each([
    ["an object", { error: { message: "up", type: "server_error" } }, "ServerError"],
    ["one without choices beside it", { error: { code: 502, message: "up" }, choices: [] }, "ServerError"],
    ["beside a choice", { error: { code: 502, message: "up" }, ...finish("error") }, "ServerError"],
    ["a status beside it", { error: { message: "up" }, status_code: 503 }, "OverloadedError"],
    ["a text", { error: "up", code: "The service is currently unavailable" }, "OverloadedError"],
    ["an array", [{ error: { code: 429, message: "up", status: "RESOURCE_EXHAUSTED" } }], "RateLimitError"],
    ["in a choice", { choices: [{ index: 0, delta: {}, error: { code: 502, message: "up" } }] }, "ServerError"],
    ["Groq's", { ...delta({}), x_groq: { error: "up: over_capacity" } }, "InvalidResponseError"],
    ["a flat one", { message: "up", type: "server_error", param: "", code: "" }, "ServerError"],
    ["named object", { object: "error", message: "up", code: 500 }, "ServerError"],
    ["named type", { type: "error", message: "up", code: 529 }, "OverloadedError"],
    ["a detail", { detail: "up" }, "InvalidResponseError"]
  ] as const)("%s", ([, error, tag]) =>
    Effect.gen(function* () {
      const result = yield* streamed([text("a"), error, text("b"), finish(), "[DONE]"])

      assert.strictEqual(result.error?._tag as string, tag)
      assert.include(result.error?.message, "up")
      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )

  it.effect.each([{ error: null }, { error: "" }, { error: {} }, { x_groq: { id: "1" } }])(
    "that say nothing are none: %j",
    (error) =>
      Effect.gen(function* () {
        const result = yield* streamed([{ ...text("a"), ...error }, finish(), "[DONE]"])

        assert.strictEqual(result.error, undefined)
        assert.deepStrictEqual(textsOf(result), ["a"])
      })
  )

  it.effect("count after the finish reason too", () =>
    Effect.gen(function* () {
      const result = yield* streamed([text("a"), finish(), { error: { code: 503, message: "up" } }, "[DONE]"])

      assert.strictEqual(result.error?._tag, "OverloadedError")
    })
  )
})
