import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import ts from "typescript"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import { answering } from "./fakeClient.ts"
import { drained, only } from "./streaming.ts"

const hello: ChatRequest = { messages: [{ role: "user", content: "hello" }] }

const answered = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hi." }] }, finishReason: "STOP" }]
}

const ask = Effect.fn(function* (request: ChatRequest, own: object = {}, reply: object = answered) {
  const { layer, sent } = answering({ body: JSON.stringify(reply) })
  const provider = yield* GeminiNative.make({ model: "gemini-3-flash", apiKey: "fx-key", ...own }).pipe(
    Effect.provide(layer)
  )
  const answer = (yield* provider.complete(request)) as ProviderAnswer
  return { body: sent[0]?.body, changes: answer.changes, toolCalls: answer.toolCalls }
})

const user = (...parts: ReadonlyArray<object>) => ({ role: "user", parts })
const model = (...parts: ReadonlyArray<object>) => ({ role: "model", parts })
const text = (words: string) => ({ text: words })

const weather = {
  name: "get_weather",
  description: "Tells the weather.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}

/** A conversation in which another vendor's model called two tools. */
const foreign: ChatRequest = {
  system: "be brief",
  messages: [
    { role: "system", content: "be kind" },
    {
      role: "user",
      content: [
        { type: "text", text: "Here and there?" },
        { type: "image", data: new Uint8Array([1, 2, 3]), mediaType: "image/png" },
        { type: "file", data: "JVBERi0=", mediaType: "application/pdf", name: "a.pdf" }
      ]
    },
    {
      role: "assistant",
      content: "I look.",
      toolCalls: [
        { id: "toolu_01AbC", name: "get_weather", arguments: { city: "Oslo" } },
        { id: "call|with:odd/letters", name: "get_weather", arguments: { city: "Rome" } }
      ],
      opaque: { wire: "anthropic-messages", provider: "anthropic", value: [{ signature: "c2ln" }] }
    },
    { role: "tool", toolCallId: "call|with:odd/letters", content: "no such city", isError: true },
    { role: "tool", toolCallId: "toolu_01AbC", content: [{ type: "text", text: "rain" }] },
    { role: "user", content: "So?" }
  ],
  tools: [weather, { name: "now" }],
  toolChoice: "auto",
  maxTokens: 100,
  temperature: 0,
  topP: 0.5,
  stop: ["END"],
  seed: 7,
  reasoning: { effort: "low" },
  responseFormat: { schema: Schema.Struct({ answer: Schema.String }), description: "The answer." }
}

const oslo = { name: "get_weather", args: { city: "Oslo" } }
const rome = { name: "get_weather", args: { city: "Rome" } }

describe("requests", () => {
  it.effect("say no more than they must", () =>
    Effect.gen(function* () {
      const { body, changes } = yield* ask(hello)

      assert.deepStrictEqual(body, { contents: [user(text("hello"))] })
      assert.isUndefined(changes)
    })
  )

  it.effect("take a conversation of another vendor", () =>
    Effect.gen(function* () {
      const { body, changes } = yield* ask(foreign)

      assert.deepStrictEqual(body.systemInstruction, { parts: [text("be brief"), text("be kind")] })
      assert.deepStrictEqual(body.contents, [
        user(
          text("Here and there?"),
          { inlineData: { mimeType: "image/png", data: "AQID" } },
          { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } }
        ),
        model(
          text("I look."),
          { functionCall: oslo, thoughtSignature: "skip_thought_signature_validator" },
          { functionCall: rome }
        ),
        user(
          { functionResponse: { name: "get_weather", response: { result: "rain" } } },
          { functionResponse: { name: "get_weather", response: { error: "no such city" } } },
          text("So?")
        )
      ])
      assert.deepStrictEqual(body.tools, [
        {
          functionDeclarations: [
            { name: "get_weather", description: "Tells the weather.", parametersJsonSchema: weather.parameters },
            { name: "now" }
          ]
        }
      ])
      assert.deepStrictEqual(body.toolConfig, { functionCallingConfig: { mode: "AUTO" } })
      assert.deepStrictEqual(body.generationConfig, {
        maxOutputTokens: 100,
        temperature: 0,
        topP: 0.5,
        stopSequences: ["END"],
        seed: 7,
        thinkingConfig: { thinkingLevel: "LOW", includeThoughts: true },
        responseMimeType: "application/json",
        responseJsonSchema: {
          description: "The answer.",
          type: "object",
          required: ["answer"],
          properties: { answer: { type: "string" } },
          additionalProperties: false
        }
      })
      assert.deepStrictEqual(changes, ["reasoning of another vendor was left out."])
    })
  )

  it.effect("carry what the user adds, field by field where the wire has a group", () =>
    Effect.gen(function* () {
      const extra = { safetySettings: [], generationConfig: { topK: 3, temperature: 1 } }

      const { body } = yield* ask({ ...hello, temperature: 0, extra }, { maxTokens: 9 })

      assert.deepStrictEqual(body.generationConfig, { maxOutputTokens: 9, temperature: 1, topK: 3 })
      assert.deepStrictEqual(body.safetySettings, [])
    })
  )

  it.effect.each([
    ["auto", { mode: "AUTO" }],
    ["none", { mode: "NONE" }],
    ["required", { mode: "ANY" }],
    [{ name: "get_weather" }, { mode: "ANY", allowedFunctionNames: ["get_weather"] }]
  ] as const)("choose tools: %j", ([toolChoice, functionCallingConfig]) =>
    Effect.gen(function* () {
      const { body } = yield* ask({ ...hello, tools: [weather], toolChoice })

      assert.deepStrictEqual(body.toolConfig, { functionCallingConfig })
    })
  )

  it.effect.each([
    ["gemini-3-flash", { effort: "minimal" }, { thinkingLevel: "MINIMAL", includeThoughts: true }],
    ["gemini-flash-latest", { effort: "high" }, { thinkingLevel: "HIGH", includeThoughts: true }],
    ["gemini-2.5-flash", { effort: "high" }, { thinkingBudget: 24576, includeThoughts: true }],
    ["gemini-2.5-flash", { effort: "none" }, { thinkingBudget: 0 }],
    ["gemini-3-flash", { maxTokens: 50 }, { thinkingBudget: 50, includeThoughts: true }],
    ["gemini-3-flash", {}, undefined]
  ] as const)("%s thinks: %j", ([name, reasoning, thinkingConfig]) =>
    Effect.gen(function* () {
      const { body } = yield* ask({ ...hello, reasoning }, { model: name })

      assert.deepStrictEqual(body.generationConfig?.thinkingConfig, thinkingConfig)
    })
  )
})

describe("images and files", () => {
  it.effect.each([
    ["data:image/webp;base64,AQID", undefined, { inlineData: { mimeType: "image/webp", data: "AQID" } }],
    ["data:text/plain;charset=utf-8,h%C3%A9", undefined, { inlineData: { mimeType: "text/plain", data: "aMOp" } }],
    ["data:,a,b%zz", undefined, { inlineData: { mimeType: "text/plain", data: "YSxiJXp6" } }],
    [
      "https://x.test/a.PNG?b=c",
      undefined,
      { fileData: { mimeType: "image/png", fileUri: "https://x.test/a.PNG?b=c" } }
    ],
    ["https://x.test/a", undefined, { fileData: { mimeType: "image/jpeg", fileUri: "https://x.test/a" } }],
    ["gs://bucket/a", "image/gif", { fileData: { mimeType: "image/gif", fileUri: "gs://bucket/a" } }]
  ] as const)("at %s", ([url, mediaType, part]) =>
    Effect.gen(function* () {
      const { body } = yield* ask({ messages: [{ role: "user", content: [{ type: "image", url, mediaType }] }] })

      assert.deepStrictEqual(body.contents, [user(part)])
    })
  )

  it.effect("of a result stand beside it", () =>
    Effect.gen(function* () {
      const { body } = yield* ask({
        messages: [
          ...hello.messages,
          { role: "assistant", content: "", toolCalls: [{ id: "1", name: "look" }] },
          { role: "tool", toolCallId: "1", content: [{ type: "image", data: "AQID", mediaType: "image/png" }] }
        ]
      })

      assert.deepStrictEqual(
        body.contents.at(-1),
        user(
          { functionResponse: { name: "look", response: { result: "" } } },
          { inlineData: { mimeType: "image/png", data: "AQID" } }
        )
      )
    })
  )
})

describe("what Gemini wrote itself", () => {
  const own = {
    role: "assistant",
    content: "I look.",
    toolCalls: [
      { id: "fx1", name: "a", arguments: {} },
      { id: "call_1", name: "b", arguments: {} }
    ],
    opaque: {
      wire: "gemini",
      provider: "elsewhere",
      value: [{ thoughtSignature: "dA==" }, { call: 0, id: "fx1", thoughtSignature: "c2ln" }]
    }
  } as const

  it.effect("goes back with its signatures and its ids", () =>
    Effect.gen(function* () {
      const { body, changes } = yield* ask({
        messages: [
          ...hello.messages,
          own,
          { role: "tool", toolCallId: "fx1", content: "1" },
          { role: "tool", toolCallId: "call_1", content: "2" }
        ]
      })

      assert.deepStrictEqual(body.contents.slice(1), [
        model(
          { text: "I look.", thoughtSignature: "dA==" },
          { functionCall: { id: "fx1", name: "a", args: {} }, thoughtSignature: "c2ln" },
          { functionCall: { name: "b", args: {} } }
        ),
        user(
          { functionResponse: { id: "fx1", name: "a", response: { result: "1" } } },
          { functionResponse: { name: "b", response: { result: "2" } } }
        )
      ])
      assert.isUndefined(changes)
    })
  )

  it.effect("goes back where there was no text, and what is broken is no harm", () =>
    Effect.gen(function* () {
      const opaque = { wire: "gemini", provider: "gemini", value: [{ thoughtSignature: "dA==" }] }
      const broken = { wire: "gemini", provider: "gemini", value: { call: 0 } }

      const { body } = yield* ask({
        messages: [
          ...hello.messages,
          { role: "assistant", content: "", opaque },
          { role: "assistant", content: "more", opaque: broken }
        ]
      })

      assert.deepStrictEqual(body.contents[1], model({ text: "", thoughtSignature: "dA==" }, text("more")))
    })
  )

  it.effect("needs no stand-in for a signature where the model is older", () =>
    Effect.gen(function* () {
      const { body } = yield* ask({ messages: foreign.messages }, { model: "models/gemini-2.5-pro" })

      assert.notInclude(JSON.stringify(body), "skip_thought_signature_validator")
    })
  )

  it.effect("has ids that come again with every answer", () =>
    Effect.gen(function* () {
      const round = (first: string, second: string): ChatRequest["messages"] => [
        {
          role: "assistant",
          content: "",
          toolCalls: [
            { id: "call_0", name: first },
            { id: "call_1", name: second }
          ]
        },
        { role: "tool", toolCallId: "call_1", content: second },
        { role: "tool", toolCallId: "call_0", content: first }
      ]

      const { body } = yield* ask({ messages: [...hello.messages, ...round("a", "b"), ...round("c", "d")] })

      const results = JSON.stringify(body.contents).match(/"name":"(\w)","response":\{"result":"\1"/g)
      assert.deepStrictEqual(
        results?.map((it) => it.slice(8, 9)),
        ["a", "b", "c", "d"]
      )
    })
  )
})

describe("results of tools", () => {
  it.effect("are as many as the calls, made up where there is none", () =>
    Effect.gen(function* () {
      const { body, changes } = yield* ask({
        messages: [
          ...hello.messages,
          {
            role: "assistant",
            content: "",
            toolCalls: [
              { id: "1", name: "a" },
              { id: "2", name: "b" }
            ]
          },
          { role: "tool", toolCallId: "2", content: "done" },
          { role: "user", content: "more" }
        ]
      })

      assert.deepStrictEqual(
        body.contents[2],
        user(
          { functionResponse: { name: "a", response: { result: "There is no result." } } },
          { functionResponse: { name: "b", response: { result: "done" } } },
          text("more")
        )
      )
      assert.deepStrictEqual(changes, [
        "messages have stand-ins for results of tools: the vendor takes no call without one."
      ])
    })
  )
})

describe("names of tools that Gemini refuses", () => {
  const long = `${"9".repeat(63)}x`
  const request: ChatRequest = {
    messages: [
      ...hello.messages,
      {
        role: "assistant",
        content: "",
        toolCalls: [
          { id: "1", name: "2d_plot" },
          { id: "2", name: "functions/search" }
        ]
      },
      { role: "tool", toolCallId: "1", content: "a" },
      { role: "tool", toolCallId: "2", content: "b" }
    ],
    tools: [{ name: "2d_plot" }, { name: "-now" }, { name: "_2d_plot" }, { name: long }, { name: "fine" }],
    toolChoice: { name: "2d_plot" }
  }
  const answer = (...names: ReadonlyArray<string>) => ({
    candidates: [
      {
        content: { role: "model", parts: names.map((name) => ({ functionCall: { name, args: {} } })) },
        finishReason: "STOP"
      }
    ]
  })

  it.effect("are sent in a spelling that it takes, and come back as they were", () =>
    Effect.gen(function* () {
      const { body, changes, toolCalls } = yield* ask(
        request,
        {},
        answer("_2d_plot_2", "_2d_plot", "_-now", "fine", "new")
      )

      assert.deepStrictEqual(
        body.tools[0].functionDeclarations.map(({ name }: { name: string }) => name),
        ["_2d_plot_2", "_-now", "_2d_plot", `_${"9".repeat(63)}`, "fine"]
      )
      assert.deepStrictEqual(body.toolConfig.functionCallingConfig.allowedFunctionNames, ["_2d_plot_2"])
      const sent = JSON.stringify(body.contents)
      assert.deepStrictEqual(sent.match(/"name":"[^"]*"/g), [
        '"name":"_2d_plot_2"',
        '"name":"functions_search"',
        '"name":"_2d_plot_2"',
        '"name":"functions_search"'
      ])
      assert.deepStrictEqual(
        toolCalls?.map(({ name }) => name),
        ["2d_plot", "_2d_plot", "-now", "fine", "new"]
      )
      assert.include(changes ?? [], "the tool 2d_plot was called _2d_plot_2, as the vendor does not take its name.")
      assert.lengthOf(changes ?? [], 4)
    })
  )

  it.effect("are chosen in that spelling, though the tool is not there", () =>
    Effect.gen(function* () {
      const { body } = yield* ask({ ...hello, tools: [weather], toolChoice: { name: "2x" } })

      assert.deepStrictEqual(body.toolConfig.functionCallingConfig.allowedFunctionNames, ["_2x"])
    })
  )

  it.effect("stay apart where they are cut, at 64 characters", () =>
    Effect.gen(function* () {
      const tools = [65, 66, 67].map((length) => ({ name: "a".repeat(length) }))

      const { body } = yield* ask({ ...hello, tools })

      assert.deepStrictEqual(
        body.tools[0].functionDeclarations.map(({ name }: { name: string }) => name),
        ["a".repeat(64), `${"a".repeat(62)}_2`, `${"a".repeat(62)}_3`]
      )
    })
  )

  it.effect("come back in a stream too", () =>
    Effect.gen(function* () {
      const { layer } = answering({
        headers: { "content-type": "text/event-stream" },
        body: `data: ${JSON.stringify(answer("_2d_plot_2"))}\n\n`
      })
      const provider = yield* GeminiNative.make({ model: "gemini-3-flash", apiKey: "fx-key" }).pipe(
        Effect.provide(layer)
      )

      const result = yield* drained(provider, request)

      assert.strictEqual(only(result, "ToolCallDelta")[0]?.name, "2d_plot")
      assert.strictEqual(only(result, "ToolCall")[0]?.name, "2d_plot")
    })
  )
})

describe("what Gemini cannot take", () => {
  it.effect.each([
    [{ parallelToolCalls: false, tools: [weather] }, /parallelToolCalls was left out/],
    [{ metadata: { user: "1" } }, /metadata was left out/],
    [{ tools: [{ ...weather, strict: true }] }, /strict was left out/],
    [{ stop: ["1", "2", "3", "4", "5", "6"] }, /stop texts after the first 5/],
    [{ seed: 2 ** 40 }, /seed was left out/],
    [{ reasoning: { effort: "low", maxTokens: 5 } }, /reasoning\.effort was left out/],
    [{ reasoning: { effort: "none", maxTokens: 5 } }, /reasoning\.maxTokens was left out/],
    [{ messages: [{ role: "user", content: "" }, ...hello.messages] }, /message without content/],
    [{ messages: [{ role: "assistant", content: "Hm." }] }, /empty message of the user was put first/],
    [{ messages: [{ role: "system", content: "Be." }] }, /empty message of the user was put first/],
    [
      {
        messages: [{ role: "user", content: [{ type: "image", data: "AQID", mediaType: "image/png", detail: "low" }] }]
      },
      /detail of images/
    ],
    [
      { messages: [{ role: "system", content: [{ type: "file", url: "https://x.test/a.pdf" }] }, ...hello.messages] },
      /left out of the system messages/
    ],
    [
      {
        messages: [
          ...hello.messages,
          { role: "assistant", content: "", toolCalls: [{ id: "1", name: "a", rawArguments: "{" }] },
          { role: "tool", toolCallId: "1", content: "done" }
        ]
      },
      /put into one, as value/
    ]
  ] as ReadonlyArray<[Partial<ChatRequest>, RegExp]>)("is said: %j", ([more, words]) =>
    Effect.gen(function* () {
      const { changes } = yield* ask({ ...hello, ...more })

      assert.strictEqual(changes?.length, 1)
      assert.match(changes?.[0] ?? "", words)
      assert.isTrue(changes?.[0]?.endsWith("."))
    })
  )

  it.effect("becomes what it can take", () =>
    Effect.gen(function* () {
      const toolCalls = [{ id: "1", name: "a", arguments: [1] }]

      const { body } = yield* ask({ messages: [{ role: "assistant", content: "", toolCalls }] })

      assert.deepStrictEqual(body.contents[0], user(text("")))
      assert.deepStrictEqual(body.contents[1].parts[0].functionCall, { name: "a", args: { value: [1] } })
    })
  )

  it.effect("is said at the end of a stream", () =>
    Effect.gen(function* () {
      const body = `data: ${JSON.stringify(answered)}\n\n`
      const { layer } = answering({ headers: { "content-type": "text/event-stream" }, body })
      const provider = yield* GeminiNative.make({ model: "m", apiKey: "fx-key", name: "g" }).pipe(Effect.provide(layer))

      const result = yield* drained(provider, { ...hello, metadata: { user: "1" } })

      assert.deepStrictEqual(only(result, "End")[0]?.changes, ["metadata was left out."])
    })
  )

  it.effect.each([
    [{ model: "gemini-2.5-flash" }, { tools: [weather] }, undefined],
    [{ capabilities: { jsonSchema: false } }, {}, { responseMimeType: "application/json" }]
  ] as const)("as a form of the answer goes into the system text: %j", ([own, more, generationConfig]) =>
    Effect.gen(function* () {
      const { body, changes } = yield* ask({ ...hello, ...more, responseFormat: { schema: weather.parameters } }, own)

      assert.deepStrictEqual(body.generationConfig, generationConfig)
      assert.include(body.systemInstruction.parts[0].text, JSON.stringify(weather.parameters))
      assert.match(changes?.[0] ?? "", /responseFormat became/)
    })
  )
})

// The types of Google's own client

const types = `
import type { Content, FunctionDeclaration, GenerationConfig, ToolConfig } from "@google/genai"

type Wire<T> = T extends string ? \`\${T}\`
  : T extends ReadonlyArray<infer U> ? ReadonlyArray<Wire<U>>
  : T extends object ? { [K in keyof T]: Wire<T[K]> }
  : T

export type Body = Wire<{
  contents: Content[]
  systemInstruction?: Content
  tools?: { functionDeclarations: FunctionDeclaration[] }[]
  toolConfig?: ToolConfig
  generationConfig?: GenerationConfig
}>
`

/** Which of the bodies a compiler does not take as values of the client's types. */
const refused = (bodies: ReadonlyArray<unknown>): ReadonlyArray<number> => {
  const file = fileURLToPath(new URL("gemini-bodies.ts", import.meta.url))
  const lines = bodies.map((body, index) => `export const body${index}: Body = ${JSON.stringify(body)}`)
  const source = ts.createSourceFile(file, [...lines, types].join("\n"), ts.ScriptTarget.ES2022)
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext
  }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.fileExists = (name) => name === file || fileExists(name)
  host.getSourceFile = (name, ...rest) => (name === file ? source : getSourceFile(name, ...rest))
  const found = ts.createProgram([file], options, host).getSemanticDiagnostics(source)
  return [...new Set(found.map(({ start = 0 }) => source.getLineAndCharacterOfPosition(start).line))]
}

describe("bodies", () => {
  it.effect(
    "are of the types of Google's own client",
    () =>
      Effect.gen(function* () {
        const requests: ReadonlyArray<ChatRequest> = [
          hello,
          foreign,
          { ...foreign, toolChoice: { name: "now" }, responseFormat: "json", reasoning: { effort: "none" } },
          { messages: [{ role: "user", content: [{ type: "image", url: "https://x.test/a.png" }] }] }
        ]
        const bodies = yield* Effect.forEach(requests, (request) => Effect.map(ask(request), ({ body }) => body))
        const wrong = [
          { ...bodies[0], toolConfig: { functionCallingConfig: { mode: "SOMETIMES" } } },
          { ...bodies[0], contents: [{ parts: [{ txt: "" }] }] }
        ]

        assert.deepStrictEqual(refused([...bodies, ...wrong]), [bodies.length, bodies.length + 1])
      }),
    60_000
  )
})
