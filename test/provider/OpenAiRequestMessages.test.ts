import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { Message, Part } from "../../src/model/Message.ts"
import { DeepSeek, Gemini, LlamaCpp, Mistral, Ollama, OpenAi, OpenRouter, Vllm } from "../../src/provider/vendors.ts"
import { ask, chunk, hello, host, type Maker, message, stream } from "./openAi.ts"
import { only } from "./streaming.ts"

const user = (...content: ReadonlyArray<Part>): ChatRequest => ({ messages: [{ role: "user", content }] })

const image: Part = { type: "image", url: "https://images.test/cat.png" }

const pdf: Part = { type: "file", data: "JVBERg==", mediaType: "application/pdf" }

const calling = (...ids: ReadonlyArray<string>): ReadonlyArray<Message> => [
  { role: "user", content: "go" },
  { role: "assistant", content: "", toolCalls: ids.map((id) => ({ id, name: "f", arguments: {} })) },
  ...ids.map((id) => ({ role: "tool", toolCallId: id, content: "done" }) as const)
]

const sentMessages = Effect.fn(function* (maker: Maker, request: ChatRequest | ReadonlyArray<Message>) {
  const { sent, changes } = yield* ask(maker, "messages" in request ? request : { messages: request })
  return { messages: sent.messages, body: sent, changes }
})

describe("parts", () => {
  it.effect.each([
    [
      "text alone is a plain text",
      [
        { type: "text", text: "a" },
        { type: "text", text: "b" }
      ],
      "ab"
    ],
    ["an image by its address", [image], [{ type: "image_url", image_url: { url: "https://images.test/cat.png" } }]],
    [
      "an image by its bytes, in base64 or not",
      [
        { type: "image", data: "AQID", mediaType: "image/png" },
        { type: "image", data: new Uint8Array([1, 2, 3]), mediaType: "image/png", detail: "high" }
      ],
      [
        { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } },
        { type: "image_url", image_url: { url: "data:image/png;base64,AQID", detail: "high" } }
      ]
    ],
    [
      "a file, with a name of its kind where it has none",
      [{ type: "text", text: "read" }, pdf, { ...pdf, name: "offer.pdf" }],
      [
        { type: "text", text: "read" },
        { type: "file", file: { filename: "file.pdf", file_data: "data:application/pdf;base64,JVBERg==" } },
        { type: "file", file: { filename: "offer.pdf", file_data: "data:application/pdf;base64,JVBERg==" } }
      ]
    ]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<Part>, unknown]>)("%s", ([, parts, content]) =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(host(), user(...parts))

      assert.deepStrictEqual(messages, [{ role: "user", content }])
      assert.isUndefined(changes)
    })
  )

  it.effect.each([
    ["Mistral reads documents", Mistral, { type: "document_url", document_url: "https://x.test/a.pdf" }],
    [
      "OpenRouter fetches files",
      OpenRouter,
      { type: "file", file: { filename: "a.pdf", file_data: "https://x.test/a.pdf" } }
    ]
  ] as const)("%s", ([, maker, part]) =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(maker, user({ type: "file", url: "https://x.test/a.pdf" }))

      assert.deepStrictEqual(messages[0].content, [part])
    })
  )

  it.effect.each([
    ["Ollama fetches no images", Ollama, image, "ollama: cannot fetch images"],
    ["Ollama reads no files", Ollama, pdf, "ollama: cannot read files"],
    ["OpenAI fetches no files", OpenAi, { type: "file", url: "https://x.test/a.pdf" }, "openai: cannot fetch files"],
    [
      "nobody but Google reads its buckets",
      host(),
      { type: "image", url: "gs://bucket/cat.png" },
      "host: cannot read gs:"
    ]
  ] as ReadonlyArray<readonly [string, Maker, Part, string]>)(
    "%s, so that the next provider is asked",
    ([, maker, part, words]) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(ask(maker, user(part)))

        assert.deepInclude(error, { _tag: "InvalidRequestError", reason: "capability" })
        assert.include(error.message, words)
      })
  )

  it.effect("what a tool shows follows its results", () =>
    Effect.gen(function* () {
      const shown: Message = { role: "tool", toolCallId: "one", content: [{ type: "text", text: "see" }, image] }
      const [, calls, , other] = calling("one", "two")

      const { messages, changes } = yield* sentMessages(host(), [
        { role: "user", content: "go" },
        calls,
        shown,
        other,
        { role: "user", content: "well?" }
      ] as ReadonlyArray<Message>)

      assert.deepStrictEqual(messages.slice(2), [
        { role: "tool", tool_call_id: "one", content: "see" },
        { role: "tool", tool_call_id: "two", content: "done" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "https://images.test/cat.png" } }] },
        { role: "user", content: "well?" }
      ])
      assert.deepStrictEqual(changes, [
        "messages: images and files of tool results follow as a user message: this wire has only text there."
      ])
    })
  )
})

describe("images and files on a wire that has only text", () => {
  it.effect("follow a result at the end too", () =>
    Effect.gen(function* () {
      const [, calls] = calling("one")
      const shown: Message = { role: "tool", toolCallId: "one", content: [image] }

      const { messages } = yield* sentMessages(host(), [...hello().messages, calls, shown] as ReadonlyArray<Message>)

      assert.deepStrictEqual(messages.slice(2), [
        { role: "tool", tool_call_id: "one", content: "" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "https://images.test/cat.png" } }] }
      ])
    })
  )

  it.effect.each(["system", "assistant"] as const)("are left out of %s messages, and that is said", (role) =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(host(), [
        { role, content: [{ type: "text", text: "a" }, image] },
        { role: "user", content: "go" }
      ])

      assert.deepStrictEqual(messages[0], { role, content: "a" })
      assert.deepStrictEqual(changes, [
        `messages: images and files of ${role} messages were left out: this wire has only text there.`
      ])
    })
  )
})

describe("ids of tool calls", () => {
  const idsOf = (maker: Maker, ...ids: ReadonlyArray<string>) =>
    Effect.map(sentMessages(maker, calling(...ids)), ({ messages, changes }) => {
      const calls: ReadonlyArray<string> = messages[1].tool_calls.map(({ id }: { id: string }) => id)
      const results = messages.slice(2).map(({ tool_call_id }: { tool_call_id: string }) => tool_call_id)
      assert.deepStrictEqual(results, calls)
      return { calls, changes }
    })

  it.effect("are nine letters and digits for Mistral, always the same, each another", () =>
    Effect.gen(function* () {
      const foreign = Array.from({ length: 200 }, (_, index) => `call_${index}`)

      const one = yield* idsOf(Mistral, ...foreign)
      const other = yield* idsOf(Mistral, ...foreign, "call_x")

      assert.isTrue(one.calls.every((id) => /^[a-z0-9]{9}$/.test(id)))
      assert.strictEqual(new Set(one.calls).size, 200)
      assert.deepStrictEqual(other.calls.slice(0, 200), one.calls)
      assert.lengthOf(one.changes ?? [], 1)
    })
  )

  it.effect("are others even where the first choice for both is the same", () =>
    Effect.gen(function* () {
      const { calls } = yield* idsOf(Mistral, "call_23", "call_p1")
      const { calls: alone } = yield* idsOf(Mistral, "call_p1")

      assert.strictEqual(alone[0], calls[0])
      assert.notStrictEqual(calls[1], calls[0])
    })
  )

  it.effect("of Mistral's own are left alone", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* idsOf(Mistral, "AbCdEfGh1"), { calls: ["AbCdEfGh1"], changes: undefined })
    })
  )

  it.effect("are at most 40 characters for OpenAI", () =>
    Effect.gen(function* () {
      const { calls } = yield* idsOf(OpenAi, "a".repeat(40), "b".repeat(41))

      assert.strictEqual(calls[0], "a".repeat(40))
      assert.lengthOf(calls[1] ?? "", 9)
    })
  )

  it.effect("are as they were for others", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* idsOf(host(), "c".repeat(99))).calls, ["c".repeat(99)])
    })
  )
})

describe("results of tools", () => {
  const call = (id: string) => ({ id, name: "f", arguments: {} })
  const late = "messages have late results as words of the user: the vendor takes them only next to their call."
  const missing = "messages have stand-ins for results of tools: the vendor takes no call without one."

  it.effect("stand right behind their calls, or are made up", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        { role: "assistant", content: "", toolCalls: [call("1"), call("2")] },
        { role: "tool", toolCallId: "2", content: "b" },
        { role: "user", content: "stop" },
        { role: "tool", toolCallId: "1", content: "a" },
        { role: "assistant", content: "", toolCalls: [call("1")] },
        { role: "system", content: "be brief" },
        { role: "tool", toolCallId: "1", content: "c" },
        { role: "assistant", content: "", toolCalls: [call("3")] }
      ])

      assert.deepStrictEqual(
        messages.map((it: { role: string; tool_call_id?: string; content: unknown }) => [
          it.role,
          it.tool_call_id ?? null,
          it.content
        ]),
        [
          ["user", null, "go"],
          ["assistant", null, null],
          ["tool", "2", "b"],
          ["tool", "1", "There is no result."],
          ["user", null, "stop"],
          ["user", null, "Result of the tool call 1:\na"],
          ["assistant", null, null],
          ["tool", "1", "c"],
          ["system", null, "be brief"],
          ["assistant", null, null],
          ["tool", "3", "There is no result."]
        ]
      )
      assert.deepStrictEqual([...(changes ?? [])].sort(), [late, missing])
    })
  )

  it.effect("of calls in several answers in a row go with their own", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        { role: "assistant", content: "", toolCalls: [call("1")] },
        { role: "assistant", content: "", toolCalls: [call("2")] },
        { role: "tool", toolCallId: "2", content: "b" },
        { role: "tool", toolCallId: "1", content: "a" }
      ])

      assert.deepStrictEqual(
        messages.map((it: { role: string; tool_call_id?: string }) => it.tool_call_id ?? it.role),
        ["user", "assistant", "1", "assistant", "2"]
      )
      assert.isUndefined(changes)
    })
  )
})

describe("results of tools that are not told apart", () => {
  const call = (id: string) => ({ id, name: "f", arguments: {} })

  it.effect("belong to the last call with their id, whatever calls are beside it", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        { role: "assistant", content: "", toolCalls: [call("1")] },
        { role: "assistant", content: "", toolCalls: [call("1"), call("2")] },
        { role: "tool", toolCallId: "1", content: "a" },
        { role: "tool", toolCallId: "2", content: "b" }
      ])

      assert.deepStrictEqual(
        messages.flatMap((it: { role: string; content: unknown }) => (it.role === "tool" ? [it.content] : [])),
        ["There is no result.", "a", "b"]
      )
    })
  )

  it.effect("belong to calls with the same id in their order", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        { role: "assistant", content: "", toolCalls: [call("1"), call("1")] },
        { role: "tool", toolCallId: "1", content: "a" },
        { role: "tool", toolCallId: "1", content: "b" }
      ])

      assert.deepStrictEqual(
        messages.slice(2).map(({ content }: { content: unknown }) => content),
        ["a", "b"]
      )
    })
  )

  it.effect("come late with what they show", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        { role: "tool", toolCallId: "1", content: [{ type: "text", text: "a" }] },
        { role: "tool", toolCallId: "2", content: [image] }
      ])

      assert.deepStrictEqual(messages.slice(1), [
        { role: "user", content: "Result of the tool call 1:\na" },
        {
          role: "user",
          content: [
            { type: "text", text: "Result of the tool call 2:\n" },
            { type: "image_url", image_url: { url: "https://images.test/cat.png" } }
          ]
        }
      ])
    })
  )
})

it.effect("a text stands beside the calls that came with it", () =>
  Effect.gen(function* () {
    const [first, calls, ...results] = calling("1")

    const { messages } = yield* sentMessages(OpenAi, [first, { ...calls, content: "I look." }, ...results] as never)

    assert.strictEqual(messages[1].content, "I look.")
    assert.lengthOf(messages[1].tool_calls, 1)
  })
)

describe("names of tool calls", () => {
  it.effect("that a model has made up are sent as vendors take them", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        { role: "assistant", content: "", toolCalls: [{ id: "1", name: "functions.search" }] },
        { role: "tool", toolCallId: "1", content: "done" }
      ])

      assert.strictEqual(messages[1].tool_calls[0].function.name, "functions_search")
      assert.deepStrictEqual(changes, [
        "messages call the tool functions.search functions_search: vendors take no such name."
      ])
    })
  )
})

describe("turns", () => {
  const turns: ReadonlyArray<Message> = [
    { role: "user", content: "a" },
    { role: "user", content: [{ type: "text", text: "b" }] },
    { role: "system", content: "s" },
    { role: "user", content: [image] },
    { role: "assistant", content: "c" },
    { role: "assistant", content: "", toolCalls: [{ id: "1", name: "f", arguments: {} }] },
    { role: "tool", toolCallId: "1", content: "x" },
    { role: "user", content: "d" }
  ]

  it.effect.each([Vllm, LlamaCpp, DeepSeek])("are merged for $key, and system messages come first", (maker) =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(maker, { system: "S", messages: turns })

      assert.deepStrictEqual(
        messages.map(({ role, content }: { role: string; content: unknown }) => [role, content]),
        [
          ["system", "S\n\ns"],
          [
            "user",
            [
              { type: "text", text: "a\n\nb" },
              { type: "image_url", image_url: { url: "https://images.test/cat.png" } }
            ]
          ],
          ["assistant", "c"],
          ["tool", "x"],
          ["user", "d"]
        ]
      )
      assert.lengthOf(messages[2].tool_calls, 1)
      assert.deepStrictEqual(changes, [
        "messages have the system messages at their beginning: the vendor takes them nowhere else."
      ])
    })
  )

  it.effect("are merged without what is empty, and results of tools are not", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(Vllm, [
        { role: "user", content: "" },
        { role: "user", content: [image] },
        ...calling("1", "2").slice(1),
        { role: "user", content: "" },
        { role: "user", content: "" }
      ])

      assert.deepStrictEqual(
        messages.map(({ role, content }: { role: string; content: unknown }) => [role, content]),
        [
          ["user", [{ type: "image_url", image_url: { url: "https://images.test/cat.png" } }]],
          ["assistant", null],
          ["tool", "done"],
          ["tool", "done"],
          ["user", ""]
        ]
      )
    })
  )

  it.effect("of the system alone are where they were", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(Vllm, [
        { role: "system", content: "a" },
        { role: "system", content: "b" }
      ])

      assert.deepStrictEqual(messages, [{ role: "system", content: "a\n\nb" }])
      assert.isUndefined(changes)
    })
  )

  it.effect("of the user do not follow the result of a tool at Mistral, be it one or two", () =>
    Effect.gen(function* () {
      const more: Message = { role: "user", content: "more" }

      for (const ids of [["1"], ["1", "2"]]) {
        const { messages, changes } = yield* sentMessages(Mistral, [...calling(...ids), more])

        assert.deepStrictEqual(messages.slice(2 + ids.length), [{ role: "assistant", content: "OK" }, more])
        assert.include(changes?.join(), 'an assistant\'s "OK"')
      }
    })
  )

  it.effect("with calls stay apart from what follows", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(Vllm, [
        { role: "assistant", content: "", toolCalls: [{ id: "1", name: "f", arguments: {} }] },
        { role: "tool", toolCallId: "1", content: "done" },
        { role: "assistant", content: "well" }
      ])

      assert.lengthOf(messages, 3)
    })
  )

  it.effect("with arguments that are no JSON are not sent", () =>
    Effect.gen(function* () {
      const toolCalls = [{ id: "1", name: "f", arguments: { big: 1n } }]
      const error = yield* Effect.flip(ask(host(), { messages: [{ role: "assistant", content: "", toolCalls }] }))

      assert.strictEqual(error._tag, "InvalidRequestError")
      assert.include(error.message, "cannot be written as JSON")
    })
  )

  it.effect("are as they were for others", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(host(), turns)

      assert.lengthOf(messages, 8)
    })
  )
})

describe("an assistant message at the end", () => {
  const begun: ReadonlyArray<Message> = [
    { role: "user", content: "go" },
    { role: "assistant", content: "{" }
  ]

  it.effect("is a prefix for Mistral", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(Mistral, begun)

      assert.deepStrictEqual(messages, [
        { role: "user", content: "go" },
        { role: "assistant", content: "{", prefix: true }
      ])
    })
  )

  it.effect("is gone on from by vLLM when it is told to", () =>
    Effect.gen(function* () {
      const { body } = yield* sentMessages(Vllm, begun)
      const { body: other } = yield* sentMessages(Vllm, hello())

      assert.deepInclude(body, { continue_final_message: true, add_generation_prompt: false })
      assert.notProperty(other, "continue_final_message")
    })
  )

  it.effect("is a message for others", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(host(), begun)

      assert.deepStrictEqual(messages.at(-1), { role: "assistant", content: "{" })
    })
  )
})

describe("what a vendor wants back", () => {
  const details = [
    { type: "reasoning.text", text: "hm, well", signature: "sig", index: 0, format: "f" },
    { type: "reasoning.encrypted", data: "e1", index: 1 },
    { type: "reasoning.encrypted", data: "e2", index: 1 }
  ]
  const opaque = { wire: "openai-chat", provider: "openrouter", value: { reasoning_details: details } }
  const again = (provider: string): ReadonlyArray<Message> => [
    { role: "user", content: "go" },
    { role: "assistant", content: "gone", opaque: { ...opaque, provider } },
    { role: "user", content: "more" }
  ]

  it.effect("comes with the answer", () =>
    Effect.gen(function* () {
      const { answer } = yield* ask(OpenRouter, hello(), message({ content: "Hi.", reasoning_details: details }))

      assert.deepStrictEqual(answer.opaque, opaque)
    })
  )

  it.effect("is put together from the pieces of a stream", () =>
    Effect.gen(function* () {
      const piece = (it: object) => chunk({ content: "", reasoning_details: [it] })

      const drained = yield* stream(OpenRouter, hello(), [
        piece({ type: "reasoning.text", text: "hm,", index: 0, format: "f" }),
        piece({ type: "reasoning.text", text: " well", signature: null, index: 0, format: "f" }),
        piece({ type: "reasoning.text", signature: "sig", index: 0 }),
        piece({ type: "reasoning.encrypted", data: "e1", index: 1 }),
        piece({ type: "reasoning.encrypted", data: "e2", index: 1 }),
        chunk({ content: "Hi." }),
        chunk({}, "stop")
      ])

      assert.deepStrictEqual(only(drained, "End")[0]?.opaque, opaque)
    })
  )

  it.effect("may be a detail of no type", () =>
    Effect.gen(function* () {
      const drained = yield* stream(OpenRouter, hello(), [
        chunk({ content: "", reasoning_details: [{ text: "hm" }] }),
        chunk({ content: "Hi." }, "stop")
      ])

      assert.deepStrictEqual(only(drained, "End")[0]?.opaque?.value, { reasoning_details: [{ text: "hm" }] })
    })
  )

  it.effect("is put together from the pieces of a summary", () =>
    Effect.gen(function* () {
      const piece = (summary: string) =>
        chunk({ content: "", reasoning_details: [{ type: "reasoning.summary", summary, index: 0 }] })

      const drained = yield* stream(OpenRouter, hello(), [
        piece("hm,"),
        piece(" well"),
        chunk({ content: "Hi." }, "stop")
      ])

      assert.deepStrictEqual(only(drained, "End")[0]?.opaque?.value, {
        reasoning_details: [{ type: "reasoning.summary", summary: "hm, well", index: 0 }]
      })
    })
  )

  it.effect("goes back to who wrote it", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(OpenRouter, again("openrouter"))

      assert.deepStrictEqual(messages[1], { role: "assistant", content: "gone", reasoning_details: details })
      assert.isUndefined(changes)
    })
  )

  it.effect.each([
    ["another provider's", OpenRouter, "groq"],
    ["on a server that wants nothing back", host({ name: "openrouter" }), "openrouter"]
  ] as const)("does not go back: %s", ([, maker, provider]) =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(maker, again(provider))

      assert.deepStrictEqual(messages[1], { role: "assistant", content: "gone" })
      assert.deepStrictEqual(changes, ["messages lost the reasoning that only another provider can read."])
    })
  )

  it.effect("stands beside the tool calls at Gemini's endpoint", () =>
    Effect.gen(function* () {
      const gemini = host({ opaque: "extra_content" })
      const extra_content = { google: { thought_signature: "sig" } }
      const call = { id: "1", type: "function", function: { name: "f", arguments: "{}" } }

      const whole = yield* ask(gemini, hello(), message({ tool_calls: [{ ...call, extra_content }] }, "tool_calls"))
      const streamed = yield* stream(gemini, hello(), [
        chunk({ tool_calls: [{ ...call, extra_content }] }, "tool_calls")
      ])
      const { messages } = yield* sentMessages(gemini, [
        { role: "user", content: "go" },
        { role: "assistant", content: "", toolCalls: whole.answer.toolCalls, opaque: whole.answer.opaque },
        { role: "tool", toolCallId: "1", content: "done" }
      ])

      assert.deepStrictEqual(only(streamed, "End")[0]?.opaque, whole.answer.opaque)
      assert.deepStrictEqual(messages[1].tool_calls, [{ ...call, extra_content }])
    })
  )

  it.effect("is a stand-in for Gemini's signature where another vendor called", () =>
    Effect.gen(function* () {
      const gemini = (model: string): Maker => ({ make: (options) => Gemini.make({ ...options, model }) })

      const three = yield* sentMessages(gemini("gemini-3-flash"), calling("1", "2"))
      const two = yield* sentMessages(gemini("gemini-2.5-flash"), calling("1"))

      const [first, second] = three.messages[1].tool_calls
      const thought_signature = "skip_thought_signature_validator"
      assert.deepStrictEqual(first.extra_content, { google: { thought_signature } })
      assert.notProperty(second, "extra_content")
      assert.notInclude(JSON.stringify(two.messages), thought_signature)
    })
  )

  it.effect("stands beside calls with ids longer than itself", () =>
    Effect.gen(function* () {
      const id = "c".repeat(99)
      const call = { id, index: 0, type: "function", function: { name: "f", arguments: "{}" }, extra_content: {} }

      const streamed = yield* stream(host({ opaque: "extra_content" }), hello(), [
        chunk({ tool_calls: [call] }, "tool_calls")
      ])

      assert.deepStrictEqual(only(streamed, "End")[0]?.opaque?.value, { extra_content: { [id]: {} } })
    })
  )

  it.effect("stands beside calls without an id too", () =>
    Effect.gen(function* () {
      const gemini = host({ opaque: "extra_content" })
      const call = { id: "", type: "function", function: { name: "f", arguments: "{}" }, extra_content: { a: 1 } }

      const whole = yield* ask(gemini, hello(), message({ tool_calls: [call] }, "tool_calls"))
      const streamed = yield* stream(gemini, hello(), [chunk({ tool_calls: [{ ...call, index: 0 }] }, "tool_calls")])

      assert.deepStrictEqual(whole.answer.opaque?.value, { extra_content: { call_0: { a: 1 } } })
      assert.deepStrictEqual(only(streamed, "End")[0]?.opaque, whole.answer.opaque)
    })
  )
})

describe("DeepSeek's reasoning", () => {
  const thought = (content: string, reasoning: string, calls: boolean): Message => ({
    role: "assistant",
    content,
    ...(calls ? { toolCalls: [{ id: "1", name: "f", arguments: {} }] } : {}),
    opaque: { wire: "openai-chat", provider: "deepseek", value: { reasoning_content: reasoning } }
  })

  it.effect("comes with the answer, whole or streamed", () =>
    Effect.gen(function* () {
      const opaque = { wire: "openai-chat", provider: "deepseek", value: { reasoning_content: "hm, well" } }

      const { answer } = yield* ask(DeepSeek, hello(), message({ content: "Hi.", reasoning_content: "hm, well" }))
      const streamed = yield* stream(DeepSeek, hello(), [
        chunk({ content: null, reasoning_content: "hm, " }),
        chunk({ content: null, reasoning_content: "well" }),
        chunk({ content: "Hi.", reasoning_content: null }, "stop")
      ])

      assert.deepStrictEqual(answer.opaque, opaque)
      assert.strictEqual(answer.reasoning, "hm, well")
      assert.deepStrictEqual(only(streamed, "End")[0]?.opaque, opaque)
    })
  )

  it.effect("goes back where tools were called, and nowhere else", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(DeepSeek, [
        { role: "user", content: "hello" },
        thought("Hi.", "greet", false),
        { role: "user", content: "go" },
        thought("", "call", true),
        { role: "tool", toolCallId: "1", content: "done" },
        thought("Done.", "tell", false),
        { role: "user", content: "thanks" },
        thought("Welcome.", "bow", false),
        { role: "user", content: "more" }
      ])

      assert.deepStrictEqual(
        messages.flatMap((it: { role: string; reasoning_content?: string }) =>
          it.role === "assistant" ? [it.reasoning_content] : []
        ),
        [undefined, "call", "tell", undefined]
      )
      assert.isUndefined(changes)
    })
  )

  it.effect("of another vendor is empty where tools were called: DeepSeek refuses calls without any", () =>
    Effect.gen(function* () {
      const { messages } = yield* sentMessages(DeepSeek, calling("1"))

      assert.strictEqual(messages[1].reasoning_content, "")
    })
  )

  it.effect("does not go to others", () =>
    Effect.gen(function* () {
      const { messages, changes } = yield* sentMessages(OpenAi, [
        { role: "user", content: "go" },
        thought("Done.", "secret", false),
        { role: "user", content: "more" }
      ])

      assert.notInclude(JSON.stringify(messages), "secret")
      assert.deepStrictEqual(changes, ["messages lost the reasoning that only another provider can read."])
    })
  )
})
