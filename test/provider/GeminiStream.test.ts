import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import { answering } from "./fakeClient.ts"
import { bodyIn, drained, event, only, textsOf } from "./streaming.ts"

const read = Effect.fn(function* (
  packets: ReadonlyArray<string>,
  end: "close" | "reset" = "close",
  type = "text/event-stream"
) {
  const { layer } = answering({ headers: { "content-type": type }, body: bodyIn(packets, end) })
  const provider = yield* GeminiNative.make({ model: "gemini-3-flash", apiKey: "fx-key" }).pipe(Effect.provide(layer))
  return yield* drained(provider)
})

const piece = (parts: ReadonlyArray<object>, more: object = {}, beside: object = {}) => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
  ...beside
})

const stop = { finishReason: "STOP" }

const unavailable = { error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }

describe("the pieces of an answer", () => {
  it.effect("are handed out as they come, and what is known beside them at the end", () =>
    Effect.gen(function* () {
      const result = yield* read([
        event(
          piece([{ text: "hm", thought: true }], {}, { usageMetadata: { promptTokenCount: 8, thoughtsTokenCount: 5 } })
        ),
        event(piece([{ text: "a" }], {}, { modelVersion: "gemini-3-flash-001", responseId: "fxResp" })),
        event(piece([{ text: "", thoughtSignature: "dA==" }], stop, { usageMetadata: { candidatesTokenCount: 2 } }))
      ])

      assert.deepStrictEqual(result, {
        parts: [
          { _tag: "ReasoningDelta", text: "hm" },
          { _tag: "TextDelta", text: "a" },
          {
            _tag: "End",
            finishReason: "stop",
            model: "gemini-3-flash-001",
            usage: { inputTokens: 8, outputTokens: 7, reasoningTokens: 5 },
            requestId: "fxResp",
            opaque: { wire: "gemini", provider: "gemini", value: [{ thoughtSignature: "dA==" }] }
          }
        ],
        error: undefined
      })
    })
  )

  it.effect("hold whole calls, each with an id of its own", () =>
    Effect.gen(function* () {
      const call = (name: string, more: object = {}) => ({ functionCall: { name, ...more } })

      const result = yield* read([
        event(piece([{ ...call("a", { args: { n: 1 } }), thoughtSignature: "c2ln" }, call("b", { id: "fx2" })])),
        event(piece([call("a", { args: { n: 2 } })])),
        event(piece([{ text: "" }], stop))
      ])

      assert.deepStrictEqual(result.parts, [
        { _tag: "ToolCallDelta", index: 0, id: "call_0", name: "a", arguments: '{"n":1}' },
        { _tag: "ToolCallDelta", index: 1, id: "fx2", name: "b", arguments: "{}" },
        { _tag: "ToolCallDelta", index: 2, id: "call_2", name: "a", arguments: '{"n":2}' },
        { _tag: "ToolCall", id: "call_0", name: "a", arguments: { n: 1 } },
        { _tag: "ToolCall", id: "fx2", name: "b", arguments: {} },
        { _tag: "ToolCall", id: "call_2", name: "a", arguments: { n: 2 } },
        {
          _tag: "End",
          finishReason: "tool-calls",
          opaque: {
            wire: "gemini",
            provider: "gemini",
            value: [
              { call: 0, thoughtSignature: "c2ln" },
              { call: 1, id: "fx2" }
            ]
          }
        }
      ])
    })
  )

  it.effect("hold arguments value by value where the request asks for it", () =>
    Effect.gen(function* () {
      const partial = (partialArgs: ReadonlyArray<object>, more: object = {}) =>
        event(piece([{ functionCall: { partialArgs, willContinue: true, ...more } }]))

      const result = yield* read([
        event(piece([{ functionCall: { name: "go", willContinue: true } }])),
        partial([{ jsonPath: "$.city", stringValue: "Os", willContinue: true }]),
        partial([{ jsonPath: "$.city", stringValue: "lo" }]),
        partial([
          { jsonPath: "$.stops[0].n", numberValue: 1 },
          { jsonPath: "$['a b']", boolValue: false },
          { jsonPath: '$["c\\"d"]', nullValue: "NULL_VALUE" },
          { jsonPath: "$.far[99999999999]", numberValue: 2 },
          { jsonPath: "", numberValue: 3 }
        ]),
        event(piece([{ functionCall: {} }])),
        event(piece([], stop))
      ])

      const given = { city: "Oslo", stops: [{ n: 1 }], "a b": false, 'c"d': null, far: [2] }
      const [call] = only(result, "ToolCall")
      assert.deepStrictEqual(call?.arguments, given)
      assert.deepStrictEqual(
        only(result, "ToolCallDelta").map((it) => JSON.parse(it.arguments)),
        [given]
      )
    })
  )
})

describe("the end of a stream", () => {
  it.effect("is the finish reason: without it the answer was cut", () =>
    Effect.gen(function* () {
      const { error, parts } = yield* read([
        event(piece([{ text: "a" }])),
        event(piece([{ functionCall: { name: "b" } }]))
      ])

      assert.strictEqual(error?._tag, "StreamInterruptedError")
      assert.strictEqual(error?.message, "gemini: the stream ended without a finish reason")
      assert.notInclude(
        parts.map((part) => (typeof part === "string" ? part : part._tag)),
        "ToolCall"
      )
    })
  )

  it.effect.each([
    ["an event", event(unavailable)],
    ["words between the events", JSON.stringify(unavailable, null, 2)],
    ["a broken connection", undefined]
  ] as const)("behind which comes %s is still the end", ([, after]) =>
    Effect.gen(function* () {
      const packets = [event(piece([{ text: "All." }], stop)), ...(after === undefined ? [] : [after])]

      const result = yield* read(packets, after === undefined ? "reset" : "close")

      assert.strictEqual(result.error, undefined)
      assert.deepStrictEqual(textsOf(result), ["All."])
    })
  )

  it.effect.each([
    ["an event", event(unavailable), "OverloadedError"],
    ["words between the events", JSON.stringify(unavailable, null, 2), "OverloadedError"],
    ["an error in a shape of a proxy's", event({ detail: "no" }), "InvalidResponseError"],
    ["no JSON", event("{"), "StreamInterruptedError"],
    ["what does not fit", event({ candidates: [{ content: { parts: 1 } }] }), "StreamInterruptedError"],
    ["null", event("null"), "StreamInterruptedError"],
    ["a block", event({ promptFeedback: { blockReason: "SAFETY" } }), "ContentPolicyError"],
    ["a faulty call", event(piece([], { finishReason: "MALFORMED_FUNCTION_CALL" })), "InvalidResponseError"]
  ] as const)("before which comes %s is a failure", ([, after, tag]) =>
    Effect.gen(function* () {
      const { error } = yield* read([event(piece([{ text: "a" }])), after])

      assert.strictEqual(error?._tag as string, tag)
      if (error?._tag === "ContentPolicyError") assert.strictEqual(error.stage, "prompt")
    })
  )
})

describe("a body that is no stream", () => {
  const whole = [piece([{ text: "Hel" }]), piece([{ text: "lo" }], stop, { usageMetadata: { promptTokenCount: 8 } })]

  it.effect.each([
    ["an array", JSON.stringify(whole, null, 2), "application/json"],
    ["an array that is called a stream", JSON.stringify(whole), "text/event-stream"],
    ["one body", JSON.stringify(piece([{ text: "Hello" }], stop)), "application/json"]
  ] as const)("%s is read as what it is", ([, body, type]) =>
    Effect.gen(function* () {
      const result = yield* read([body.slice(0, 20), body.slice(20)], "close", type)

      assert.strictEqual(result.error, undefined)
      assert.deepStrictEqual(textsOf(result), ["Hello"])
      assert.strictEqual(only(result, "End")[0]?.finishReason, "stop")
    })
  )

  it.effect.each([
    ["an error in an array", JSON.stringify([unavailable], null, 2), "OverloadedError"],
    ["an array that was cut", JSON.stringify(whole).slice(0, -9), "InvalidResponseError"],
    ["a page", "<html><title>Error 502</title></html>", "InvalidResponseError"]
  ] as const)("%s is a failure", ([, body, tag]) =>
    Effect.gen(function* () {
      const { error } = yield* read([body], "close", "application/json")

      assert.strictEqual(error?._tag as string, tag)
    })
  )
})
