import type { MessageCreateParamsNonStreaming } from "@anthropic-ai/sdk/resources/messages"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { Message } from "../../src/model/Message.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { asked, type Own, said, text, user } from "./anthropic.ts"
import { answering } from "./fakeClient.ts"

/** What another vendor wrote and its tools gave back. */
const history: ReadonlyArray<Message> = [
  { role: "system", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "text", text: "Is this " },
      { type: "text", text: "the weather there?" },
      { type: "image", data: Uint8Array.of(104, 105), mediaType: "image/png", detail: "high" }
    ]
  },
  {
    role: "assistant",
    content: "Let me look.",
    toolCalls: [
      { id: "call.1|fc:a", name: "get_weather", arguments: { city: "Oslo" } },
      { id: "call.2|fc:b", name: "get_weather", rawArguments: '{"city":' }
    ],
    opaque: { wire: "openai-chat", provider: "openrouter", value: { reasoning_details: [{ data: "secret" }] } }
  },
  { role: "tool", toolCallId: "call.1|fc:a", content: "snow" },
  { role: "tool", toolCallId: "call.2|fc:b", content: "no such city", isError: true },
  { role: "user", content: "And now?" }
]

const weather = {
  name: "get_weather",
  description: "Tells the weather.",
  parameters: Schema.Struct({ city: Schema.String.annotations({ description: "Its name." }) })
}

const rich: ChatRequest = {
  system: "You know the weather.",
  messages: history,
  maxTokens: 5000,
  stop: ["END"],
  topP: 0.97,
  tools: [weather, { name: "now" }],
  toolChoice: "auto",
  parallelToolCalls: false,
  responseFormat: { schema: Schema.Struct({ cold: Schema.Boolean }) },
  reasoning: { effort: "low" },
  metadata: { user_id: "u-1" }
}

describe("a rich conversation", () => {
  it.effect("becomes a body that Anthropic's own types allow", () =>
    Effect.gen(function* () {
      const { body, answer } = yield* asked(rich)

      // The version of the wire that these types are of has no sampling any more.
      const expected: MessageCreateParamsNonStreaming & { top_p: number } = {
        model: "claude",
        system: "You know the weather.\n\nBe brief.",
        messages: [
          {
            role: "user",
            content: [
              text("Is this the weather there?"),
              { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }
            ]
          },
          {
            role: "assistant",
            content: [
              text("Let me look."),
              { type: "tool_use", id: "call_1_fc_a", name: "get_weather", input: { city: "Oslo" } },
              { type: "tool_use", id: "call_2_fc_b", name: "get_weather", input: {} }
            ]
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_1_fc_a", content: "snow" },
              { type: "tool_result", tool_use_id: "call_2_fc_b", content: "no such city", is_error: true },
              text("And now?")
            ]
          }
        ],
        max_tokens: 5000,
        top_p: 0.97,
        stop_sequences: ["END"],
        tools: [
          {
            name: "get_weather",
            description: "Tells the weather.",
            input_schema: {
              type: "object",
              required: ["city"],
              properties: { city: { type: "string", description: "Its name." } },
              additionalProperties: false
            }
          },
          { name: "now", input_schema: { type: "object", properties: {} } }
        ],
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
        output_config: {
          format: {
            type: "json_schema",
            schema: {
              type: "object",
              required: ["cold"],
              properties: { cold: { type: "boolean" } },
              additionalProperties: false
            }
          }
        },
        metadata: { user_id: "u-1" }
      }
      assert.deepStrictEqual(body, expected as unknown)
      assert.deepStrictEqual(answer.changes, [
        "messages lost the reasoning that only another model can read.",
        "messages lost the arguments of a call of get_weather: they are no JSON object.",
        "reasoning was left out: the answer that is under way began without thoughts of this model."
      ])
    })
  )

  it.effect("may be thought about by a model that decides itself, though another began the answer", () =>
    Effect.gen(function* () {
      const { body } = yield* asked(rich, { model: "claude-opus-4-8" })

      const expected: Partial<MessageCreateParamsNonStreaming> = { thinking: { type: "adaptive" } }
      assert.deepInclude(body, expected)
      assert.strictEqual(body.output_config.effort, "low")
    })
  )
})

const changesOf = (request: Partial<ChatRequest>, own: Own = {}) =>
  Effect.map(asked({ ...said(user()), ...request }, own), ({ body, answer }) => ({ body, changes: answer.changes }))

describe("changes", () => {
  it.effect("are absent where nothing was changed", () =>
    Effect.gen(function* () {
      const { changes } = yield* changesOf({ temperature: 0.5, tools: [weather], toolChoice: "required" })

      assert.strictEqual(changes, undefined)
    })
  )
})

describe("sampling", () => {
  it.effect.each([
    ["temperature 1.5 is capped", { temperature: 1.5 }, {}, { temperature: 1 }, ["temperature is 1"]],
    ["seed is left out", { seed: 7 }, {}, {}, ["seed was left out"]],
    ["blank stops are left out", { stop: ["\n", "END"] }, {}, { stop_sequences: ["END"] }, ["stop lost"]],
    [
      "temperature is left out while the model thinks",
      { temperature: 0, topP: 0.5, reasoning: { effort: "low" } },
      {},
      {},
      ["temperature was left out", "topP was left out"]
    ],
    [
      "what a thinking model takes stays",
      { temperature: 1, topP: 0.95, reasoning: { effort: "low" } },
      {},
      { temperature: 1, top_p: 0.95 },
      []
    ],
    [
      "models from 4.1 take one of both",
      { temperature: 0.5, topP: 0.5 },
      { model: "claude-opus-4-1-20250805" },
      { temperature: 0.5 },
      ["topP was left out"]
    ],
    ["topP alone stays", { topP: 0.5 }, { model: "claude-sonnet-4-5" }, { top_p: 0.5 }, []],
    [
      "models from 4.7 take neither",
      { temperature: 0.5, topP: 0.5 },
      { model: "anthropic/claude-opus-4.7" },
      {},
      ["temperature was left out", "topP was left out"]
    ],
    [
      "nor does the wire's later version",
      { temperature: 0.5 },
      { version: "2026-10-21" },
      {},
      ["temperature was left out"]
    ],
    [
      "other metadata is left out",
      { metadata: { user_id: "u", team: "x" } },
      {},
      { metadata: { user_id: "u" } },
      ["metadata holds only user_id"]
    ]
  ] as const)("%s", ([, request, own, fields, said]) =>
    Effect.gen(function* () {
      const { body, changes = [] } = yield* changesOf(request as Partial<ChatRequest>, own)

      const { model, messages, max_tokens, thinking, ...rest } = body
      assert.deepStrictEqual(rest, fields)
      assert.deepStrictEqual(
        changes.map((change, index) => change.slice(0, said[index]?.length)),
        [...said]
      )
    })
  )

  it.effect("extra stands last and wins", () =>
    Effect.gen(function* () {
      const extra = { max_tokens: 7, top_k: 3, thinking: { type: "disabled" } }
      const { body } = yield* changesOf({ reasoning: { effort: "high" }, extra })

      assert.deepInclude(body, extra)
    })
  )
})

describe("tools", () => {
  it.effect.each([
    [{ toolChoice: "auto" }, { type: "auto" }],
    [{ toolChoice: "none", parallelToolCalls: false }, { type: "none" }],
    [{ toolChoice: "required" }, { type: "any" }],
    [{ toolChoice: { name: "get_weather" } }, { type: "tool", name: "get_weather" }],
    [
      { toolChoice: "required", parallelToolCalls: false },
      { type: "any", disable_parallel_tool_use: true }
    ],
    [{ parallelToolCalls: false }, { type: "auto", disable_parallel_tool_use: true }],
    [{ parallelToolCalls: true }, undefined],
    [{}, undefined]
  ] as const)("%j are chosen by %j", ([request, choice]) =>
    Effect.gen(function* () {
      const { body } = yield* changesOf({ tools: [weather], ...request })

      assert.deepStrictEqual(body.tool_choice, choice)
    })
  )

  it.effect("are not chosen where there are none", () =>
    Effect.gen(function* () {
      const { body } = yield* changesOf({ tools: [], toolChoice: "none", parallelToolCalls: false })

      assert.notProperty(body, "tool_choice")
      assert.notProperty(body, "tools")
    })
  )

  it.effect("that are strict keep to what the vendor can keep to", () =>
    Effect.gen(function* () {
      const parameters = { type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"] }
      const open = { type: "object", additionalProperties: { type: "string" } }
      const tools = [
        { name: "one", parameters, strict: true },
        { name: "two", parameters: open, strict: true }
      ]

      const { body, changes } = yield* changesOf({ tools })

      assert.deepStrictEqual(body.tools, [
        {
          name: "one",
          input_schema: {
            type: "object",
            required: ["n"],
            properties: { n: { type: "integer", description: "{minimum: 1}" } },
            additionalProperties: false
          },
          strict: true
        },
        { name: "two", input_schema: open }
      ])
      assert.deepStrictEqual(changes, ["tools lost strict of two: the vendor cannot keep to its schema."])
    })
  )

  it.effect("have an object at the top of their input, whatever their parameters are called", () =>
    Effect.gen(function* () {
      class City extends Schema.Class<City>("City")({ name: Schema.String }) {}
      const tools = [
        { name: "a", parameters: City },
        { name: "b", parameters: Schema.Struct({}) },
        { name: "c", parameters: { properties: { x: { type: "string" } } } }
      ]

      const { body } = yield* changesOf({ tools })

      const inputs = body.tools.map(({ input_schema }: { input_schema: { type: string } }) => input_schema)
      assert.deepStrictEqual(
        inputs.map(({ type }: { type: string }) => type),
        ["object", "object", "object"]
      )
      assert.deepStrictEqual(inputs[0].properties, { name: { type: "string" } })
    })
  )
})

describe("reasoning", () => {
  const enabled = (budget_tokens: number) => ({ type: "enabled", budget_tokens })

  it.effect.each([
    [{ effort: "minimal" }, undefined, enabled(1024), 5120, 0],
    [{ effort: "low" }, undefined, enabled(2048), 6144, 0],
    [{ effort: "medium" }, 9000, enabled(8192), 9000, 0],
    [{ effort: "high" }, 200, enabled(16_384), 16_584, 1],
    [{ maxTokens: 2000 }, 2000, enabled(2000), 4000, 1],
    [{ maxTokens: 10, effort: "high" }, 5000, enabled(1024), 5000, 1],
    [{ effort: "none" }, undefined, { type: "disabled" }, 4096, 0],
    [{}, undefined, undefined, 4096, 0]
  ] as const)("%j with maxTokens %j is %j of %j", ([reasoning, maxTokens, thinking, max_tokens, said]) =>
    Effect.gen(function* () {
      const { body, changes = [] } = yield* changesOf({ reasoning, maxTokens })

      assert.deepStrictEqual(body.thinking, thinking)
      assert.strictEqual(body.max_tokens, max_tokens)
      assert.strictEqual(changes.length, said)
      if (thinking?.type === "enabled")
        assert.isBelow((thinking as { budget_tokens: number }).budget_tokens, max_tokens)
    })
  )

  it.effect.each([
    ["claude-3-7-sonnet-20250219", "enabled"],
    ["claude-sonnet-4-20250514", "enabled"],
    ["claude-haiku-4-5", "enabled"],
    ["some-proxy", "enabled"],
    ["claude-opus-4-6", "adaptive"],
    ["claude-sonnet-5", "adaptive"],
    ["us.anthropic.claude-fable-5-20260901-v1:0", "adaptive"]
  ] as const)("%s is told by thinking %s", ([model, type]) =>
    Effect.gen(function* () {
      const { body } = yield* changesOf({ reasoning: { effort: "medium" } }, { model })

      assert.strictEqual(body.thinking.type, type)
      assert.deepStrictEqual(body.output_config, type === "adaptive" ? { effort: "medium" } : undefined)
    })
  )

  it.effect("by effort has no budget and no lowest effort", () =>
    Effect.gen(function* () {
      const reasoning = { effort: "minimal", maxTokens: 3000 } as const

      const { body, changes } = yield* changesOf({ reasoning }, { thinking: "adaptive" })

      assert.deepStrictEqual(body.thinking, { type: "adaptive" })
      assert.deepStrictEqual(body.output_config, { effort: "low" })
      assert.strictEqual(body.max_tokens, 7096)
      assert.strictEqual(changes?.length, 2)
    })
  )

  it.effect("gives way to a tool that must be called", () =>
    Effect.gen(function* () {
      const { body, changes } = yield* changesOf({
        reasoning: { effort: "low" },
        temperature: 0,
        tools: [weather],
        toolChoice: "required"
      })

      assert.notProperty(body, "thinking")
      assert.strictEqual(body.temperature, 0)
      assert.deepStrictEqual(changes, ["reasoning was left out: a model that thinks cannot be made to call a tool."])
    })
  )
})

describe("capabilities", () => {
  const capabilitiesOf = (own: Own) =>
    Effect.map(
      Anthropic.make({ model: "claude", apiKey: "fx-key", ...own }).pipe(Effect.provide(answering({}).layer)),
      ({ capabilities }) => capabilities
    )

  it.effect("are what is sure of the model, and the user's word wins", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* capabilitiesOf({}), {})
      assert.deepStrictEqual(yield* capabilitiesOf({ model: "claude-sonnet-4-6" }), { prefill: false })
      const own = { prefill: true, contextWindow: 9 }
      assert.deepStrictEqual(yield* capabilitiesOf({ model: "claude-sonnet-4-6", capabilities: own }), own)
    })
  )

  it.effect("a way to think that is none is refused", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(capabilitiesOf({ thinking: "deep" as never }))

      assert.include(String(error), "anthropic.thinking")
    })
  )
})
