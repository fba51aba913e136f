/** What is gathered while an answer streams in: no more than its end needs. */
import { Either } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import type { ProviderError } from "../model/LlmError.ts"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import * as Answer from "./Answer.ts"
import * as Reply from "./Reply.ts"

/** A tool call on its way. */
export interface Call {
  /** Which call of the answer, from 0. */
  readonly index: number
  /** The wire's own number for it, where it has one. */
  readonly key: number | undefined
  /** The wire's id, which may come late or never. */
  id: string | undefined
  name: string | undefined
  /** The text of the arguments so far. */
  written: string
  /** The arguments so far, where the wire sends them value by value. */
  values: unknown
  /** The id that it was first handed out with. */
  shownId: string | undefined
}

/** An answer on its way. */
export interface StreamDraft {
  /** What has come since the parts were last taken. */
  parts: Array<StreamPart>
  /** The beginning of the text, for an error that quotes it; the whole is not kept here. */
  text: string
  /** The beginning of what the model said instead of an answer. */
  refusal: string | undefined
  /** Whether the answer has begun. */
  isBegun: boolean
  /** The vendor's id of the answer. */
  id: string | undefined
  /** The vendor's id of the exchange, where the answer says it and no header does. */
  requestId: string | undefined
  model: string | undefined
  calls: ReadonlyArray<Call>
  /** How many calls there have been, those that were dropped included. */
  callCount: number
  /** The vendor's word for why it did not take the prompt. */
  blockedPrompt: string | undefined
  /** The vendor's first word for why the model stopped. */
  stopped: string | undefined
  /** How much is kept until the end, in characters: arguments of calls, and what the vendor wants back. */
  kept: number
  /** The vendor's last word on usage. */
  usage: unknown
  /** What the vendor wants back with the answer. */
  opaque: OpaqueReasoning | undefined
  /** Whether the vendor has said that nothing follows. */
  isOver: boolean
  /** The event that is an error; nothing is taken in after it. */
  error: unknown
  /** Why no answer can come of it any more; nothing is taken in after it. */
  broken: string | undefined
}

/** A draft of nothing. */
export const make = (): StreamDraft => ({
  parts: [],
  text: "",
  refusal: undefined,
  isBegun: false,
  id: undefined,
  requestId: undefined,
  model: undefined,
  calls: [],
  callCount: 0,
  blockedPrompt: undefined,
  stopped: undefined,
  kept: 0,
  usage: undefined,
  opaque: undefined,
  isOver: false,
  error: undefined,
  broken: undefined
})

/** Far more than an error quotes, in characters: a key at the cut is still whole, so that it is found. */
const maxKept = 4096

/** Takes in a piece of text. */
export const addText = (draft: StreamDraft, text: unknown): void => {
  if (typeof text !== "string" || text === "") return
  if (draft.text.length < maxKept) draft.text += text
  handOut(draft, { _tag: "TextDelta", text })
}

/** Takes in a piece of reasoning. */
export const addReasoning = (draft: StreamDraft, text: unknown): void => {
  if (typeof text === "string" && text !== "") handOut(draft, { _tag: "ReasoningDelta", text })
}

/** Takes in a piece of a refusal. */
export const addRefusal = (draft: StreamDraft, text: unknown): void => {
  if (typeof text !== "string" || text === "") return
  draft.isBegun = true
  if (draft.refusal === undefined) draft.refusal = text
  else if (draft.refusal.length < maxKept) draft.refusal += text
}

/** Counts what is kept until the end; how much that may be is known where the body is read. */
export const keep = (draft: StreamDraft, length: number): void => {
  draft.kept += length
}

/** How many tool calls an answer may have. */
export const maxCalls = 1000

/** How long the arguments of a call may be, in characters: 16 MiB. */
export const maxArguments = 16_777_216

/** Begins a tool call. One too many is kept by nobody. */
export const addCall = (draft: StreamDraft, key: number | undefined): Call => {
  const index = draft.callCount++
  const call: Call = { index, key, id: undefined, name: undefined, written: "", values: undefined, shownId: undefined }
  if (draft.callCount > maxCalls) draft.broken = `the answer has more than ${maxCalls} tool calls`
  else draft.calls = [...draft.calls, call]
  return call
}

/** Takes in a piece of a call's arguments. What comes before the name waits for it. */
export const addArguments = (draft: StreamDraft, call: Call, piece: string): void => {
  call.written += piece
  keep(draft, piece.length)
  if (call.written.length > maxArguments) draft.broken = `a tool call is longer than ${maxArguments} characters`
  if (call.name === undefined || (call.shownId !== undefined && piece === "")) return
  const written = call.shownId === undefined ? call.written : piece
  handOut(draft, { _tag: "ToolCallDelta", index: call.index, id: idOf(call), name: call.name, arguments: written })
}

const handOut = (draft: StreamDraft, part: StreamPart): void => {
  draft.isBegun = true
  draft.parts.push(part)
}

/**
 * The last parts of the answer that a draft is: its tool calls and its end. Or the error that it is instead. What was
 * used is the head's to say.
 */
export const settle = (
  head: Reply.Head,
  draft: StreamDraft,
  changes: ReadonlyArray<string> | undefined
): Either.Either<ReadonlyArray<StreamPart>, ProviderError> =>
  Either.map(
    Answer.withChanges(
      Answer.settle(Reply.named(head, draft.requestId), {
        text: draft.text,
        model: draft.model,
        toolCalls: draft.calls.flatMap(wholeCall),
        reasoning: "",
        refusal: draft.refusal,
        blockedPrompt: draft.blockedPrompt,
        stopped: draft.stopped,
        opaque: draft.opaque
      }),
      changes
    ),
    endOf
  )

/** The parts of an answer that came in one piece. */
export const partsOf = (answer: ProviderAnswer): ReadonlyArray<StreamPart> => {
  const { text, reasoning = "" } = answer
  return [
    ...(reasoning === "" ? [] : [{ _tag: "ReasoningDelta", text: reasoning } as const]),
    ...(text === "" ? [] : [{ _tag: "TextDelta", text } as const]),
    ...endOf(answer)
  ]
}

const endOf = ({ text: _text, reasoning: _reasoning, toolCalls = [], ...rest }: ProviderAnswer): Array<StreamPart> => [
  ...toolCalls.map((call) => ({ _tag: "ToolCall", ...call }) as const),
  { _tag: "End", ...rest }
]

/** A call without an id gets one; what was handed out once does not change. */
const idOf = (call: Call): string => {
  call.shownId ??= call.id ?? `call_${call.index}`
  return call.shownId
}

const wholeCall = (call: Call): ReadonlyArray<ToolCall> =>
  call.name === undefined ? [] : [Answer.toolCall(idOf(call), call.name, call.written)]
