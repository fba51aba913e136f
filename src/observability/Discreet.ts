/** What may be said of an error where prompts and answers are not to be read. */
import {
  AllProvidersFailedError,
  ContentPolicyError,
  FallbackError,
  InvalidResponseError,
  isLlmFuseError
} from "../model/LlmError.ts"

/** The words of an error, without those of a prompt or an answer: some errors quote them for their caller. */
export const wordsOf = (error: unknown): string => {
  if (error instanceof AllProvidersFailedError) {
    return `no provider answered: ${Object.values(error.errors).map(wordsOf).join("; ")}`
  }
  if (error instanceof ContentPolicyError) {
    return `${error.provider}: ${error.stage === "prompt" ? "the prompt was blocked" : "the answer was refused or stopped"}`
  }
  if (error instanceof InvalidResponseError && error.reason !== undefined) {
    return `${error.provider}: ${error.reason === "length" ? "the object was cut off at the token limit" : "the answer does not fit the schema"}`
  }
  if (error instanceof FallbackError)
    return `${error.provider}: the fallback failed too (after: ${wordsOf(error.cause)})`
  return error instanceof Error ? error.message : tagOf(error)
}

/** The tag of an error; where it has none, what kind of value it is. */
export const tagOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error
    ? String(error._tag)
    : error instanceof Error
      ? error.name
      : typeof error

/** An error that says only what may be said, to stand for one of ours in a trace. */
export const standIn = (error: unknown): unknown =>
  isLlmFuseError(error) ? { _tag: tagOf(error), name: tagOf(error), message: wordsOf(error) } : error
