/** What an answer of OpenAI's wire still lacks when it is read: what its request had to give up, and what was asked of it. */
import { Chunk, Effect, Stream } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { FinishReason, ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import type * as EventStream from "./EventStream.ts"
import type { Written } from "./OpenAiRequest.ts"

/** Reads what the vendor wants back once the answer has come. */
export type Opaque = () => OpaqueReasoning | undefined

type Ending = Pick<ProviderAnswer, "changes" | "opaque">

const endingOf = ({ changes }: Written, opaque: Opaque | undefined): Ending => {
  const sentBack = opaque?.()
  return { ...(changes.length === 0 ? {} : { changes }), ...(sentBack === undefined ? {} : { opaque: sentBack }) }
}

/** A whole answer, finished. The arguments of the tool that is the answer become its text. */
export const answer = (read: ProviderAnswer, written: Written, opaque: Opaque | undefined): ProviderAnswer => {
  const { toolCalls = [], finishReason } = read
  const call = toolCalls.find(({ name }) => name === written.answerTool)
  const ending = endingOf(written, opaque)
  if (call === undefined) return { ...read, ...ending }
  const others = toolCalls.filter(({ name }) => name !== written.answerTool)
  return {
    ...read,
    text: textOf(call),
    toolCalls: others,
    finishReason: reasonOf(finishReason, others.length > 0),
    ...ending
  }
}

/** The parts of an answer, finished. */
export const parts = (from: EventStream.Parts, written: Written, opaque: Opaque | undefined): EventStream.Parts =>
  Stream.suspend(() => {
    const isAnswerTool = answerTool(written.answerTool)
    const step = (part: StreamPart): ReadonlyArray<StreamPart> =>
      isAnswerTool(part).map((it) => (it._tag === "End" ? { ...it, ...endingOf(written, opaque) } : it))
    return Stream.mapChunks(from, (chunk) => Chunk.flatMap(chunk, (part) => Chunk.unsafeFromArray(step(part))))
  })

/** The parts of an opening stream, finished; as they are where there is nothing to finish. */
export const opening = <E, R>(
  from: Effect.Effect<EventStream.Parts, E, R>,
  written: Written,
  opaque: Opaque | undefined
): Effect.Effect<EventStream.Parts, E, R> =>
  written.answerTool === undefined && written.changes.length === 0 && opaque === undefined
    ? from
    : Effect.map(from, (it) => parts(it, written, opaque))

/**
 * Makes the pieces of the answering tool's arguments pieces of text. What is written beside them is no part of the
 * answer, so text waits until it is clear that the tool is not called.
 */
const answerTool = (tool: string | undefined): ((part: StreamPart) => ReadonlyArray<StreamPart>) => {
  if (tool === undefined) return (part) => [part]
  let waiting: Array<StreamPart> = []
  /** The number of the call that is the answer, of which pieces came. */
  let index: number | undefined
  let isWritten = false
  let hasCalls = false
  const write = (text: string): ReadonlyArray<StreamPart> => {
    waiting = []
    if (text === "") return []
    isWritten = true
    return [{ _tag: "TextDelta", text }]
  }
  return (part) => {
    switch (part._tag) {
      case "TextDelta":
        if (index === undefined && !isWritten) waiting.push(part)
        return []
      case "ToolCallDelta":
        if (part.name !== tool) return [part]
        index ??= part.index
        return part.index === index ? write(part.arguments) : []
      case "ToolCall":
        if (part.name === tool) return isWritten ? [] : write(textOf(part))
        hasCalls = true
        return [part]
      case "End": {
        const { finishReason } = part
        const end = isWritten && finishReason !== undefined ? { finishReason: reasonOf(finishReason, hasCalls) } : {}
        return [...waiting, { ...part, ...end }]
      }
      default:
        return [part]
    }
  }
}

/** What the model wrote, or JSON that says the same. */
const textOf = (call: ToolCall): string => call.rawArguments ?? JSON.stringify(call.arguments ?? {})

const reasonOf = (told: FinishReason | undefined, hasCalls: boolean): FinishReason =>
  told === undefined || (told === "tool-calls" && !hasCalls) ? "stop" : told
