import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { Anthropic, LlmFuse } from "llmfuse"
import { FakeHttp } from "llmfuse/testing"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import { asked, events, message, type Own, said, streamed, text, user } from "./anthropic.ts"
import { event, only, textsOf } from "./streaming.ts"

const Person = Schema.Struct({ name: Schema.String, tags: Schema.Array(Schema.String) })
const ada = { name: "Ada", tags: ["}", "{}"] }
const personSchema = {
  type: "object",
  required: ["name", "tags"],
  properties: { name: { type: "string" }, tags: { type: "array", items: { type: "string" } } },
  additionalProperties: false
}

const wanted = (schema: object = Person): ChatRequest => ({ ...said(user()), responseFormat: { schema } as never })

const use = (input: unknown, name = "answer") => ({ type: "tool_use", id: "toolu_1", name, input })

/** A stream in which the answer's tool is called with this JSON, in pieces of so many characters. */
const calling = (json: string, size: number, stop_reason = "tool_use") => {
  const pieces = json.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []
  const deltas = ["", ...pieces].map((partial_json) => ({ type: "input_json_delta", partial_json }))
  return events([{ block: use({}), deltas }], stop_reason)
}

describe("an answer of a schema", () => {
  it.effect("is the input of a tool that must be called once", () =>
    Effect.gen(function* () {
      const { body, answer } = yield* asked(wanted(), {}, message([use(ada)], "tool_use"))

      assert.deepStrictEqual(body.tools, [
        { name: "answer", description: "Takes the answer.", input_schema: personSchema }
      ])
      assert.deepStrictEqual(body.tool_choice, { type: "tool", name: "answer", disable_parallel_tool_use: true })
      assert.notProperty(body, "output_config")
      assert.deepStrictEqual(answer, {
        text: JSON.stringify(ada),
        model: "claude-1",
        finishReason: "stop",
        toolCalls: []
      })
    })
  )

  it.effect("has the name and the description that it is given", () =>
    Effect.gen(function* () {
      const responseFormat = { schema: Person, name: "person", description: "A person." }

      const { body, answer } = yield* asked({ ...said(user()), responseFormat }, {}, message([use(ada, "person")]))

      assert.deepInclude(body.tools[0], { name: "person", description: "A person." })
      assert.strictEqual(answer.text, JSON.stringify(ada))
    })
  )

  it.effect("that is no object stands under a key, and is taken out of it", () =>
    Effect.gen(function* () {
      const { body, answer } = yield* asked(wanted(Schema.Array(Schema.Int)), {}, message([use({ answer: [1] })]))

      const { input_schema } = body.tools[0]
      assert.strictEqual(input_schema.type, "object")
      assert.deepStrictEqual(input_schema.required, ["answer"])
      assert.property(input_schema.$defs, "Int")
      assert.strictEqual(answer.text, "[1]")
    })
  )

  it.effect("that was cut at the token limit says so", () =>
    Effect.gen(function* () {
      const { answer } = yield* asked(wanted(), {}, message([use({ name: "A" })], "max_tokens"))

      assert.include(answer, { finishReason: "length", text: '{"name":"A"}' })
    })
  )

  it.effect("that the model wrote as words is its words", () =>
    Effect.gen(function* () {
      const { answer } = yield* asked(wanted(), {}, message([text('{"name":"A"}')]))

      assert.include(answer, { finishReason: "stop", text: '{"name":"A"}' })
    })
  )
})

describe("a streamed answer of a schema", () => {
  it.effect.each([1, 3, 1000])("comes as text in pieces of %i, without a call", (size) =>
    Effect.gen(function* () {
      const { result, body } = yield* streamed(wanted(), calling(JSON.stringify(ada), size))

      assert.strictEqual(body.stream, true)
      assert.strictEqual(textsOf(result).join(""), JSON.stringify(ada))
      assert.deepStrictEqual([...only(result, "ToolCall"), ...only(result, "ToolCallDelta")], [])
      assert.strictEqual(only(result, "End")[0]?.finishReason, "stop")
      if (size < 1000) assert.isAbove(textsOf(result).length, 5)
    })
  )

  it.effect.each([1, 2, 7, 1000])("is taken out of its key in pieces of %i", (size) =>
    Effect.gen(function* () {
      const list = [ada, { name: "}", tags: [] }]
      const schema = Schema.Array(Person)

      for (const json of [JSON.stringify({ answer: list }), JSON.stringify({ answer: list }, null, 2)]) {
        const { result } = yield* streamed(wanted(schema), calling(json, size))

        assert.deepStrictEqual(JSON.parse(textsOf(result).join("")), list as unknown)
      }
    })
  )

  it.effect("is an object without fields where no piece comes", () =>
    Effect.gen(function* () {
      const { result } = yield* streamed(wanted(), calling("", 1))

      assert.deepStrictEqual(textsOf(result), ["{}"])
    })
  )

  it.effect("may come whole at the start of its block", () =>
    Effect.gen(function* () {
      const { result } = yield* streamed(wanted(), events([{ block: use(ada) }], "tool_use"))

      assert.strictEqual(textsOf(result).join(""), JSON.stringify(ada))
    })
  )

  it.effect("has no words before it, and is its words where no call comes", () =>
    Effect.gen(function* () {
      const both = yield* streamed(wanted(), events([{ block: text("Here:") }, { block: use(ada) }], "tool_use"))
      const alone = yield* streamed(wanted(), events([{ block: text("{}") }]))

      assert.deepStrictEqual(textsOf(both.result), [JSON.stringify(ada)])
      assert.deepStrictEqual(textsOf(alone.result), ["{}"])
    })
  )

  it.effect("that was cut at the token limit says so", () =>
    Effect.gen(function* () {
      const { result } = yield* streamed(wanted(), calling('{"name":"A', 4, "max_tokens"))

      assert.strictEqual(textsOf(result).join(""), '{"name":"A')
      assert.strictEqual(only(result, "End")[0]?.finishReason, "length")
    })
  )

  it.effect("says what was changed in its end", () =>
    Effect.gen(function* () {
      const { result } = yield* streamed({ ...wanted(), seed: 7 }, calling("{}", 1))

      assert.deepStrictEqual(only(result, "End")[0]?.changes, ["seed was left out: the vendor does not take it."])
    })
  )
})

describe("where no tool may be forced", () => {
  const tools = [{ name: "f" }]
  const thinks = { reasoning: { effort: "low" } } as const
  const open = { type: "object", additionalProperties: { type: "number" } }

  it.effect.each([
    ["beside tools the vendor keeps to the schema", { tools }, Person, {}, "format"],
    ["while it thinks the vendor keeps to the schema", thinks, Person, {}, "format"],
    ["a user who says that the model can is believed", {}, Person, { capabilities: { jsonSchema: true } }, "format"],
    ["a user who says that it cannot is believed", { tools }, Person, { capabilities: { jsonSchema: false } }, "words"],
    ["models before 4.5 are told in words", { tools }, Person, { model: "claude-3-7-sonnet-latest" }, "words"],
    ["they are forced where they can be", {}, Person, { model: "claude-3-7-sonnet-latest" }, "tool"],
    ["a schema that the vendor cannot keep to is told in words", { tools }, open, {}, "words"],
    ["or is forced where it can be", {}, open, { capabilities: { jsonSchema: true } }, "tool"],
    ["JSON without a schema is told in words", { responseFormat: "json" }, Person, {}, "words"],
    ["a text is not told at all", { responseFormat: "text" }, Person, {}, undefined]
  ] as ReadonlyArray<[string, Partial<ChatRequest>, object, Own, string | undefined]>)(
    "%s",
    ([, request, schema, own, way]) =>
      Effect.gen(function* () {
        const { body, answer } = yield* asked({ system: "Be brief.", ...wanted(schema), ...request }, own)

        assert.strictEqual(body.output_config?.format?.type, way === "format" ? "json_schema" : undefined)
        assert.strictEqual(body.tool_choice?.type, way === "tool" ? "tool" : undefined)
        assert.strictEqual(body.system !== "Be brief.", way === "words")
        assert.strictEqual(answer.changes?.join().includes("responseFormat became") ?? false, way === "words")
        if (way === "words") assert.include(body.system, "Be brief.\n\nAnswer with JSON alone")
      })
  )

  it.effect("limits of a schema that the vendor does not know become words", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({
        age: Schema.Number.pipe(Schema.between(0, 150)),
        kind: Schema.optional(Schema.Union(Schema.Literal("a", "b"), Schema.Null)),
        list: Schema.Array(Schema.String).pipe(Schema.maxItems(3))
      })

      const { body } = yield* asked({ ...wanted(schema), tools })

      const { properties, required } = body.output_config.format.schema
      assert.notMatch(JSON.stringify(Object.keys(properties.age)), /minimum|maximum/)
      assert.include(properties.age.description, "maximum: 150")
      assert.include(properties.list.description, "maxItems: 3")
      assert.deepStrictEqual(required, ["age", "list"])
    })
  )
})

describe("object", () => {
  const made = (http: ReturnType<typeof FakeHttp.make>, options: object = {}) =>
    Effect.flatMap(Anthropic.make({ model: "claude", apiKey: "fx-key" }), (provider) =>
      Effect.provide(LlmFuse, LlmFuse.layer({ providers: [provider], ...options }))
    ).pipe(Effect.provide(http.layer))

  it.effect("is found in a whole answer", () =>
    Effect.gen(function* () {
      const http = FakeHttp.make([{ body: message([use(ada)], "tool_use") }])
      const fuse = yield* made(http)

      const response = yield* fuse.object(Person, "Who?")

      assert.deepStrictEqual(response.object, ada)
      assert.strictEqual(response.finishReason, "stop")
    })
  )

  it.effect("is found in a stream, which time limits of streams ask for", () =>
    Effect.gen(function* () {
      const body = calling(JSON.stringify(ada), 4)
        .map((it) => event(it, it.type))
        .join("")
      const http = FakeHttp.make([{ headers: { "content-type": "text/event-stream" }, body }])
      const fuse = yield* made(http, { timeouts: { firstToken: "5 seconds" } })

      const response = yield* fuse.object(Person, "Who?")

      assert.deepInclude(http.requests[0]?.body as object, { stream: true })
      assert.deepStrictEqual(response.object, ada)
    })
  )

  it.effect("comes piece by piece to who streams", () =>
    Effect.gen(function* () {
      const body = calling(JSON.stringify(ada), 4)
        .map((it) => event(it, it.type))
        .join("")
      const http = FakeHttp.make([{ headers: { "content-type": "text/event-stream" }, body }])
      const fuse = yield* made(http)

      const tags = yield* fuse.stream(wanted()).pipe(
        Stream.map(({ _tag }) => _tag),
        Stream.runCollect
      )

      assert.deepStrictEqual(new Set(tags), new Set(["Started", "TextDelta", "Finished"]))
    })
  )
})
