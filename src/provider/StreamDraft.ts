/** What is gathered while an answer streams in: no more than the end of it needs. */
import { Either } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import type { ProviderError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Json from "./Json.ts"
import type * as Reply from "./Reply.ts"

/** A tool call on its way. */
export interface Call {
  /** Which call of the answer, from 0. */
  readonly index: number
  /** What the wire calls it by until it is whole; `undefined` where it does not. */
  readonly key: number | undefined
  id: string | undefined
  name: string | undefined
  /** The text of the arguments so far. */
  written: string
}

/** An answer on its way. */
export interface StreamDraft {
  /** What has come since the parts were last taken. */
  parts: Array<StreamPart>
  /** The beginning of the text, for an error that quotes it; the whole of it is the caller's to keep. */
  text: string
  /** The beginning of what the model said instead of an answer. */
  refusal: string | undefined
  model: string | undefined
  calls: ReadonlyArray<Call>
  /** How many calls there were, those that were dropped included. */
  callCount: number
  /** The vendor's first word for why the model stopped. */
  stopped: string | undefined
  /** The vendor's last word on usage. */
  usage: unknown
  /** Whether the vendor has said that nothing follows. */
  isOver: boolean
  /** The event that is an error; nothing is taken in after it. */
  error: unknown
}

/** A draft of nothing. */
export const make = (): StreamDraft => ({
  parts: [],
  text: "",
  refusal: undefined,
  model: undefined,
  calls: [],
  callCount: 0,
  stopped: undefined,
  usage: undefined,
  isOver: false,
  error: undefined
})

/** An error quotes no more than this, in characters. */
const maxQuote = 300

/** Takes in a piece of text. */
export const addText = (draft: StreamDraft, text: unknown): void => {
  if (typeof text !== "string" || text === "") return
  if (draft.text.length < maxQuote) draft.text += text
  draft.parts.push({ _tag: "TextDelta", text })
}

/** Takes in a piece of reasoning. */
export const addReasoning = (draft: StreamDraft, text: unknown): void => {
  if (typeof text === "string" && text !== "") draft.parts.push({ _tag: "ReasoningDelta", text })
}

/** Takes in a piece of a refusal. */
export const addRefusal = (draft: StreamDraft, text: unknown): void => {
  if (typeof text !== "string" || text === "") return
  if (draft.refusal === undefined) draft.refusal = text
  else if (draft.refusal.length < maxQuote) draft.refusal += text
}

/** Begins a tool call. */
export const addCall = (draft: StreamDraft, key: number | undefined): Call => {
  const call: Call = { index: draft.callCount++, key, id: undefined, name: undefined, written: "" }
  draft.calls = [...draft.calls, call]
  return call
}

/** Takes in a piece of a tool call; what comes before its name waits for it. */
export const addArguments = (draft: StreamDraft, call: Call, piece: string): void => {
  const wasNamed = call.written !== "" && call.name !== undefined
  call.written += piece
  if (call.name === undefined) return
  draft.parts.push({
    _tag: "ToolCallDelta",
    index: call.index,
    id: idOf(call),
    name: call.name,
    arguments: wasNamed ? piece : call.written
  })
}

/** The last parts of the answer that the draft is: its tool calls and its end. */
export const settle = (
  head: Reply.Head,
  draft: StreamDraft,
  usage: Usage | undefined
): Either.Either<ReadonlyArray<StreamPart>, ProviderError> =>
  Either.map(
    Answer.settle(head, {
      text: draft.text,
      model: draft.model,
      toolCalls: draft.calls.flatMap(wholeCall),
      reasoning: "",
      refusal: draft.refusal,
      stopped: draft.stopped,
      usage
    }),
    endOf
  )

/** The parts of an answer that came in one piece. */
export const partsOf = (answer: ProviderAnswer): ReadonlyArray<StreamPart> => {
  const { text, reasoning } = answer
  return [
    ...(Json.text(reasoning) === undefined ? [] : [{ _tag: "ReasoningDelta", text: reasoning } as const]),
    ...(text === "" ? [] : [{ _tag: "TextDelta", text } as const]),
    ...endOf(answer)
  ] as ReadonlyArray<StreamPart>
}

const endOf = ({ text: _text, reasoning: _reasoning, toolCalls = [], ...rest }: ProviderAnswer) => [
  ...toolCalls.map((call) => ({ _tag: "ToolCall", ...call }) as const),
  { _tag: "End", ...rest } as const
]

const idOf = ({ id, index }: Call): string => id ?? `call_${index}`

const wholeCall = (call: Call): ReadonlyArray<ToolCall> =>
  call.name === undefined ? [] : [Answer.toolCall(idOf(call), call.name, call.written)]
