/** What is asked. */
import type { Message } from "./Message.ts"
import type { Reasoning, ResponseFormat, Tool, ToolChoice } from "./Tool.ts"

/** A request in no vendor's dialect. What is not set is left to the provider. */
export interface ChatRequest {
  /** The conversation, oldest first; at least one message. */
  readonly messages: ReadonlyArray<Message>
  /** What the model is to be; stands before every system message. */
  readonly system?: string | undefined
  /** The most tokens to write, a whole number above zero. Default: the provider's `maxTokens`, else the vendor's. */
  readonly maxTokens?: number | undefined
  /** Randomness of the answer, zero or more; vendors differ in the maximum. */
  readonly temperature?: number | undefined
  /** Nucleus sampling: the share of probability to sample from, above 0 and at most 1. */
  readonly topP?: number | undefined
  /** Texts that end the answer when the model writes them. */
  readonly stop?: ReadonlyArray<string> | undefined
  /** Asks for the same answer to the same request, where the vendor can. */
  readonly seed?: number | undefined
  /** The tools that the model may call. */
  readonly tools?: ReadonlyArray<Tool> | undefined
  /** Whether it calls them. Default: as it likes. */
  readonly toolChoice?: ToolChoice | undefined
  /** Whether it may call several at once. Default: the vendor's. */
  readonly parallelToolCalls?: boolean | undefined
  /** The form of the answer. Default: free text. */
  readonly responseFormat?: ResponseFormat | undefined
  /** How much the model thinks before it answers. Default: the vendor's. */
  readonly reasoning?: Reasoning | undefined
  /** Labels for the vendor's records, where it takes them. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Fields added to the vendor's request as they are; they win over what LlmFuse would send. */
  readonly extra?: Readonly<Record<string, unknown>> | undefined
}
