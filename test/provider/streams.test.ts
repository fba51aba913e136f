import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import * as fc from "fast-check"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { answering } from "./fakeClient.ts"
import { differences, type Fixture, finishOf, packetsOf, streams, tagOf, usageOf } from "./fixtures.ts"
import { bodyIn, type Drained, drained, only, textsOf } from "./streaming.ts"

const wires = ["openai-chat", "anthropic-messages", "gemini"]

const fixtures = streams.filter(({ wire }) => wires.includes(wire))

const read = (fixture: Fixture, packets = packetsOf(fixture)): Effect.Effect<Drained> =>
  Effect.gen(function* () {
    const body = bodyIn(packets, fixture.connection === "reset" ? "reset" : "close")
    const { layer } = answering({ status: fixture.status, headers: fixture.headers, body })
    const make =
      fixture.wire === "anthropic-messages"
        ? Anthropic.make({ model: "m", apiKey: "sk-fx-streams", name: fixture.provider })
        : fixture.wire === "gemini"
          ? GeminiNative.make({ model: "m", apiKey: "sk-fx-streams", name: fixture.provider })
          : OpenAiCompatible.make({ name: fixture.provider, model: "m", baseUrl: "https://llm.example.test/v1" })
    return yield* drained(yield* make.pipe(Effect.provide(layer), Effect.orDie))
  })

describe("streams of every vendor", () => {
  it("are there", () => {
    assert.isAbove(fixtures.length, 60)
  })

  it.effect.each(fixtures.filter((fixture) => tagOf(fixture) === undefined))("$name is read", (fixture) =>
    Effect.gen(function* () {
      const { expect } = fixture

      const result = yield* read(fixture)

      assert.strictEqual(result.error, undefined)
      if (expect.deltas !== undefined) assert.deepStrictEqual(textsOf(result), expect.deltas)
      assert.strictEqual(textsOf(result).join(""), expect.text ?? "")
      assert.strictEqual(textsOf(result, "ReasoningDelta").join(""), expect.reasoning ?? "")
      assert.deepStrictEqual(
        only(result, "ToolCall").map(({ _tag, ...call }) => call),
        (expect.toolCalls ?? []) as never
      )
      assert.isTrue(textsOf(result).every((text) => text !== ""))
      const end = only(result, "End")
      assert.strictEqual(end.length, 1)
      assert.strictEqual(result.parts.at(-1), end[0])
      assert.strictEqual(end[0]?.finishReason as string, finishOf(expect))
      assert.deepStrictEqual(end[0]?.usage as unknown, usageOf(fixture))
    })
  )

  it.effect.each(fixtures.filter((fixture) => tagOf(fixture) !== undefined))("$name fails", (fixture) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse("2026-11-30T00:00:00Z"))

      const result = yield* read(fixture)

      const { error } = result
      assert.strictEqual(error?._tag as string, tagOf(fixture))
      assert.strictEqual(textsOf(result).join(""), fixture.expect.partialText ?? "")
      assert.deepStrictEqual(error?.usage as unknown, usageOf(fixture))
      assert.deepStrictEqual([...only(result, "ToolCall"), ...only(result, "End")], [])
      const wait = error?.retryAfter === undefined ? undefined : Duration.toMillis(error.retryAfter)
      assert.strictEqual(wait, fixture.expect.retryAfterMillis)
      if (!(fixture.name in differences)) assert.strictEqual(error?.isRetryable, fixture.expect.retryable)
      assert.isTrue(error?.message.startsWith(`${fixture.provider}: `))
      assert.notMatch(error?.message ?? "", /[<\n]/)
    })
  )

  it.effect.each(fixtures.filter(({ expect }) => expect.outcome === "tool_calls"))(
    "$name hands the pieces of its calls out before them",
    (fixture) =>
      Effect.gen(function* () {
        const result = yield* read(fixture)

        const pieces = new Map<string, string>()
        for (const { id, name, index, arguments: piece } of only(result, "ToolCallDelta")) {
          pieces.set(`${index} ${id} ${name}`, `${pieces.get(`${index} ${id} ${name}`) ?? ""}${piece}`)
        }
        for (const call of only(result, "ToolCall")) {
          const [, written = ""] = [...pieces].find(([key]) => key.endsWith(` ${call.id} ${call.name}`)) ?? []
          assert.deepStrictEqual(JSON.parse(written === "" ? "{}" : written), call.arguments)
        }
      })
  )
})

/** Cuts bytes at the given places, which may be the same. */
const cutAt = (bytes: Uint8Array, places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return sorted.slice(1).map((place, index) => bytes.slice(sorted[index], place))
}

const bytesOf = (fixture: Fixture): Uint8Array => new Uint8Array(Buffer.concat(packetsOf(fixture)))

const shown = ({ parts, error }: Drained) => ({ parts, error: error && `${error._tag}: ${error.message}` })

describe("packets", () => {
  it.effect.each(fixtures)("$name is the same byte by byte", (fixture) =>
    Effect.gen(function* () {
      const bytes = bytesOf(fixture)
      const whole = yield* read(fixture, [bytes])

      const pieces = yield* read(
        fixture,
        [...bytes].map((byte) => Uint8Array.of(byte))
      )

      assert.deepStrictEqual(shown(pieces), shown(whole))
    })
  )

  it.effect.each(fixtures)("$name is the same however it is cut", (fixture) =>
    Effect.gen(function* () {
      const bytes = bytesOf(fixture)
      const whole = yield* read(fixture, [bytes])
      const isSame = fc.asyncProperty(fc.array(fc.nat(), { maxLength: 20 }), async (places) => {
        const pieces = await Effect.runPromise(read(fixture, cutAt(bytes, places)))

        assert.deepStrictEqual(shown(pieces), shown(whole))
      })

      yield* Effect.promise(() => fc.assert(isSame, { numRuns: 20 }))
    })
  )
})
