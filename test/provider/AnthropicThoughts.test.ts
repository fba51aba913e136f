import type { MessageCreateParamsNonStreaming } from "@anthropic-ai/sdk/resources/messages"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import type { AssistantMessage, Message } from "../../src/model/Message.ts"
import { asked, events, message, type Own, said, streamed, text, user } from "./anthropic.ts"
import { type Drained, only, textsOf } from "./streaming.ts"

const thought = (thinking: string, signature: string) => ({ type: "thinking", thinking, signature }) as const
const hidden = { type: "redacted_thinking", data: "sealed" } as const
const call = (id: string) => ({ type: "tool_use", id, name: "f", input: { x: 1 } }) as const

const asMessage = ({ text: content, toolCalls, opaque }: ProviderAnswer): AssistantMessage => ({
  role: "assistant",
  content,
  toolCalls,
  opaque
})

const results = ({ toolCalls = [] }: Pick<AssistantMessage, "toolCalls">): ReadonlyArray<Message> =>
  toolCalls.map(({ id }) => ({ role: "tool", toolCallId: id, content: "1" }))

const reasoning = { effort: "low" } as const

/** The request after an answer. */
const next = (answer: AssistantMessage, own: Own = {}) =>
  asked({ ...said(user(), answer, ...results(answer)), reasoning }, own)

const answerOf = (result: Drained): ProviderAnswer => ({
  text: textsOf(result).join(""),
  toolCalls: only(result, "ToolCall").map(({ _tag, ...call }) => call),
  opaque: only(result, "End")[0]?.opaque
})

describe("thoughts of an answer", () => {
  it.effect("go back first in the next request, with their signatures, and the model thinks on", () =>
    Effect.gen(function* () {
      const content = [thought("hm", "sig"), hidden, text("Let me see."), call("toolu_1")]
      const { answer } = yield* asked(said(user()), {}, message(content, "tool_use"))

      const { body, answer: last } = yield* next(asMessage(answer))

      assert.strictEqual(answer.opaque?.provider, "anthropic")
      const expected: MessageCreateParamsNonStreaming["messages"] = [
        { role: "user", content: "hello" },
        { role: "assistant", content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "1" }] }
      ]
      assert.deepStrictEqual(body.messages, expected as unknown)
      assert.strictEqual(body.thinking.type, "enabled")
      assert.strictEqual(last.changes, undefined)
    })
  )

  it.effect("go back out of a stream too", () =>
    Effect.gen(function* () {
      const { result } = yield* streamed(
        said(user()),
        events(
          [
            {
              block: { type: "thinking", thinking: "", signature: "" },
              deltas: [
                { type: "thinking_delta", thinking: "h" },
                { type: "thinking_delta", thinking: "m" },
                { type: "signature_delta", signature: "sig" }
              ]
            },
            { block: hidden },
            { block: text(""), deltas: [{ type: "text_delta", text: "Let me see." }] },
            {
              block: { ...call("toolu_1"), input: {} },
              deltas: [{ type: "input_json_delta", partial_json: '{"x":1}' }]
            }
          ],
          "tool_use"
        )
      )

      const { body } = yield* next(asMessage(answerOf(result)))

      assert.deepStrictEqual(body.messages[1].content, [
        thought("hm", "sig"),
        hidden,
        text("Let me see."),
        call("toolu_1")
      ])
    })
  )

  const between = [thought("a", "1"), text("One."), call("t1"), thought("b", "2"), text("Two."), call("t2")]

  it.effect("go back where they stood, between texts and calls", () =>
    Effect.gen(function* () {
      const { answer } = yield* asked(said(user()), {}, message(between, "tool_use"))
      const { result } = yield* streamed(
        said(user()),
        events(
          between.map((block) => ({ block })),
          "tool_use"
        )
      )

      for (const kept of [answer, answerOf(result)]) {
        assert.deepStrictEqual((yield* next(asMessage(kept))).body.messages[1].content, between)
      }
    })
  )

  it.effect("come first where the answer has been altered", () =>
    Effect.gen(function* () {
      const { answer } = yield* asked(said(user()), {}, message(between, "tool_use"))
      const whole = asMessage(answer)
      const altered: ReadonlyArray<AssistantMessage> = [
        { ...whole, content: "1" },
        { ...whole, toolCalls: whole.toolCalls?.slice(1) }
      ]

      for (const one of altered) {
        const { content } = (yield* next(one)).body.messages[1]
        assert.deepStrictEqual(content.slice(0, 2), [thought("a", "1"), thought("b", "2")])
        assert.strictEqual(content.length, 3 + (one.toolCalls?.length ?? 0))
      }
    })
  )

  it.effect("without a signature are nothing to send back", () =>
    Effect.gen(function* () {
      const { answer } = yield* asked(said(user()), {}, message([{ type: "thinking", thinking: "hm" }, text("Hi.")]))

      assert.strictEqual(answer.reasoning, "hm")
      assert.notProperty(answer, "opaque")
    })
  )

  it.effect("of a message that was begun anew are dropped", () =>
    Effect.gen(function* () {
      const again = events([{ block: thought("new", "2") }, { block: text("Hi.") }]).map((it) =>
        it.type === "message_start" ? { ...it, message: { id: "msg_2", model: "claude-1" } } : it
      )
      const { result } = yield* streamed(said(user()), [
        ...events([{ block: thought("old", "1") }]).slice(0, 2),
        ...again
      ])

      const { body } = yield* next(asMessage(answerOf(result)))

      assert.deepStrictEqual(body.messages[1].content, [thought("new", "2"), text("Hi.")])
    })
  )
})

describe("thoughts of others", () => {
  const foreign: ReadonlyArray<[string, AssistantMessage["opaque"], Own]> = [
    [
      "another vendor",
      { wire: "openai-chat", provider: "openai", value: { family: "claude", blocks: [thought("a", "1")] } },
      {}
    ],
    ["Gemini", { wire: "gemini", provider: "gemini", value: [{ thoughtSignature: "s" }] }, {}],
    [
      "another family on this wire",
      {
        wire: "anthropic-messages",
        provider: "deepseek",
        value: { family: "deepseek-chat", blocks: [thought("a", "1")] }
      },
      {}
    ],
    ["nobody", { wire: "anthropic-messages", provider: "anthropic", value: "?" }, {}]
  ]

  it.effect.each(foreign)("are left out, and that is said: %s", ([, opaque, own]) =>
    Effect.gen(function* () {
      const { body, answer } = yield* next({ role: "assistant", content: "Hi.", opaque }, own)

      assert.deepStrictEqual(body.messages[1], { role: "assistant", content: "Hi." })
      assert.include(answer.changes?.join(), "reasoning that only another model can read")
    })
  )

  it.effect("are those of the family: any Claude reads any Claude's", () =>
    Effect.gen(function* () {
      const content = [thought("hm", "sig"), text("Hi.")]
      const { answer } = yield* asked(said(user()), { model: "claude-opus-4-5", name: "eu" }, message(content))

      const { body } = yield* next(asMessage(answer), { model: "anthropic/claude-sonnet-4.5", name: "us" })

      assert.deepStrictEqual(body.messages[1].content, content)
    })
  )
})

describe("a model with a budget to think", () => {
  const foreign = { id: "x", name: "f", arguments: {} }
  const other: AssistantMessage = { role: "assistant", content: "", toolCalls: [foreign] }
  const given: Message = { role: "tool", toolCallId: "x", content: "1" }

  it.effect.each([
    ["goes on without thoughts from calls that another vendor made", [user(), other, given], undefined],
    [
      "thinks again once the user has said something",
      [user(), other, given, { role: "assistant", content: "a" }, user()],
      "enabled"
    ],
    [
      "goes on without thoughts from an answer that was begun for it",
      [user(), { role: "assistant", content: "a" }],
      undefined
    ]
  ] as ReadonlyArray<[string, ReadonlyArray<Message>, string | undefined]>)("%s", ([, messages, type]) =>
    Effect.gen(function* () {
      const { body, answer } = yield* asked({ ...said(...messages), reasoning })

      assert.strictEqual(body.thinking?.type, type)
      assert.strictEqual(answer.changes?.join().includes("reasoning was left out") ?? false, type === undefined)
    })
  )
})
