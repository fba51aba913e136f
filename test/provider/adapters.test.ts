import type * as HttpClient from "@effect/platform/HttpClient"
import { assert, describe, it } from "@effect/vitest"
import { type ConfigError, Duration, Effect, Either, TestClock } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import * as HttpFailure from "../../src/provider/HttpFailure.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import type { Made } from "../../src/provider/VendorTag.ts"
import { answering } from "./fakeClient.ts"
import { bodyOf, differences, type Fixture, finishOf, fixtures, streams, tagOf, usageOf } from "./fixtures.ts"
import { drained } from "./streaming.ts"

const request = { messages: [{ role: "user", content: "hello" }] } as const

const makeFor = (fixture: Fixture): Effect.Effect<Made, ConfigError.ConfigError, HttpClient.HttpClient> =>
  fixture.wire === "anthropic-messages"
    ? Anthropic.make({ model: "m", apiKey: "sk-fx-adapters", name: fixture.provider })
    : fixture.wire === "gemini"
      ? GeminiNative.make({ model: "m", apiKey: "sk-fx-adapters", name: fixture.provider })
      : OpenAiCompatible.make({ name: fixture.provider, model: "m", baseUrl: "https://llm.example.test/v1" })

const ask = Effect.fn(function* (fixture: Fixture) {
  yield* TestClock.setTime(Date.parse("2026-11-30T00:00:00Z"))
  const { layer } = answering({ status: fixture.status, headers: fixture.headers, body: bodyOf(fixture) })
  const provider = yield* makeFor(fixture).pipe(Effect.provide(layer))
  return yield* Effect.either(provider.complete(request))
})

const classify = (fixture: Fixture) =>
  HttpFailure.fromResponse({
    provider: fixture.provider,
    status: fixture.status,
    headers: fixture.headers,
    body: bodyOf(fixture),
    nowMillis: Date.parse("2026-11-30T00:00:00Z"),
    redact: (text) => text
  })

const hasAdapter = ({ wire }: Fixture) => ["openai-chat", "anthropic-messages", "gemini"].includes(wire)

describe("answers", () => {
  it.effect.each(fixtures.filter((fixture) => hasAdapter(fixture) && tagOf(fixture) === undefined))(
    "$name is read",
    (fixture) =>
      Effect.gen(function* () {
        const answer = Either.getOrThrow(yield* ask(fixture)) as ProviderAnswer

        assert.strictEqual(answer.text, fixture.expect.text ?? "")
        assert.strictEqual(answer.reasoning, fixture.expect.reasoning)
        assert.deepStrictEqual(answer.toolCalls, fixture.expect.toolCalls ?? [])
        assert.strictEqual(answer.finishReason, finishOf(fixture.expect))
        assert.deepStrictEqual(answer.usage as unknown, usageOf(fixture))
      })
  )
})

describe("failures", () => {
  it.effect.each(fixtures.filter((fixture) => tagOf(fixture) !== undefined))("$name is classified", (fixture) =>
    Effect.gen(function* () {
      const error = hasAdapter(fixture) ? yield* Effect.flip(yield* ask(fixture)) : classify(fixture)

      assert.strictEqual(error._tag as string, tagOf(fixture))
      const wait = error.retryAfter === undefined ? undefined : Duration.toMillis(error.retryAfter)
      assert.strictEqual(wait, fixture.expect.retryAfterMillis)
      if (!(fixture.name in differences)) assert.strictEqual(error.isRetryable, fixture.expect.retryable)
      assert.isTrue(error.message.startsWith(`${fixture.provider}: `))
      assert.notMatch(error.message, /[<\n]/)
      assert.deepStrictEqual(error.usage as unknown, usageOf(fixture))
      assert.isBelow(error.message.length, 360)
    })
  )
})

describe("what cannot be written as JSON", () => {
  const circle: Record<string, unknown> = { type: "object" }
  circle.properties = { circle }
  const deep = (depth: number) => {
    let schema: Record<string, unknown> = { type: "string" }
    for (let level = 0; level < depth; level++) schema = { type: "object", properties: { a: schema } }
    return schema
  }
  const makers = [
    ["OpenAI's wire", OpenAiCompatible.make({ name: "p", model: "m", baseUrl: "https://llm.example.test/v1" })],
    [
      "OpenAI's wire, with the schema in words",
      OpenAiCompatible.make({ name: "p", model: "m", baseUrl: "https://x.test/v1", jsonSchema: "instruction" })
    ],
    ["Anthropic", Anthropic.make({ model: "claude-haiku-4-5", apiKey: "fx-key", name: "p" })],
    ["Gemini", GeminiNative.make({ model: "gemini-2.5-flash", apiKey: "fx-key", name: "p" })]
  ] as const
  const calling = (given: unknown): Partial<ChatRequest> => ({
    messages: [
      { role: "user", content: "go" },
      { role: "assistant", content: "", toolCalls: [{ id: "1", name: "f", arguments: given }] },
      { role: "tool", toolCallId: "1", content: "done" }
    ]
  })
  const requests: ReadonlyArray<readonly [string, Partial<ChatRequest>]> = [
    ["a circle in arguments", calling(circle)],
    ["a bigint in arguments", calling({ a: 1n })],
    ["deep arguments", calling(deep(100_000))],
    ["a circle in a tool", { tools: [{ name: "f", parameters: circle, strict: true }] }],
    ["a deep tool", { tools: [{ name: "f", parameters: deep(100_000), strict: true }] }],
    ["a circle in the answer's schema", { responseFormat: { schema: circle } }],
    ["a deep answer's schema", { responseFormat: { schema: deep(100_000) }, tools: [{ name: "f" }] }],
    ["a circle in what the user adds", { extra: { circle } }]
  ]

  it.effect.each(makers.flatMap(([to, make]) => requests.map(([what, more]) => ({ to, make, what, more }))))(
    "$what is an InvalidRequestError of $to",
    ({ make, more }) =>
      Effect.gen(function* () {
        const { layer, sent } = answering({ body: "{}" })
        const provider = yield* Effect.provide(make, layer)
        const asked: ChatRequest = { ...request, ...more }

        const whole = yield* Effect.flip(provider.complete(asked))
        const { error: streamed } = yield* drained(provider, asked)

        for (const error of [whole, streamed]) {
          assert.strictEqual(error?._tag, "InvalidRequestError")
          assert.include(error?.message, "cannot be written as JSON")
        }
        assert.lengthOf(sent, 0)
      })
  )
})

describe("differences", () => {
  it("stand only where a fixture is", () => {
    const names = [...fixtures, ...streams].map(({ name }) => name)

    assert.deepStrictEqual(
      Object.keys(differences).filter((name) => !names.includes(name)),
      []
    )
  })
})
