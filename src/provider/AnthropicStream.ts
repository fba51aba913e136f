/** Anthropic's Messages: an answer in events. */
import * as AnthropicAnswer from "./AnthropicAnswer.ts"
import * as AnthropicAnswerText from "./AnthropicAnswerText.ts"
import type { Block, StreamEvent } from "./AnthropicEvent.ts"
import * as AnthropicThoughts from "./AnthropicThoughts.ts"
import type * as EventReader from "./EventReader.ts"
import * as Json from "./Json.ts"
import * as Reply from "./Reply.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** An answer on its way, with what this wire needs to know of it. */
interface Progress {
  readonly reading: AnthropicAnswer.Reading
  readonly draft: StreamDraft.StreamDraft
  readonly thoughts: AnthropicThoughts.Gatherer
  /** The answer that is the input of a tool, and the block that it comes in. */
  answer: { readonly index: unknown; readonly text: AnthropicAnswerText.AnswerText } | undefined
  /** Words where such an answer is to come: they are the answer if it does not come. */
  words: string
}

const begin = (reading: AnthropicAnswer.Reading, draft: StreamDraft.StreamDraft): Progress => {
  return { reading, draft, thoughts: AnthropicThoughts.gatherer(), answer: undefined, words: "" }
}

const take = (progress: Progress, event: StreamEvent): void => {
  const { type } = event
  if (type === "content_block_delta") takeDelta(progress, event)
  else if (type === "content_block_start") takeBlock(progress, event)
  else if (type === "message_start") takeStart(progress, event)
  else if (type === "message_delta") takeEnd(progress, event)
  else if (type === "message_stop") {
    finish(progress)
    progress.draft.isOver = true
  } else if (Reply.holdsError(event)) progress.draft.error = event
}

const takeStart = (progress: Progress, { message }: StreamEvent): void => {
  const { draft } = progress
  const id = Json.text(message?.id)
  if (draft.id !== undefined && id !== draft.id) startAgain(progress)
  draft.id = id
  draft.model ??= Json.text(message?.model)
  takeUsage(draft, message?.usage)
}

/** A second message within the stream stands instead of the first. Text that was handed out cannot be taken back. */
const startAgain = (progress: Progress): void => {
  const { draft } = progress
  draft.calls = []
  progress.thoughts.clear()
  progress.answer = undefined
  progress.words = ""
  if (draft.text !== "") draft.broken = "another message began within the first"
}

const takeDelta = (progress: Progress, { delta, index }: StreamEvent): void => {
  const { draft, thoughts, answer } = progress
  if (delta?.type === "text_delta") takeText(progress, delta.text, index)
  else if (delta?.type === "thinking_delta") {
    StreamDraft.keep(draft, thoughts.add(index, "thinking", delta.thinking))
    StreamDraft.addReasoning(draft, delta.thinking)
  } else if (delta?.type === "signature_delta") {
    StreamDraft.keep(draft, thoughts.add(index, "signature", delta.signature))
  } else if (delta?.type === "input_json_delta") {
    const piece = Json.text(delta.partial_json) ?? ""
    const call = draft.calls.findLast(({ key }) => key === index)
    if (answer !== undefined && answer.index === index) takeAnswer(draft, answer.text, piece)
    else if (call !== undefined) StreamDraft.addArguments(draft, call, piece)
  }
}

const takeAnswer = (draft: StreamDraft.StreamDraft, answer: AnthropicAnswerText.AnswerText, piece: string): void => {
  const text = answer.take(piece)
  StreamDraft.keep(draft, piece.length - text.length)
  StreamDraft.addText(draft, text)
}

const takeText = (progress: Progress, text: unknown, index: unknown): void => {
  const { draft, thoughts, reading } = progress
  thoughts.add(index, "text", text)
  if (reading.answerTool === undefined) StreamDraft.addText(draft, text)
  else {
    const words = Json.text(text) ?? ""
    progress.words += words
    StreamDraft.keep(draft, words.length)
  }
}

const takeBlock = (progress: Progress, { content_block: block, index }: StreamEvent): void => {
  const { draft, thoughts } = progress
  StreamDraft.keep(draft, thoughts.begin(index, block))
  if (block?.type === "text") takeText(progress, block.text, index)
  else if (block?.type === "thinking") StreamDraft.addReasoning(draft, block.thinking)
  else if (block?.type === "tool_use") takeCall(progress, block, index)
}

const takeCall = (progress: Progress, block: Block, index: unknown): void => {
  const { draft, reading, answer } = progress
  // Anthropic sends an empty input, and the arguments after it.
  const isGiven = Json.isRecord(block.input) && Object.keys(block.input).length > 0
  const given = isGiven ? JSON.stringify(block.input) : ""
  if (reading.answerTool?.name !== block.name) {
    const call = StreamDraft.addCall(draft, Json.number(index))
    call.id = Json.text(block.id)
    call.name = Json.text(block.name)
    StreamDraft.addArguments(draft, call, given)
  } else if (answer === undefined) {
    const text = AnthropicAnswerText.make(reading.answerTool?.key)
    progress.answer = { index, text }
    takeAnswer(draft, text, given)
  }
}

const takeEnd = (progress: Progress, { delta, usage }: StreamEvent): void => {
  const { draft, answer } = progress
  takeUsage(draft, usage)
  const stopped = Json.text(delta?.stop_reason)
  if (stopped === undefined) return
  finish(progress)
  draft.stopped ??= answer === undefined ? stopped : AnthropicAnswer.stoppedAfterAnswer(stopped)
  draft.refusal ??= AnthropicAnswer.refusalOf(draft.stopped, delta?.stop_details)
}

/** All of the content is there. */
const finish = (progress: Progress): void => {
  const { draft, thoughts, reading, answer, words } = progress
  draft.opaque = AnthropicThoughts.opaqueOf(thoughts.blocks(), reading)
  StreamDraft.addText(draft, answer === undefined ? words : answer.text.end())
  progress.words = ""
}

/** Usage is cumulative: what is said later replaces, what is left out stays. */
const takeUsage = (draft: StreamDraft.StreamDraft, usage: unknown): void => {
  draft.usage = { ...(draft.usage as object | undefined), ...AnthropicAnswer.countsIn(usage) }
}

/** How the events of one answer are read. */
export const make = (reading: AnthropicAnswer.Reading, changes: ReadonlyArray<string>): EventReader.Wire => {
  let progress: Progress | undefined
  return {
    terminator: "message_stop",
    take: (draft, event) => {
      progress = progress?.draft === draft ? progress : begin(reading, draft)
      take(progress, event as StreamEvent)
    },
    usage: AnthropicAnswer.usageOf,
    answer: (reply) => AnthropicAnswer.read(reply, reading),
    changes
  }
}
