/** What is asked. */
import { Either } from "effect"
import { InvalidRequestError } from "./LlmError.ts"
import type { Message } from "./Message.ts"
import { problemOf, show } from "./RequestCheck.ts"
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

const refuse = (message: string) => Either.left(new InvalidRequestError({ provider: "llmfuse", message }))

/**
 * A string becomes one user message; a request is looked at before anybody is asked.
 * The left side names the value and what is allowed.
 */
export const normalize = (input: string | ChatRequest): Either.Either<ChatRequest, InvalidRequestError> => {
  if (typeof input === "string") {
    return input === ""
      ? refuse("the prompt is the empty string; give it some text")
      : Either.right({ messages: [{ role: "user", content: input }] })
  }
  if (typeof input !== "object" || input === null) {
    return refuse(`the request is ${show(input)}; allowed: a string or { messages, ... }`)
  }
  const problem = problemOf(input)
  return problem === undefined ? Either.right(input) : refuse(problem)
}
