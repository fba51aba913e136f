import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Schema } from "effect"
import type {
  ChatCompletionCreateParamsNonStreaming as Body,
  ChatCompletionMessageParam
} from "openai/resources/chat/completions"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import {
  AzureOpenAi,
  Cerebras,
  DeepSeek,
  Fireworks,
  Gemini,
  Groq,
  LlamaCpp,
  LmStudio,
  Mistral,
  Ollama,
  OpenAi,
  OpenRouter,
  Together,
  Vllm,
  Xai
} from "../../src/provider/vendors.ts"
import { ask, host, type Maker } from "./openAi.ts"

/** One conversation with everything in it. */
const rich: ChatRequest = {
  system: "Be brief.",
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is the weather here?" },
        { type: "image", data: new Uint8Array([1, 2, 3]), mediaType: "image/png", detail: "low" }
      ]
    },
    {
      role: "assistant",
      content: "",
      toolCalls: [
        { id: "toolu_01ABCDEFGHJKLMNPQRSTUV", name: "weather", arguments: { city: "Oslo" } },
        { id: "toolu_02ABCDEFGHJKLMNPQRSTUV", name: "weather", rawArguments: '{"city":' }
      ],
      opaque: { wire: "anthropic-messages", provider: "anthropic", value: ["signed"] }
    },
    { role: "tool", toolCallId: "toolu_01ABCDEFGHJKLMNPQRSTUV", content: '{"degrees":7}' },
    { role: "tool", toolCallId: "toolu_02ABCDEFGHJKLMNPQRSTUV", content: "no such city", isError: true },
    { role: "user", content: "And tomorrow?" }
  ],
  tools: [
    {
      name: "weather",
      description: "Looks the weather up.",
      parameters: Schema.Struct({ city: Schema.String, days: Schema.optional(Schema.Int) }),
      strict: true
    },
    { name: "now" }
  ],
  toolChoice: "required",
  parallelToolCalls: false,
  responseFormat: { name: "forecast", schema: Schema.Struct({ city: Schema.String, degrees: Schema.Number }) },
  reasoning: { effort: "minimal", maxTokens: 500 },
  metadata: { team: "blue" },
  maxTokens: 100,
  temperature: 0.5,
  topP: 0.9,
  stop: ["1", "2", "3", "4", "5", "6"],
  seed: 7
}

const image = { url: "data:image/png;base64,AQID", detail: "low" } as const

const conversation = (
  one = "toolu_01ABCDEFGHJKLMNPQRSTUV",
  other = "toolu_02ABCDEFGHJKLMNPQRSTUV"
): Array<ChatCompletionMessageParam> => [
  { role: "system", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "text", text: "What is the weather here?" },
      { type: "image_url", image_url: image }
    ]
  },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: one, type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
      { id: other, type: "function", function: { name: "weather", arguments: '{"city":' } }
    ]
  },
  { role: "tool", tool_call_id: one, content: '{"degrees":7}' },
  { role: "tool", tool_call_id: other, content: "no such city" },
  { role: "user", content: "And tomorrow?" }
]

const tools = (strict: boolean): NonNullable<Body["tools"]> => [
  {
    type: "function",
    function: {
      name: "weather",
      description: "Looks the weather up.",
      parameters: {
        type: "object",
        required: ["city"],
        properties: { city: { type: "string" }, days: { type: "integer", title: "int", description: "an integer" } },
        additionalProperties: false
      },
      strict
    }
  },
  { type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } }
]

const schema = {
  type: "object",
  required: ["city", "degrees"],
  properties: { city: { type: "string" }, degrees: { type: "number" } },
  additionalProperties: false
}

const response_format: Body["response_format"] = {
  type: "json_schema",
  json_schema: { name: "forecast", schema, strict: true }
}

/** What every vendor is sent. */
const common = { model: "m", temperature: 0.5, top_p: 0.9 } as const

const foreign = "messages lost the reasoning that only another provider can read."
const failedTool = "messages lost isError: this wire has no mark for a tool that failed, only its text."
const strict = "tools: weather was sent with strict: false, for it.days is optional in its parameters."
const stop4 = "stop holds only the first 4: the vendor takes no more."
const tokens = "reasoning.maxTokens was left out: the vendor takes only an effort."
const metadata = "metadata was left out: the vendor does not take it."
const low = "reasoning.effort is low instead of minimal: the vendor has no such."
const parallel = "parallelToolCalls was left out: the vendor does not take it."
const seed = "seed was left out: the vendor does not take it."

/** The body that a vendor is sent, in OpenAI's types as far as they go, and what the answer says that was changed. */
interface Row<Extra = object> {
  readonly body: Omit<Body, keyof Extra> & Extra
  readonly changes: ReadonlyArray<string>
}

const openAi: Row = {
  body: {
    ...common,
    messages: conversation(),
    max_completion_tokens: 100,
    stop: ["1", "2", "3", "4"],
    seed: 7,
    tools: tools(false),
    tool_choice: "required",
    parallel_tool_calls: false,
    response_format,
    reasoning_effort: "minimal",
    metadata: { team: "blue" }
  },
  changes: [foreign, failedTool, stop4, strict, tokens]
}

const { metadata: _metadata, ...unlabelled } = openAi.body

const azure: Row = { body: unlabelled, changes: [foreign, failedTool, stop4, strict, tokens, metadata] }

const groq: Row = {
  body: { ...unlabelled, reasoning_effort: "low" },
  changes: [foreign, failedTool, stop4, strict, tokens, low, metadata]
}

const six = ["1", "2", "3", "4", "5", "6"]

/** What servers are sent that follow OpenAI's older documentation. */
const older = {
  ...common,
  messages: conversation(),
  max_tokens: 100,
  stop: six,
  seed: 7,
  tools: tools(false),
  tool_choice: "required",
  parallel_tool_calls: false,
  response_format,
  reasoning_effort: "minimal"
} satisfies Body

const { seed: _seed, ...unseeded } = older
const { parallel_tool_calls: _parallel, ...withoutParallel } = older
const { tool_choice: _choice, ...withoutChoice } = withoutParallel

const mistral: Row<{ tool_choice: "any"; random_seed: number }> = {
  body: {
    ...unseeded,
    messages: conversation("0fif18np0", "05en5d07r").toSpliced(5, 0, { role: "assistant", content: "OK" }),
    tool_choice: "any",
    random_seed: 7
  },
  changes: [
    foreign,
    failedTool,
    "messages have other ids of tool calls: the vendor does not take those of others.",
    'messages have an assistant\'s "OK" between tool results and the user: the vendor wants one.',
    strict,
    tokens,
    metadata
  ]
}

const instruction = `Be brief.

Answer with JSON that fits this JSON schema, and with nothing else:
${JSON.stringify(schema)}`

/** DeepSeek refuses calls without their reasoning, which is not known of another vendor's. */
const withReasoning = (message: ChatCompletionMessageParam) =>
  message.role === "assistant" ? { ...message, reasoning_content: "" } : message

const deepSeek: Row = {
  body: {
    ...common,
    messages: [{ role: "system", content: instruction }, ...conversation().slice(1).map(withReasoning)],
    max_tokens: 100,
    stop: six,
    tools: tools(false),
    tool_choice: "required",
    response_format: { type: "json_object" },
    reasoning_effort: "minimal"
  },
  changes: [
    "responseFormat became JSON mode, with the schema in the system text: the vendor has no more.",
    foreign,
    failedTool,
    seed,
    strict,
    parallel,
    tokens,
    metadata
  ]
}

const { reasoning_effort: _effort, ...effortless } = older

const openRouter: Row<{ reasoning: object }> = {
  body: { ...effortless, reasoning: { max_tokens: 500 } },
  changes: [foreign, failedTool, strict, "reasoning.effort was left out: the vendor takes it or maxTokens.", metadata]
}

const lenient = { ...older, tools: tools(true) }

const rows: ReadonlyArray<readonly [name: string, maker: Maker, row: Row]> = [
  ["openai", OpenAi, openAi],
  ["azure", AzureOpenAi, azure],
  ["groq", Groq, groq],
  ["cerebras", Cerebras, groq],
  [
    "xai",
    Xai,
    { body: { ...older, reasoning_effort: "low" }, changes: [foreign, failedTool, strict, tokens, low, metadata] }
  ],
  ["deepseek", DeepSeek, deepSeek],
  [
    "together",
    Together,
    {
      body: { ...withoutParallel, tools: tools(true), reasoning_effort: "low" },
      changes: [foreign, failedTool, parallel, tokens, low, metadata]
    }
  ],
  [
    "fireworks",
    Fireworks,
    {
      body: { ...lenient, stop: ["1", "2", "3", "4"], reasoning_effort: "low" },
      changes: [foreign, failedTool, stop4, tokens, low, metadata]
    }
  ],
  [
    "gemini",
    Gemini,
    {
      body: { ...unseeded, stop: ["1", "2", "3", "4", "5"] },
      changes: [
        foreign,
        failedTool,
        "stop holds only the first 5: the vendor takes no more.",
        seed,
        strict,
        tokens,
        metadata
      ]
    }
  ],
  [
    "ollama",
    Ollama,
    {
      body: { ...withoutChoice, tools: tools(true), reasoning_effort: "low" },
      changes: [
        foreign,
        failedTool,
        parallel,
        "toolChoice was left out: the vendor cannot be made to call a tool.",
        tokens,
        low,
        metadata
      ]
    }
  ],
  [
    "lmstudio",
    LmStudio,
    { body: { ...withoutParallel, tools: tools(true) }, changes: [foreign, failedTool, parallel, tokens, metadata] }
  ],
  ["vllm", Vllm, { body: lenient, changes: [foreign, failedTool, tokens, metadata] }],
  [
    "llamacpp",
    LlamaCpp,
    {
      body: { ...effortless, tools: tools(true) },
      changes: [foreign, failedTool, "reasoning was left out: the vendor cannot be told how much to think.", metadata]
    }
  ],
  ["a server of one's own", host(), { body: older, changes: [foreign, failedTool, strict, tokens, metadata] }]
]

const asked = (maker: Maker, request: ChatRequest) =>
  ask(maker, request).pipe(
    Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["AZURE_OPENAI_ENDPOINT", "https://fx.test"]])))
  )

const sorted = (changes: ReadonlyArray<string> | undefined) => [...(changes ?? [])].sort()

describe("one conversation with everything in it", () => {
  it.effect.each([...rows, ["mistral", Mistral, mistral], ["openrouter", OpenRouter, openRouter]] as const)(
    "%s gets it as it takes it, and the answer says what was changed",
    ([, maker, { body, changes }]) =>
      Effect.gen(function* () {
        const result = yield* asked(maker, rich)

        assert.deepStrictEqual(result.sent, body)
        assert.deepStrictEqual(sorted(result.changes), sorted(changes))
      })
  )
})

describe("a plain question", () => {
  it.effect.each([...rows, ["mistral", Mistral], ["openrouter", OpenRouter]] as const)(
    "to %s is a model and a message, and nothing is said to have changed",
    ([, maker]) =>
      Effect.gen(function* () {
        const result = yield* asked(maker, { messages: [{ role: "user", content: "hello" }] })

        assert.deepStrictEqual(result.sent, { model: "m", messages: [{ role: "user", content: "hello" }] })
        assert.notProperty(result.answer, "changes")
      })
  )
})

describe("extra", () => {
  it.effect("wins over everything, and stands last", () =>
    Effect.gen(function* () {
      const extra = { model: "other", tools: [], response_format: { type: "text" }, top_k: 3 }

      const { sent } = yield* asked(OpenAi, { ...rich, extra })

      assert.deepInclude(sent, extra)
      assert.strictEqual(Object.keys(sent).at(-1), "top_k")
    })
  )
})
