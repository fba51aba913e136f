import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { LlmFuse, OpenAiCompatible } from "llmfuse"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { Shape, Tool } from "../../src/model/Tool.ts"
import * as OpenAiAnswerTool from "../../src/provider/OpenAiAnswerTool.ts"
import { DeepSeek, LmStudio, Mistral, Ollama, OpenAi, Vllm } from "../../src/provider/vendors.ts"
import { answering } from "./fakeClient.ts"
import { ask, chunk, hello, host, type Maker, message, stream } from "./openAi.ts"
import { event, only, textsOf } from "./streaming.ts"

const Point = Schema.Struct({ x: Schema.Number, y: Schema.Number })

const pointSchema = {
  type: "object",
  required: ["x", "y"],
  properties: { x: { type: "number" }, y: { type: "number" } },
  additionalProperties: false
}

const wanted = (more: Partial<ChatRequest> = {}) => hello({ responseFormat: { schema: Point, name: "point" }, ...more })

const search: Tool = { name: "search", parameters: { type: "object", properties: { q: { type: "string" } } } }

const forcing = host({ jsonSchema: "tool" })

const answerTool = {
  type: "function",
  function: {
    name: "point",
    description: "Gives the answer. Call it once, with the whole answer.",
    parameters: pointSchema
  }
}

const instruction = `Answer with JSON that fits this JSON schema, and with nothing else:\n${JSON.stringify(pointSchema)}`

const forced = "responseFormat became a tool that must be called: the vendor keeps to no schema otherwise."

describe("a schema", () => {
  it.effect.each([
    [
      "native",
      host(),
      wanted(),
      {
        messages: [{ role: "user", content: "hello" }],
        response_format: { type: "json_schema", json_schema: { name: "point", schema: pointSchema, strict: true } }
      },
      undefined
    ],
    [
      "a tool",
      forcing,
      wanted(),
      {
        messages: [{ role: "user", content: "hello" }],
        tools: [answerTool],
        tool_choice: { type: "function", function: { name: "point" } }
      },
      [forced]
    ],
    [
      "a tool that is the only one, where none can be named",
      host({ jsonSchema: "tool", toolChoice: "words" }),
      wanted(),
      { messages: [{ role: "user", content: "hello" }], tools: [answerTool], tool_choice: "required" },
      [forced]
    ],
    [
      "a tool beside others, one of which is called",
      host({ jsonSchema: "tool", requiredWord: "any" }),
      wanted({ tools: [search] }),
      {
        messages: [{ role: "user", content: "hello" }],
        tools: [{ type: "function", function: { name: "search", parameters: search.parameters } }, answerTool],
        tool_choice: "any"
      },
      [forced]
    ],
    [
      "JSON mode",
      DeepSeek,
      wanted({ system: "Be exact." }),
      {
        messages: [
          { role: "system", content: `Be exact.\n\n${instruction}` },
          { role: "user", content: "hello" }
        ],
        response_format: { type: "json_object" }
      },
      ["responseFormat became JSON mode, with the schema in the system text: the vendor has no more."]
    ],
    [
      "words",
      host({ jsonSchema: "instruction" }),
      wanted(),
      {
        messages: [
          { role: "system", content: instruction },
          { role: "user", content: "hello" }
        ]
      },
      ["responseFormat became a part of the system text: the vendor has no other way."]
    ]
  ] as ReadonlyArray<readonly [string, Maker, ChatRequest, object, ReadonlyArray<string> | undefined]>)(
    "becomes %s",
    ([, maker, request, body, changes]) =>
      Effect.gen(function* () {
        const result = yield* ask(maker, request)

        assert.deepStrictEqual(result.sent, { model: "m", ...body })
        assert.deepStrictEqual(result.changes, changes)
      })
  )

  const wayOf = (maker: Maker, request = wanted()) =>
    Effect.map(ask(maker, request), ({ sent }) =>
      sent.tools !== undefined ? "tool" : (sent.response_format?.type ?? "instruction")
    )

  it.effect.each([
    ["a model that is known to need help gets a tool", host({ capabilities: { jsonSchema: false } }), "tool"],
    ["without tools it gets JSON mode", host({ capabilities: { jsonSchema: false, tools: false } }), "json_object"],
    [
      "without either it gets words",
      host({ capabilities: { jsonSchema: false, tools: false }, jsonMode: false }),
      "instruction"
    ],
    [
      "a vendor that cannot force a tool gets JSON mode",
      host({ jsonSchema: "tool", toolChoice: false }),
      "json_object"
    ],
    [
      "a model that is known to keep to schemas gets one",
      host({ jsonSchema: "mode", capabilities: { jsonSchema: true } }),
      "json_schema"
    ],
    ["LM Studio gets one", LmStudio, "json_schema"],
    ["Ollama gets one", Ollama, "json_schema"],
    ["Mistral gets one", Mistral, "json_schema"]
  ] as const)("takes the strongest way: %s", ([, maker, way]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* wayOf(maker), way)
    })
  )

  it.effect("gives way to a tool that must be called", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(forcing, wanted({ tools: [search], toolChoice: { name: "search" } }))

      assert.deepStrictEqual(
        sent.tools.map((tool: typeof answerTool) => tool.function.name),
        ["search"]
      )
      assert.deepStrictEqual(sent.response_format, { type: "json_object" })
    })
  )
})

describe("strict", () => {
  const Tree: Schema.Schema<{ readonly of: ReadonlyArray<unknown> }> = Schema.Struct({
    of: Schema.Array(Schema.suspend((): Schema.Schema<unknown> => Tree as Schema.Schema<unknown>))
  }).annotations({ identifier: "Tree" })

  const rows: ReadonlyArray<readonly [what: string, shape: Shape, obstacle: string | undefined]> = [
    ["a closed object", Point, undefined],
    ["nested ones", Schema.Struct({ all: Schema.Array(Point), none: Schema.NullOr(Schema.Int) }), undefined],
    ["words and constants", Schema.Struct({ a: Schema.Literal("b", "c"), d: Schema.Literal(1) }), undefined],
    ["a class", class Named extends Schema.Class<Named>("Named")({ a: Schema.String }) {}, undefined],
    ["one that refers to itself", Tree, undefined],
    ["an optional property", Schema.Struct({ a: Schema.optional(Schema.String) }), "it.a is optional"],
    [
      "one deep within",
      Schema.Struct({ a: Schema.Array(Schema.Struct({ b: Schema.optional(Schema.Int) })) }),
      "it.a[].b is optional"
    ],
    ["other properties", { type: "object", properties: {} }, "it may have other properties"],
    [
      "a record",
      Schema.Struct({ a: Schema.Record({ key: Schema.String, value: Schema.Int }) }),
      "it.a may have other properties"
    ],
    ["anything", Schema.Struct({ a: Schema.Unknown }), "it.a may be anything"],
    ["a least length", Schema.Struct({ a: Schema.NonEmptyString }), "it.a has minLength"],
    ["a list at the root", Schema.Array(Schema.String), "its root is no object"]
  ]

  it.effect.each(rows)("is kept where OpenAI can: %s", ([, schema, obstacle]) =>
    Effect.gen(function* () {
      const { sent, changes } = yield* ask(OpenAi, hello({ responseFormat: { schema } }))

      assert.strictEqual(sent.response_format.json_schema.strict, obstacle === undefined)
      assert.deepStrictEqual(
        changes,
        obstacle === undefined
          ? undefined
          : [`responseFormat was sent with strict: false, for ${obstacle} in its schema.`]
      )
    })
  )

  it.effect("is not asked for where it is not wanted, and needs nothing where a grammar does it", () =>
    Effect.gen(function* () {
      const schema = { type: "object" }

      const loose = yield* ask(OpenAi, hello({ responseFormat: { schema, strict: false } }))
      const grammar = yield* ask(Vllm, hello({ responseFormat: { schema } }))

      assert.isFalse(loose.sent.response_format.json_schema.strict)
      assert.isTrue(grammar.sent.response_format.json_schema.strict)
      assert.isUndefined(loose.changes ?? grammar.changes)
    })
  )

  it.effect("what a schema refers to stands in its place, but what refers to itself", () =>
    Effect.gen(function* () {
      const schemaOf = (schema: Shape) =>
        Effect.map(
          ask(host(), hello({ responseFormat: { schema } })),
          ({ sent }) => sent.response_format.json_schema.schema
        )

      const named = yield* schemaOf(class Where extends Schema.Class<Where>("Where")({ at: Point }) {})
      const tree = yield* schemaOf(Tree)

      assert.deepInclude(named, { type: "object", properties: { at: pointSchema } })
      assert.notProperty(named, "$defs")
      assert.strictEqual(tree.type, "object")
      assert.deepStrictEqual(tree.properties.of.items, { $ref: "#/$defs/Tree" })
      assert.property(tree.$defs, "Tree")
    })
  )
})

describe("some JSON", () => {
  it.effect.each([
    ["JSON mode", host(), hello({ system: "Write json." }), "json_object", undefined],
    [
      "JSON mode, which wants to be spoken of",
      host(),
      hello(),
      "json_object",
      ["responseFormat is named in the system text too: JSON mode wants it there."]
    ],
    ["a schema for everything, where there is no JSON mode", LmStudio, hello(), "json_schema", undefined],
    [
      "words",
      host({ jsonMode: false, jsonSchema: "instruction" }),
      hello(),
      undefined,
      ["responseFormat is only asked for in the system text: the vendor has no JSON mode."]
    ]
  ] as const)("is %s", ([, maker, request, type, changes]) =>
    Effect.gen(function* () {
      const result = yield* ask(maker, { ...request, responseFormat: "json" })

      assert.strictEqual(result.sent.response_format?.type, type)
      assert.deepStrictEqual(result.changes, changes as ReadonlyArray<string> | undefined)
      assert.match(JSON.stringify(result.sent.messages), type === "json_schema" ? /^(?!.*JSON)/ : /json/i)
    })
  )
})

describe("a tool that is the answer", () => {
  const call = (written: string, name = "point", index = 0) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: written }
  })

  it.effect("gives its arguments as the text", () =>
    Effect.gen(function* () {
      const body = message({ content: "Here it is:", tool_calls: [call('{"x":1,"y":2}')] }, "tool_calls")

      const { answer } = yield* ask(forcing, wanted(), body)

      assert.deepInclude(answer, { text: '{"x":1,"y":2}', toolCalls: [], finishReason: "stop", changes: [forced] })
    })
  )

  it.effect("gives them as pieces of text in a stream, without what stands beside them", () =>
    Effect.gen(function* () {
      const drained = yield* stream(forcing, wanted(), [
        chunk({ content: "Here " }),
        chunk({ content: "it is:" }),
        chunk({ tool_calls: [call("")] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '{"x":1,' } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '"y":2}' } }] }),
        chunk({}, "tool_calls")
      ])

      assert.deepStrictEqual(textsOf(drained), ['{"x":1,', '"y":2}'])
      assert.deepStrictEqual([...only(drained, "ToolCall"), ...only(drained, "ToolCallDelta")], [])
      assert.deepInclude(only(drained, "End")[0], { finishReason: "stop", changes: [forced] })
    })
  )

  it("with arguments too deep to be written gives no text", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`)
    const toolCalls = [{ id: "1", name: "point", arguments: deep }]

    const { text } = OpenAiAnswerTool.answer({ text: "Here:", toolCalls, finishReason: "tool-calls" }, "point")

    assert.strictEqual(text, "")
  })

  it.effect("that was cut off is cut off", () =>
    Effect.gen(function* () {
      const whole = yield* ask(forcing, wanted(), message({ tool_calls: [call('{"x":')] }, "length"))
      const streamed = yield* stream(forcing, wanted(), [chunk({ tool_calls: [call('{"x":')] }), chunk({}, "length")])

      assert.deepInclude(whole.answer, { text: '{"x":', finishReason: "length" })
      assert.deepStrictEqual(textsOf(streamed), ['{"x":'])
      assert.strictEqual(only(streamed, "End")[0]?.finishReason, "length")
    })
  )

  it.effect("leaves other calls as they are", () =>
    Effect.gen(function* () {
      const request = wanted({ tools: [search] })
      const tool_calls = [call('{"q":"a"}', "search"), call('{"x":1,"y":2}', "point", 1), call("{}", "point", 2)]

      const { answer } = yield* ask(forcing, request, message({ tool_calls }, "tool_calls"))
      const streamed = yield* stream(forcing, request, [
        ...tool_calls.map((it) => chunk({ tool_calls: [it] })),
        chunk({}, "tool_calls")
      ])

      const rest = [{ id: "call_0", name: "search", arguments: { q: "a" } }]
      assert.deepInclude(answer, { text: '{"x":1,"y":2}', toolCalls: rest, finishReason: "tool-calls" })
      assert.deepStrictEqual(textsOf(streamed), ['{"x":1,"y":2}'])
      assert.deepStrictEqual(only(streamed, "ToolCall"), [{ _tag: "ToolCall", ...rest[0] }] as never)
      assert.strictEqual(only(streamed, "End")[0]?.finishReason, "tool-calls")
    })
  )

  it.effect("that is not called leaves the text", () =>
    Effect.gen(function* () {
      const { answer } = yield* ask(forcing, wanted(), message({ content: '{"x":1,"y":2}' }))
      const streamed = yield* stream(forcing, wanted(), [
        chunk({ content: '{"x":1,' }),
        chunk({ content: '"y":2}' }),
        chunk({}, "stop")
      ])

      assert.strictEqual(answer.text, '{"x":1,"y":2}')
      assert.strictEqual(textsOf(streamed).join(""), '{"x":1,"y":2}')
    })
  )

  it.effect.each([
    ["in one piece", {}, message({ tool_calls: [call('{"x":1,"y":2}', "answer")] }, "tool_calls")],
    [
      "streamed",
      { firstToken: "5 seconds" },
      [
        chunk({ tool_calls: [call('{"x":1,', "answer")] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '"y":2}' } }] }, "tool_calls"),
        "[DONE]"
      ]
        .map((it) => event(it))
        .join("")
    ]
  ] as const)("is the object that a client wants: %s", ([, timeouts, body]) =>
    Effect.gen(function* () {
      const { layer } = answering({ body })
      const provider = OpenAiCompatible.make({
        name: "host",
        model: "m",
        baseUrl: "https://llm.example.test/v1",
        jsonSchema: "tool"
      })
      const fuse = yield* LlmFuse.pipe(
        Effect.provide(LlmFuse.layer({ providers: [provider], timeouts }).pipe(Layer.provide(layer)))
      )

      const response = yield* fuse.object(Point, "Where?")

      assert.deepStrictEqual(response.object, { x: 1, y: 2 })
      assert.deepInclude(response, { finishReason: "stop", toolCalls: [], changes: [forced] })
    })
  )

  it.effect("has a name that no other tool has", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(forcing, wanted({ tools: [{ name: "point" }, { name: "point_" }] }))

      assert.deepStrictEqual(
        sent.tools.map((tool: typeof answerTool) => tool.function.name),
        ["point", "point_", "point__"]
      )
    })
  )
})

describe("the choice of tools", () => {
  const tools: ReadonlyArray<Tool> = [search, { name: "now" }]
  const namesIn = (sent: { tools?: ReadonlyArray<typeof answerTool> }) => sent.tools?.map((tool) => tool.function.name)

  it.effect.each([
    ["auto", host(), "auto", ["search", "now"], "auto", undefined],
    ["none", host(), "none", ["search", "now"], "none", undefined],
    ["a name", host(), { name: "now" }, ["search", "now"], { type: "function", function: { name: "now" } }, undefined],
    [
      "a name where only words are",
      host({ toolChoice: "words" }),
      { name: "now" },
      ["now"],
      "required",
      ["tools hold only now: the vendor cannot be told to call it by name."]
    ],
    ["auto where nothing can be said", Ollama, "auto", ["search", "now"], undefined, undefined],
    [
      "none where nothing can be said",
      Ollama,
      "none",
      undefined,
      undefined,
      ["tools were left out: the vendor cannot be told not to call them."]
    ],
    ["required for Mistral", Mistral, "required", ["search", "now"], "any", undefined]
  ] as const)("%s", ([, maker, toolChoice, offered, choice, changes]) =>
    Effect.gen(function* () {
      const result = yield* ask(maker, hello({ tools, toolChoice }))

      assert.deepStrictEqual(namesIn(result.sent), offered as ReadonlyArray<string> | undefined)
      assert.deepStrictEqual(result.sent.tool_choice, choice)
      assert.deepStrictEqual(result.changes, changes as ReadonlyArray<string> | undefined)
    })
  )

  it.effect("is nothing without tools", () =>
    Effect.gen(function* () {
      const { sent } = yield* ask(host(), hello({ tools: [], toolChoice: "none", parallelToolCalls: true }))

      assert.deepStrictEqual(Object.keys(sent), ["model", "messages"])
    })
  )
})

describe("how much the model thinks", () => {
  it.effect.each([
    ["as an effort", host(), { effort: "none" }, { reasoning_effort: "none" }],
    ["as the nearest one", host({ efforts: ["low", "high"] }), { effort: "medium" }, { reasoning_effort: "high" }],
    ["not at all, for DeepSeek", DeepSeek, { effort: "none" }, { thinking: { type: "disabled" } }],
    ["in an object", host({ reasoning: "object" }), { effort: "low" }, { reasoning: { effort: "low" } }],
    ["in tokens", host({ reasoning: "object" }), { maxTokens: 9 }, { reasoning: { max_tokens: 9 } }],
    ["not said", host({ reasoning: false }), { effort: "low" }, {}],
    ["nothing", host(), {}, {}]
  ] as const)("%s", ([, maker, reasoning, fields]) =>
    Effect.gen(function* () {
      const { sent } = yield* ask(maker, hello({ reasoning }))

      const { model: _model, messages: _messages, ...rest } = sent
      assert.deepStrictEqual(rest, fields)
    })
  )
})
