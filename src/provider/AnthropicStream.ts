/** Anthropic's Messages: an answer in events. */
import * as AnthropicAnswer from "./AnthropicAnswer.ts"
import type * as EventReader from "./EventReader.ts"
import * as Json from "./Json.ts"
import * as Reply from "./Reply.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** An event as far as it is looked at. Nobody promises the shape: what does not fit throws, and is malformed. */
interface StreamEvent {
  readonly type?: unknown
  readonly index?: unknown
  readonly message?: { readonly id?: unknown; readonly model?: unknown; readonly usage?: unknown } | null
  readonly content_block?: Block | null
  readonly delta?: Delta | null
  readonly usage?: unknown
}

interface Block {
  readonly type?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
  readonly id?: unknown
  readonly name?: unknown
  readonly input?: unknown
}

interface Delta {
  readonly type?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
  readonly partial_json?: unknown
  readonly stop_reason?: unknown
  readonly stop_details?: unknown
}

const take = (draft: StreamDraft.StreamDraft, json: unknown): void => {
  const event = json as StreamEvent
  const { type } = event
  if (type === "content_block_delta") takeDelta(draft, event)
  else if (type === "content_block_start") takeBlock(draft, event)
  else if (type === "message_start") takeStart(draft, event)
  else if (type === "message_delta") takeEnd(draft, event)
  else if (type === "message_stop") draft.isOver = true
  else if (Reply.holdsError(event)) draft.error = event
}

const takeStart = (draft: StreamDraft.StreamDraft, { message }: StreamEvent): void => {
  const id = Json.text(message?.id)
  if (draft.id !== undefined && id !== draft.id) startAgain(draft)
  draft.id = id
  draft.model ??= Json.text(message?.model)
  takeUsage(draft, message?.usage)
}

/** A second message within the stream stands instead of the first. Text that was handed out cannot be taken back. */
const startAgain = (draft: StreamDraft.StreamDraft): void => {
  draft.calls = []
  if (draft.text !== "") draft.broken = "another message began within the first"
}

const takeDelta = (draft: StreamDraft.StreamDraft, { delta, index }: StreamEvent): void => {
  if (delta?.type === "text_delta") StreamDraft.addText(draft, delta.text)
  else if (delta?.type === "thinking_delta") StreamDraft.addReasoning(draft, delta.thinking)
  else if (delta?.type === "input_json_delta") {
    const call = draft.calls.findLast(({ key }) => key === index)
    if (call !== undefined) StreamDraft.addArguments(draft, call, Json.text(delta.partial_json) ?? "")
  }
}

const takeBlock = (draft: StreamDraft.StreamDraft, { content_block: block, index }: StreamEvent): void => {
  if (block?.type === "text") StreamDraft.addText(draft, block.text)
  else if (block?.type === "thinking") StreamDraft.addReasoning(draft, block.thinking)
  else if (block?.type === "tool_use") {
    const call = StreamDraft.addCall(draft, Json.number(index))
    call.id = Json.text(block.id)
    call.name = Json.text(block.name)
    // Anthropic sends an empty input, and the arguments after it.
    const isGiven = Json.isRecord(block.input) && Object.keys(block.input).length > 0
    StreamDraft.addArguments(draft, call, isGiven ? JSON.stringify(block.input) : "")
  }
}

const takeEnd = (draft: StreamDraft.StreamDraft, { delta, usage }: StreamEvent): void => {
  takeUsage(draft, usage)
  draft.stopped ??= Json.text(delta?.stop_reason)
  draft.refusal ??= AnthropicAnswer.refusalOf(draft.stopped, delta?.stop_details)
}

/** Usage is cumulative: what is said later replaces, what is left out stays. */
const takeUsage = (draft: StreamDraft.StreamDraft, usage: unknown): void => {
  const said = Object.entries(Json.isRecord(usage) ? usage : {}).filter(([, value]) => value !== null)
  draft.usage = { ...(draft.usage as object | undefined), ...Object.fromEntries(said) }
}

/** How the events of this wire are read. */
export const wire: EventReader.Wire = {
  terminator: "message_stop",
  take,
  usage: AnthropicAnswer.usageOf,
  answer: AnthropicAnswer.read
}
