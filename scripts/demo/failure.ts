/** Failures in one line each. */
import { stripVTControlCharacters } from "node:util"
import type { CandidateError, LlmFuseError } from "../../src/index.ts"

type SingleError = Exclude<LlmFuseError, { readonly _tag: "AllProvidersFailedError" }>

/** One line per provider that was asked: its name, why it did not answer, and how often it was asked. */
export const failureLines = (error: LlmFuseError): ReadonlyArray<string> => {
  const errors: ReadonlyArray<SingleError> =
    error._tag === "AllProvidersFailedError" ? Object.values(error.errors) : [error]
  return errors.map((each) => `  ${each.provider}: ${reasonOf(each)} (${counted(each.attemptCount, "attempt")})`)
}

/** What went wrong: the tag of the error and its message without the name of the provider, which stands beside it. */
export const reasonOf = (error: CandidateError | SingleError): string => {
  const message = stripVTControlCharacters(error.message).replace(/\s+/g, " ")
  const prefix = `${error.provider}: `
  return `${error._tag}: ${shorten(message.startsWith(prefix) ? message.slice(prefix.length) : message)}`
}

/** The first 90 letters. */
export const shorten = (text: string): string => (text.length > 90 ? `${text.slice(0, 89).trimEnd()}…` : text)

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`
