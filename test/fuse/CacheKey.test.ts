import { isDeepStrictEqual } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import fc from "fast-check"
import { type Asked, cacheKey } from "../../src/fuse/CacheKey.ts"
import { canonicalText } from "../../src/fuse/CanonicalText.ts"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { Source } from "../../src/model/Message.ts"

const asked: ReadonlyArray<Asked> = [{ name: "groq", model: "llama" }, { name: "gemini" }]
const question: ChatRequest = { messages: [{ role: "user", content: "Why?" }] }

const keyOf = (request: ChatRequest) => cacheKey(request, asked)

const imageOf = (source: Source & { readonly detail?: "low" | "high" }): ChatRequest => ({
  messages: [{ role: "user", content: [{ type: "image", ...source }] }]
})

const shapeOf = (properties: object): ChatRequest => ({
  ...question,
  responseFormat: { schema: { type: "object", properties } }
})

/** A value of each field, and another one, which must not share a key. */
const differences: Readonly<Record<string, readonly [object, object]>> = {
  messages: [{ messages: [] }, { messages: [{ role: "user", content: "" }] }],
  "the role of a message": [
    { messages: [{ role: "user", content: "a" }] },
    { messages: [{ role: "assistant", content: "a" }] }
  ],
  "the order of messages": [
    {
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: "b" }
      ]
    },
    {
      messages: [
        { role: "user", content: "b" },
        { role: "user", content: "a" }
      ]
    }
  ],
  "where a message ends": [
    {
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: "bc" }
      ]
    },
    {
      messages: [
        { role: "user", content: "ab" },
        { role: "user", content: "c" }
      ]
    }
  ],
  "a text that looks like two": [
    { messages: [{ role: "user", content: 'a"},{"role":"user","content":"b' }] },
    {
      messages: [
        { role: "user", content: "a" },
        { role: "user", content: "b" }
      ]
    }
  ],
  "the bytes of an image": [
    imageOf({ data: Uint8Array.of(1, 2, 3), mediaType: "image/png" }),
    imageOf({ data: Uint8Array.of(1, 2, 4), mediaType: "image/png" })
  ],
  "the media type of an image": [
    imageOf({ data: "AQID", mediaType: "image/png" }),
    imageOf({ data: "AQID", mediaType: "image/jpeg" })
  ],
  "the address of an image": [imageOf({ url: "https://a.example/1" }), imageOf({ url: "https://a.example/2" })],
  "the detail of an image": [
    imageOf({ url: "https://a.example", detail: "low" }),
    imageOf({ url: "https://a.example", detail: "high" })
  ],
  "the call that a tool message answers": [
    { messages: [{ role: "tool", toolCallId: "1", content: "" }] },
    { messages: [{ role: "tool", toolCallId: "2", content: "" }] }
  ],
  "whether a tool failed": [
    { messages: [{ role: "tool", toolCallId: "1", content: "" }] },
    { messages: [{ role: "tool", toolCallId: "1", content: "", isError: true }] }
  ],
  "the arguments of a tool call": [
    { messages: [{ role: "assistant", content: "", toolCalls: [{ id: "1", name: "f", arguments: { a: 1 } }] }] },
    { messages: [{ role: "assistant", content: "", toolCalls: [{ id: "1", name: "f", arguments: { a: "1" } }] }] }
  ],
  "what a vendor wants back": [
    { messages: [{ role: "assistant", content: "", opaque: { wire: "w", provider: "p", value: "1" } }] },
    { messages: [{ role: "assistant", content: "", opaque: { wire: "w", provider: "p", value: 1 } }] }
  ],
  system: [{ system: "a" }, { system: "b" }],
  "no system and an empty one": [{}, { system: "" }],
  maxTokens: [{ maxTokens: 1 }, { maxTokens: 2 }],
  temperature: [{ temperature: 0 }, {}],
  topP: [{ topP: 0.5 }, { topP: 0.25 }],
  stop: [{ stop: ["a", "b"] }, { stop: ["a,b"] }],
  seed: [{ seed: 1 }, { seed: 2 }],
  tools: [{ tools: [{ name: "a" }] }, { tools: [{ name: "b" }] }],
  "no tools and none": [{}, { tools: [] }],
  "the parameters of a tool": [
    { tools: [{ name: "a", parameters: Schema.Struct({ a: Schema.String }) }] },
    { tools: [{ name: "a", parameters: Schema.Struct({ a: Schema.Number }) }] }
  ],
  "the strictness of a tool": [{ tools: [{ name: "a", strict: true }] }, { tools: [{ name: "a", strict: false }] }],
  toolChoice: [{ toolChoice: "none" }, { toolChoice: { name: "none" } }],
  parallelToolCalls: [{ parallelToolCalls: true }, { parallelToolCalls: false }],
  responseFormat: [{ responseFormat: "text" }, { responseFormat: "json" }],
  "the schema of the answer": [
    { responseFormat: { schema: Schema.Struct({ a: Schema.String }) } },
    { responseFormat: { schema: Schema.Struct({ a: Schema.optional(Schema.String) }) } }
  ],
  "the order of the properties of a schema, in which models write": [
    shapeOf({ reasoning: {}, answer: {} }),
    shapeOf({ answer: {}, reasoning: {} })
  ],
  "the name of the shape": [
    { responseFormat: { schema: {}, name: "a" } },
    { responseFormat: { schema: {}, name: "b" } }
  ],
  reasoning: [{ reasoning: { effort: "low" } }, { reasoning: { effort: "high" } }],
  extra: [{ extra: { a: 1 } }, { extra: { a: "1" } }],
  "null and missing": [{ extra: { a: null } }, { extra: {} }],
  "true and its text": [{ extra: { a: true } }, { extra: { a: "true" } }],
  "numbers that JSON lacks": [{ extra: { a: Number.NaN } }, { extra: { a: null } }],
  "infinity and its opposite": [{ extra: { a: Infinity } }, { extra: { a: -Infinity } }],
  "bytes and their text": [{ extra: { a: Uint8Array.of(1) } }, { extra: { a: "bytes(AQ==)" } }],
  "dates and their text": [{ extra: { a: new Date(0) } }, { extra: { a: new Date(0).toISOString() } }],
  "big numbers": [{ extra: { a: 1n } }, { extra: { a: 1 } }],
  "an array and an object": [{ extra: { a: ["x"] } }, { extra: { a: { 0: "x" } } }],
  depth: [{ extra: { a: { b: {} }, c: {} } }, { extra: { a: { b: {}, c: {} } } }],
  "lone surrogates": [{ extra: { a: "\ud800" } }, { extra: { a: "\ufffd" } }],
  "a key of every object": [{ extra: JSON.parse('{ "__proto__": 1 }') }, { extra: {} }],
  "a field of the future": [{ future: 1 }, { future: 2 }]
}

/** The same value with all keys the other way round. */
const reversed = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(reversed)
    : typeof value === "object" && value !== null && !(value instanceof Uint8Array)
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([key, item]) => [key, reversed(item)])
        )
      : value

const few = fc.constantFrom("", "a", "1", "null", "undefined", '"', "\\")
const scalar = fc.oneof(few, fc.constantFrom(0, 1, -1, 1.5, true, false, null))
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 2 }),
    fc.dictionary(few, tie("value"), { maxKeys: 2, noNullPrototype: true })
  )
})).value

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })
const content = fc.oneof(few, fc.array(fc.record({ type: fc.constant("text" as const), text: few }), { maxLength: 2 }))
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system" as const, "user" as const), content }),
  fc.record({ role: fc.constant("tool" as const), toolCallId: few, content, isError: optional(fc.boolean()) }),
  fc.record({
    role: fc.constant("assistant" as const),
    content,
    toolCalls: optional(fc.array(fc.record({ id: few, name: few, arguments: json }), { maxLength: 2 }))
  })
)

const requests: fc.Arbitrary<ChatRequest> = fc.record({
  messages: fc.array(message, { maxLength: 2 }),
  system: optional(few),
  maxTokens: optional(fc.constantFrom(1, 2)),
  temperature: optional(fc.constantFrom(0, 1)),
  topP: optional(fc.constantFrom(0.5, 1)),
  stop: optional(fc.array(few, { maxLength: 2 })),
  seed: optional(fc.constantFrom(0, 1)),
  tools: optional(fc.array(fc.record({ name: few, description: optional(few) }), { maxLength: 2 })),
  toolChoice: optional(fc.oneof(fc.constantFrom("auto" as const, "none" as const), fc.record({ name: few }))),
  parallelToolCalls: optional(fc.boolean()),
  responseFormat: optional(fc.constantFrom("text" as const, "json" as const, { schema: { type: "object" } })),
  reasoning: optional(fc.record({ effort: optional(fc.constantFrom("low" as const, "high" as const)) })),
  extra: optional(fc.dictionary(few, json, { maxKeys: 2, noNullPrototype: true }))
})

/** In which two requests may differ. */
const fields = ["all", "messages", "tools", "stop", "responseFormat", "extra"] as const

/** What a JSON round trip leaves of a request: the same for two that a vendor cannot tell apart. */
const seenByVendor = (request: ChatRequest): unknown => JSON.parse(JSON.stringify(request))

describe("cacheKey", () => {
  it.each(Object.entries(differences))("tells apart: %s", (_, [one, other]) => {
    const [first, second] = [keyOf({ ...question, ...one }), keyOf({ ...question, ...other })]

    assert.isString(first)
    assert.isString(second)
    assert.notStrictEqual(first, second)
  })

  it("two requests have the same key exactly if a vendor cannot tell them apart", () => {
    let equal = 0
    fc.assert(
      fc.property(requests, requests, fc.constantFrom(...fields), (one, another, field) => {
        const other = field === "all" ? another : { ...one, [field]: another[field] }
        const isSame = isDeepStrictEqual(seenByVendor(one), seenByVendor(other))
        if (isSame) equal += 1
        assert.strictEqual(keyOf(one) === keyOf(other), isSame)
      }),
      { numRuns: 3000 }
    )
    assert.isAbove(equal, 20)
  })

  it("a change of one field alone changes the key", () => {
    fc.assert(
      fc.property(requests, requests, (one, other) => {
        for (const field of Object.keys(one) as Array<keyof ChatRequest>) {
          const changed = { ...one, [field]: other[field] }
          const isSame = isDeepStrictEqual(seenByVendor(one), seenByVendor(changed))
          assert.strictEqual(keyOf(one) === keyOf(changed), isSame, field)
        }
      }),
      { numRuns: 500 }
    )
  })

  it("the order of keys does not matter, nor does a key without a value", () => {
    fc.assert(
      fc.property(requests, (request) => {
        assert.strictEqual(keyOf(reversed(request) as ChatRequest), keyOf(request))
        assert.strictEqual(keyOf(seenByVendor(request) as ChatRequest), keyOf(request))
      }),
      { numRuns: 500 }
    )
  })

  it("bytes and their base64 are the same image", () => {
    const bytes = imageOf({ data: Uint8Array.of(1, 2, 3), mediaType: "image/png" })
    const text = imageOf({ data: "AQID", mediaType: "image/png" })

    assert.strictEqual(keyOf(bytes), keyOf(text))
  })

  it("a schema and its JSON schema are the same shape", () => {
    const shape = {
      type: "object",
      required: ["a"],
      properties: { a: { type: "string" } },
      additionalProperties: false
    }

    assert.strictEqual(
      keyOf({ ...question, responseFormat: { schema: Schema.Struct({ a: Schema.String }) } }),
      keyOf({ ...question, responseFormat: { schema: shape } })
    )
  })

  it("metadata is left out", () => {
    assert.strictEqual(keyOf({ ...question, metadata: { user: "1" } }), keyOf(question))
  })

  it("who is asked counts: name, model and order", () => {
    const keys = [
      asked,
      asked.toReversed(),
      asked.slice(0, 1),
      [{ name: "groq", model: "other" }, { name: "gemini" }],
      [{ name: "llama", model: "groq" }, { name: "gemini" }],
      []
    ].map((who) => cacheKey(question, who))

    assert.strictEqual(new Set(keys).size, keys.length)
  })

  it("holds nothing of a provider but its name and model", () => {
    const provider = { name: "groq", model: "llama", complete: () => undefined }

    assert.strictEqual(cacheKey(question, [provider]), cacheKey(question, asked.slice(0, 1)))
  })

  const circle: Record<string, unknown> = {}
  circle.self = circle
  const explosive = {
    get bomb() {
      return JSON.parse("{")
    }
  }
  const deep = JSON.parse(`${"[".repeat(5000)}${"]".repeat(5000)}`)
  const without: Readonly<Record<string, object>> = {
    "a circle": { extra: circle },
    "a function": { extra: { f: () => 1 } },
    "a symbol": { extra: { s: Symbol("s") } },
    "a map": { extra: { m: new Map([["a", 1]]) } },
    "an instance of a class": { extra: { u: new URL("https://a.example") } },
    "a getter that throws": { extra: explosive },
    "a schema without a JSON schema": { responseFormat: { schema: Schema.Struct({ a: Schema.SymbolFromSelf }) } },
    "no messages at all": { messages: undefined },
    "a message that is none": { messages: [null] }
  }

  it.each(Object.entries(without))("has none, and does not throw: %s", (_, fields) => {
    assert.isUndefined(keyOf({ ...question, ...fields } as ChatRequest))
  })

  it("what is nested too deep for the stack does not throw either", () => {
    const key = keyOf({ ...question, extra: { deep } })

    assert.isTrue(key === undefined || key.length > 10_000)
  })

  it("what is met twice without a circle has a key", () => {
    const twice = { a: 1 }

    assert.isString(keyOf({ ...question, extra: { one: twice, other: [twice, twice] } }))
  })
})

describe("canonicalText", () => {
  it("is JSON where the value is", () => {
    fc.assert(
      fc.property(json, (value) => {
        assert.deepStrictEqual(JSON.parse(canonicalText(value) ?? ""), value)
      })
    )
  })

  it("sees a circle before the stack ends", () => {
    const circle: Array<unknown> = []
    circle.push({ circle })

    assert.isUndefined(canonicalText(circle))
  })
})
