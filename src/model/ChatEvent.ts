/** What a stream is made of: the parts that a provider hands over, and the events that the caller gets. */
import type { ChatResponse, ProviderAnswer, ToolCall } from "./ChatResponse.ts"
import type { ProviderError } from "./LlmError.ts"

/** A piece of the answer's text. */
export interface TextDelta {
  readonly _tag: "TextDelta"
  readonly text: string
}

/** A piece of the model's reasoning. */
export interface ReasoningDelta {
  readonly _tag: "ReasoningDelta"
  readonly text: string
}

/** A piece of a tool call's arguments. Only a whole call (`ToolCall`) may be run. */
export interface ToolCallDelta {
  readonly _tag: "ToolCallDelta"
  /** Which call of the answer, from 0. */
  readonly index: number
  readonly id: string
  readonly name: string
  /** The piece of JSON text; the first of a call may be empty. */
  readonly arguments: string
}

/** A whole tool call. It is handed out only when the answer has ended as it should. */
export interface WholeToolCall extends ToolCall {
  readonly _tag: "ToolCall"
}

/** The end of a provider's stream: what is known beside the text, the reasoning and the tool calls before it. */
export interface StreamEnd extends Omit<ProviderAnswer, "text" | "reasoning" | "toolCalls"> {
  readonly _tag: "End"
}

/** What the stream of a provider is made of. Deltas with an empty text are ignored. */
export type StreamPart = TextDelta | ReasoningDelta | ToolCallDelta | WholeToolCall | StreamEnd

/** The first content of a provider's answer follows. From here on the caller has seen something of it. */
export interface Started {
  readonly _tag: "Started"
  /** The name of the provider. */
  readonly provider: string
  /** The model that is asked; the empty string where the provider does not say. */
  readonly model: string
}

/**
 * What has come since the last `Started` is void: that provider's stream broke, and a whole answer begins afresh with
 * the `Started` that follows. Comes only with `recovery: "restart"`.
 */
export interface Restarted {
  readonly _tag: "Restarted"
  /** The name of the provider whose stream broke. */
  readonly provider: string
  /** How it broke. */
  readonly reason: ProviderError
  /** The text that is void. */
  readonly discarded: string
}

/** The whole answer has come: `response.text` is the text of the deltas since the last `Started`. */
export interface Finished {
  readonly _tag: "Finished"
  readonly response: ChatResponse
}

/** What a caller of `stream` gets. A stream ends with `Finished`, or fails with one typed error. */
export type ChatEvent = Started | TextDelta | ReasoningDelta | ToolCallDelta | WholeToolCall | Restarted | Finished
