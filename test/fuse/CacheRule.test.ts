import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Either } from "effect"
import { codec, isKept, servedFromCache } from "../../src/fuse/CacheRule.ts"
import type { ChatResponse } from "../../src/model/ChatResponse.ts"

const response: ChatResponse = {
  text: "42",
  provider: "groq",
  model: "llama",
  finishReason: "stop",
  usage: { inputTokens: 10, outputTokens: 1 },
  toolCalls: [],
  latency: Duration.millis(900),
  attempts: [
    {
      provider: "groq",
      number: 1,
      startedAt: DateTime.unsafeMake(0),
      duration: Duration.millis(900),
      outcome: "success"
    }
  ],
  cached: false
}

const toolCalls = [{ id: "1", name: "weather", arguments: { city: "Oslo" } }]

const kept: Readonly<Record<string, object>> = {
  "a text that is done": {},
  "tool calls": { text: "", finishReason: "tool-calls", toolCalls },
  "tool calls of a vendor that says stop": { text: "", toolCalls },
  "an empty refusal, which is none": { refusal: "" },
  "what is no fallback": { fallback: false }
}

const notKept: Readonly<Record<string, object>> = {
  "an answer that was cut off at the token limit (AgentsKit PR#1225)": { finishReason: "length" },
  "a stream that ended with [DONE] but no finish reason (LightRAG PR#3446)": { finishReason: "unknown" },
  "an incomplete stream (gonka#1722)": { finishReason: "unknown", text: "The answer is" },
  "what a filter stopped": { finishReason: "content-filter" },
  "a refusal": { refusal: "I cannot help with that." },
  "a fallback": { fallback: true },
  "what came from the cache": { cached: true },
  "an empty text": { text: "" },
  "tool calls that are missing": { finishReason: "tool-calls" },
  "tool calls whose arguments are no JSON": {
    finishReason: "tool-calls",
    toolCalls: [{ id: "1", name: "weather", rawArguments: '{"city":' }]
  },
  "a finish reason of the future": { finishReason: "paused" }
}

describe("isKept", () => {
  it.each(Object.entries(kept))("keeps: %s", (_, fields) => {
    assert.isTrue(isKept({ ...response, ...fields }))
  })

  it.each(Object.entries(notKept))("does not keep: %s", (_, fields) => {
    assert.isFalse(isKept({ ...response, ...fields }))
  })
})

describe("servedFromCache", () => {
  it("says that it was kept, that nobody was asked, and how long it took", () => {
    const served = servedFromCache(response, Duration.millis(1))

    assert.deepStrictEqual(served, { ...response, cached: true, attempts: [], latency: Duration.millis(1) })
    assert.isFalse(response.cached)
  })

  it("costs nothing, where costs are told", () => {
    assert.strictEqual(servedFromCache({ ...response, cost: 0.25 }, Duration.zero).cost, 0)
    assert.notProperty(servedFromCache(response, Duration.zero), "cost")
  })
})

describe("codec", () => {
  const roundTrip = (value: ChatResponse) => Either.flatMap(codec.encode(value), codec.decode)

  it("brings an answer back without the story of its call", () => {
    const full: ChatResponse = {
      ...response,
      toolCalls,
      reasoning: "6 x 7",
      requestId: "req_1",
      opaque: { wire: "anthropic", provider: "claude", value: [{ type: "thinking", signature: "s" }] },
      changes: ["seed was left out"]
    }

    assert.deepStrictEqual(roundTrip(full), Either.right({ ...full, attempts: [], latency: Duration.zero }))
  })

  it.each(["", "{", "null", "[]", "{}", '{"text":"a","provider":"b","model":"c","finishReason":"stop","cached":true}'])(
    "refuses a text that is none: %s",
    (text) => {
      assert.isTrue(Either.isLeft(codec.decode(text)))
    }
  )

  it("an answer that cannot be written is not", () => {
    assert.isTrue(Either.isLeft(codec.encode({ ...response, opaque: { wire: "w", provider: "p", value: 1n } })))
  })
})
