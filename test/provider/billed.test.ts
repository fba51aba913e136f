import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EmptyResponseError, type ProviderError } from "../../src/model/LlmError.ts"
import type { Usage } from "../../src/model/Usage.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { answering } from "./fakeClient.ts"
import { type BodyEnd, bodyIn, drained, event } from "./streaming.ts"

const key = "fx-0123456789-secret"
const hello = { messages: [{ role: "user", content: "hello" }] } as const
const read: Usage = { inputTokens: 90, outputTokens: 7 }

/** What belongs to a wire: its usage with more in it than counts, and an answer's beginning. */
const wires = [
  {
    wire: "OpenAI's wire",
    make: OpenAiCompatible.make({ name: "p", model: "m", apiKey: key, baseUrl: "https://llm.example.test/v1" }),
    usage: { usage: { prompt_tokens: 90, completion_tokens: 7, note: key, service_tier: "hello" } },
    nothing: { choices: [{ index: 0, message: { content: "" }, finish_reason: "stop" }] },
    missing: "InvalidResponseError",
    said: [{ choices: [{ index: 0, delta: { content: "Half" } }] }, { choices: [] }]
  },
  {
    wire: "Anthropic",
    make: Anthropic.make({ name: "p", model: "m", apiKey: key }),
    usage: { usage: { input_tokens: 90, output_tokens: 7, note: key, service_tier: "hello" } },
    nothing: { type: "message", content: [], stop_reason: "end_turn" },
    missing: "InvalidResponseError",
    said: [
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Half" } },
      { type: "message_delta", delta: {} }
    ]
  },
  {
    wire: "Gemini",
    make: GeminiNative.make({ name: "p", model: "m", apiKey: key }),
    usage: { usageMetadata: { promptTokenCount: 90, candidatesTokenCount: 7, note: key, serviceTier: "hello" } },
    nothing: { candidates: [{ content: { parts: [] }, finishReason: "STOP" }] },
    // What counts tokens is an answer.
    missing: "EmptyResponseError",
    said: [{ candidates: [{ content: { parts: [{ text: "Half" }] } }] }, { candidates: [] }]
  }
] as const

type Wire = (typeof wires)[number]

const error = { error: { code: 500, type: "api_error", message: "It broke" } }

/** What a whole body comes to, asked for whole and asked for as a stream. */
const whole = Effect.fn(function* ({ make }: Wire, body: string, status = 200) {
  const { layer } = answering({ status, body })
  const provider = yield* Effect.provide(make, layer)
  const { error } = yield* drained(provider)
  assert.isDefined(error)
  return [yield* Effect.flip(provider.complete(hello)), error as ProviderError] as const
})

const streamed = Effect.fn(function* ({ make }: Wire, packets: ReadonlyArray<string>, end: BodyEnd = "close") {
  const { layer } = answering({ headers: { "content-type": "text/event-stream" }, body: bodyIn(packets, end) })
  const { error } = yield* drained(yield* Effect.provide(make, layer))
  assert.isDefined(error)
  return error as ProviderError
})

/** The beginning of a stream that says its usage. */
const begun = ({ said: [first, last], usage }: Wire): ReadonlyArray<string> => [
  event(first),
  event({ ...last, ...usage })
]

describe.each(wires)("an error of $wire", (wire) => {
  it.effect.each([
    ["nothing in it", "EmptyResponseError", { ...wire.nothing, ...wire.usage }],
    ["an error in it", "ServerError", { ...error, ...wire.usage }],
    ["an error in it beside an answer", "ServerError", { ...wire.nothing, ...error, ...wire.usage }],
    ["a message instead of an answer", wire.missing, { message: "It broke", ...wire.usage }]
  ] as const)("tells the usage of an answer with %s", ([, tag, body]) =>
    Effect.gen(function* () {
      const errors = yield* whole(wire, JSON.stringify(body))

      for (const error of errors) {
        assert.strictEqual(error._tag, tag)
        assert.deepStrictEqual(error.usage, read)
      }
    })
  )

  it.effect.each([
    ["without usage", 200, JSON.stringify(wire.nothing)],
    ["with an error and no usage", 200, JSON.stringify(error)],
    ["with a usage that is none", 200, JSON.stringify({ ...error, usage: key, usageMetadata: [key] })],
    ["that is no JSON", 200, `{"usage": ${JSON.stringify(wire.usage)}`],
    ["with nothing", 200, ""],
    ["with another status", 500, JSON.stringify({ ...error, ...wire.usage })]
  ] as const)("tells no usage of a body %s", ([, status, body]) =>
    Effect.gen(function* () {
      for (const error of yield* whole(wire, body, status)) assert.isUndefined(error.usage)
    })
  )

  it.effect.each([
    ["an error", "ServerError", [event({ type: "error", ...error })], "close"],
    ["an error by its event's name", "ServerError", [event(error.error, "error")], "close"],
    ["an error that is no event", "ServerError", [`${JSON.stringify(error)}\n`], "close"],
    ["a broken connection", "StreamInterruptedError", [], "reset"],
    ["an end too soon", "StreamInterruptedError", [], "close"],
    ["an event that is malformed", "StreamInterruptedError", [event("{")], "close"]
  ] as const)("tells the usage that a stream had said before %s", ([, tag, packets, end]) =>
    Effect.gen(function* () {
      const error = yield* streamed(wire, [...begun(wire), ...packets], end)

      assert.strictEqual(error._tag, tag)
      assert.deepStrictEqual(error.usage, read)
    })
  )

  it.effect("takes the usage beside it for the last word", () =>
    Effect.gen(function* () {
      const [packet] = begun({ ...wire, usage: {} } as unknown as Wire)

      const failed = yield* streamed(wire, [packet ?? "", event({ type: "error", ...error, ...wire.usage })])

      assert.strictEqual(failed._tag, "ServerError")
      assert.deepStrictEqual(failed.usage, read)
    })
  )

  it.effect("tells no usage where the stream had said none", () =>
    Effect.gen(function* () {
      const { said } = wire

      assert.isUndefined((yield* streamed(wire, [event(said[0])], "reset")).usage)
      assert.isUndefined((yield* streamed(wire, [event({ type: "error", ...error })])).usage)
    })
  )
})

describe("an error", () => {
  it("takes a usage as it is, and nothing that is none", () => {
    assert.strictEqual(new EmptyResponseError({ provider: "p", usage: read }).usage, read)
    assert.isUndefined(new EmptyResponseError({ provider: "p" }).usage)
    for (const usage of ["9", null, {}, { inputTokens: 9 }, { inputTokens: "9", outputTokens: 9 }]) {
      assert.throws(() => new EmptyResponseError({ provider: "p", usage: usage as never }))
    }
  })
})
