/** A tool whose arguments are the answer, for vendors that keep to a schema only there. */
import { Chunk, Effect, Either, Stream } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { FinishReason, ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import type * as EventStream from "./EventStream.ts"
import * as Json from "./Json.ts"

/** An answer with the arguments of that tool as its text. */
export const answer = (read: ProviderAnswer, tool: string | undefined): ProviderAnswer => {
  const { toolCalls = [], finishReason } = read
  const call = toolCalls.find(({ name }) => name === tool)
  if (call === undefined) return read
  const others = toolCalls.filter(({ name }) => name !== tool)
  return { ...read, text: textOf(call), toolCalls: others, finishReason: reasonOf(finishReason, others.length > 0) }
}

/** The parts of an answer, with pieces of the arguments of that tool as pieces of its text. */
export const parts = <E, R>(
  opening: Effect.Effect<EventStream.Parts, E, R>,
  tool: string | undefined
): Effect.Effect<EventStream.Parts, E, R> =>
  tool === undefined
    ? opening
    : Effect.map(opening, (from) =>
        Stream.suspend(() => {
          const step = stepper(tool)
          return Stream.mapChunks(
            from,
            Chunk.flatMap((part) => Chunk.unsafeFromArray(step(part)))
          )
        })
      )

/** What is written beside the arguments is no part of the answer, so text waits until it is clear that none come. */
const stepper = (tool: string): ((part: StreamPart) => ReadonlyArray<StreamPart>) => {
  let waiting: ReadonlyArray<StreamPart> = []
  /** The number of the call that is the answer. */
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
        if (index === undefined && !isWritten) waiting = [...waiting, part]
        return []
      case "ToolCallDelta":
        if (part.name !== tool) return [part]
        index ??= part.index
        return part.index === index ? write(part.arguments) : []
      case "ToolCall":
        if (part.name === tool) return isWritten ? [] : write(textOf(part))
        hasCalls = true
        return [part]
      case "End":
        return [...waiting, isWritten ? { ...part, finishReason: reasonOf(part.finishReason, hasCalls) } : part]
      default:
        return [part]
    }
  }
}

/** What the model wrote, or JSON that says the same; what is nested too deep to be written says nothing. */
const textOf = (call: ToolCall): string =>
  call.rawArguments ?? Either.getOrElse(Json.write(call.arguments ?? {}), () => "")

const reasonOf = (told: FinishReason | undefined, hasCalls: boolean): FinishReason =>
  told === undefined || (told === "tool-calls" && !hasCalls) ? "stop" : told
