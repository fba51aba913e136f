/** What is asked. */
import { Either } from "effect"
import { InvalidRequestError } from "./LlmError.ts"
import type { Message } from "./Message.ts"

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
  /** Fields added to the vendor's request as they are; they win over what LlmFuse would send. */
  readonly extra?: Readonly<Record<string, unknown>> | undefined
}

const refuse = (what: string) => Either.left(new InvalidRequestError({ provider: "llmfuse", message: what }))

const isNumberOrAbsent = (value: unknown) =>
  value === undefined || (typeof value === "number" && Number.isFinite(value))

const show = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : Array.isArray(value) ? "an array" : String(value)

const roles: ReadonlyArray<unknown> = ["system", "user", "assistant"]

const problemOf = (message: Message, index: number): string | undefined => {
  const at = `messages[${index}]`
  if (typeof message !== "object" || message === null)
    return `${at} is ${show(message)}; a message is { role, content }`
  if (!roles.includes(message.role)) return `${at}.role is ${show(message.role)}; allowed: ${roles.join(", ")}`
  if (typeof message.content === "string") return undefined
  if (!Array.isArray(message.content)) return `${at}.content is ${show(message.content)}; allowed: a string or parts`
  const part = message.content.findIndex((part) => part?.type !== "text" || typeof part.text !== "string")
  return part === -1 ? undefined : `${at}.content[${part}] is not { type: "text", text }`
}

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
  if (!Array.isArray(input.messages) || input.messages.length === 0) {
    return refuse(
      `messages is ${input.messages === undefined ? "missing" : "empty or no array"}; give at least one message`
    )
  }
  for (let index = 0; index < input.messages.length; index++) {
    const problem = problemOf(input.messages[index] as Message, index)
    if (problem !== undefined) return refuse(problem)
  }
  if (input.system !== undefined && typeof input.system !== "string") return refuse("system is no string")
  if (input.maxTokens !== undefined && !(Number.isSafeInteger(input.maxTokens) && input.maxTokens > 0)) {
    return refuse(`maxTokens is ${show(input.maxTokens)}; allowed: a whole number above 0`)
  }
  if (!isNumberOrAbsent(input.temperature) || (input.temperature ?? 0) < 0) {
    return refuse(`temperature is ${show(input.temperature)}; allowed: a number from 0`)
  }
  if (!isNumberOrAbsent(input.topP) || (input.topP ?? 1) <= 0 || (input.topP ?? 1) > 1) {
    return refuse(`topP is ${show(input.topP)}; allowed: a number above 0, at most 1`)
  }
  if (input.seed !== undefined && !Number.isSafeInteger(input.seed)) {
    return refuse(`seed is ${show(input.seed)}; allowed: a whole number`)
  }
  if (
    input.stop !== undefined &&
    !(Array.isArray(input.stop) && input.stop.every((text) => typeof text === "string"))
  ) {
    return refuse("stop is no array of strings")
  }
  return Either.right(input)
}
