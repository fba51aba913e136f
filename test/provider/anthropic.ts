/** What Anthropic is sent, and what it answers. */
import { Effect } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import type { Message } from "../../src/model/Message.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { answering } from "./fakeClient.ts"
import { bodyIn, drained, event } from "./streaming.ts"

/** A provider's own options, without its model and its key. */
export type Own = Partial<Parameters<typeof Anthropic.make>[0]>

/** A whole message of the model. */
export const message = (content: ReadonlyArray<object>, stop_reason = "end_turn") => ({
  type: "message",
  model: "claude-1",
  content,
  stop_reason
})

/** A block of text. */
export const text = (words: string) => ({ type: "text", text: words }) as const

const hi = message([text("Hi.")])

/** What becomes of a request that is answered so. */
export const asked = Effect.fn(function* (request: ChatRequest, own: Own = {}, reply: object = hi) {
  const { layer, sent } = answering({ body: JSON.stringify(reply) })
  const provider = yield* Anthropic.make({ model: "claude", apiKey: "fx-key", ...own }).pipe(
    Effect.provide(layer),
    Effect.orDie
  )
  const answer = (yield* provider.complete(request)) as ProviderAnswer
  return { answer, body: sent[0]?.body, provider }
})

/** An event of a stream. */
export interface Event {
  readonly type: string
  readonly [key: string]: unknown
}

/** What becomes of a request that is answered with these events. */
export const streamed = Effect.fn(function* (request: ChatRequest, events: ReadonlyArray<Event>, own: Own = {}) {
  const body = bodyIn([events.map((data) => event(data, data.type)).join("")])
  const { layer, sent } = answering({ headers: { "content-type": "text/event-stream" }, body })
  const provider = yield* Anthropic.make({ model: "claude", apiKey: "fx-key", ...own }).pipe(
    Effect.provide(layer),
    Effect.orDie
  )
  return { result: yield* drained(provider, request), body: sent[0]?.body }
})

/** The events of a message of these blocks, each with its deltas. */
export const events = (
  blocks: ReadonlyArray<{ readonly block: object; readonly deltas?: ReadonlyArray<object> }>,
  stop_reason = "end_turn"
): ReadonlyArray<Event> => [
  { type: "message_start", message: { id: "msg_1", model: "claude-1", usage: { input_tokens: 1, output_tokens: 1 } } },
  ...blocks.flatMap(({ block, deltas = [] }, index) => [
    { type: "content_block_start", index, content_block: block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index }
  ]),
  { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 9 } },
  { type: "message_stop" }
]

/** A conversation and nothing else. */
export const said = (...messages: ReadonlyArray<Message>): ChatRequest => ({ messages })

/** Something of the user. */
export const user = (content: Message["content"] = "hello"): Message => ({ role: "user", content })

interface WireTurn {
  readonly role: string
  readonly content: string | ReadonlyArray<Record<string, unknown>>
}

/** What Anthropic would refuse of a conversation, in its own order of rules. */
export const refusals = (turns: ReadonlyArray<WireTurn>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const blocksOf = (turn: WireTurn | undefined) =>
    typeof turn?.content === "string" ? [text(turn.content)] : (turn?.content ?? [])
  const idsOf = (turn: WireTurn | undefined, type: string, key: string) =>
    blocksOf(turn).flatMap((block) => (block.type === type ? [String((block as Record<string, unknown>)[key])] : []))
  if (turns.length === 0) problems.push("no messages")
  for (const [index, turn] of turns.entries()) {
    const blocks = blocksOf(turn)
    const types = blocks.map(({ type }) => type)
    if (turn.role === turns[index + 1]?.role) problems.push(`turns ${index} and ${index + 1} are of one role`)
    if (blocks.length === 0) problems.push(`turn ${index} is empty`)
    if (blocks.some((block) => block.type === "text" && String(block.text).trim() === "")) {
      problems.push(`turn ${index} has a blank text`)
    }
    if (types.lastIndexOf("tool_result") >= types.filter((type) => type === "tool_result").length) {
      problems.push(`turn ${index} has results that do not stand first`)
    }
    const results = idsOf(turn, "tool_result", "tool_use_id")
    const calls = index === 0 ? [] : idsOf(turns[index - 1], "tool_use", "id")
    if ([...results].sort().join() !== [...calls].sort().join())
      problems.push(`turn ${index} does not answer the calls`)
  }
  const ids = turns.flatMap((turn) => idsOf(turn, "tool_use", "id"))
  if (new Set(ids).size < ids.length) problems.push("ids are there twice")
  if (ids.some((id) => !/^[a-zA-Z0-9_-]+$/.test(id))) problems.push("an id has other letters")
  const last = turns.at(-1)
  if (idsOf(last, "tool_use", "id").length > 0) problems.push("the last calls have no results")
  if (last?.role === "assistant" && /\s$/.test(String(blocksOf(last).at(-1)?.text ?? ""))) {
    problems.push("the last answer ends with blanks")
  }
  return problems
}
