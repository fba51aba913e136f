/**
 * What may be said of an error where prompts and answers are not to be read. A vendor's words may quote them, and so may
 * those of a request that is refused: only facts go on, and words of our own that hold nothing else.
 */
import { Duration } from "effect"
import {
  AllProvidersFailedError,
  type Attempt,
  CircuitOpenError,
  CostLimitError,
  DeadlineExceededError,
  FallbackError,
  isLlmFuseError,
  type LlmFuseError,
  recordStory,
  ThrottledError,
  TimeoutError,
  UnknownProviderError,
  withoutStackTrace
} from "../model/LlmError.ts"
import type { FuseEvent } from "./FuseEvent.ts"

/** An event whose error quotes nobody. */
export const event = <Event extends FuseEvent>(event: Event): Event =>
  "error" in event && event.error !== undefined ? { ...event, error: ofUnknown(event.error) } : event

/** The same error with nothing in it that quotes a prompt or an answer. */
export const of = <E extends LlmFuseError>(error: E): E => withStory(error)

/** The same of any value; of one that is no error of LlmFuse, what kind it is. */
export const ofUnknown = (error: unknown): unknown => (isLlmFuseError(error) ? of(error) : { _tag: tagOf(error) })

/** The tag of an error; where it has none, what kind of value it is. */
export const tagOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error
    ? String(error._tag)
    : error instanceof Error
      ? error.name
      : typeof error

/** An error stays one and the same value in all that is told of it. */
const copies = new WeakMap<LlmFuseError, LlmFuseError>()

const copyOf = <E extends LlmFuseError>(error: E): E => {
  const copy = (copies.get(error) ?? withoutStackTrace(() => made(error))) as E
  copies.set(error, copy)
  return copy
}

/** The copy with its story, which the error itself may have got only since. */
const withStory = <E extends LlmFuseError>(error: E): E => {
  const copy = copyOf(error)
  if (!(error instanceof AllProvidersFailedError) && error.attempts.length > 0) {
    recordStory(copy, { attempts: storyOf(error.attempts), attemptCount: error.attemptCount })
  }
  return copy
}

const storyOf = (attempts: ReadonlyArray<Attempt>): ReadonlyArray<Attempt> =>
  attempts.map((attempt) => (attempt.error === undefined ? attempt : { ...attempt, error: copyOf(attempt.error) }))

const made = (error: LlmFuseError): LlmFuseError => {
  if (error instanceof AllProvidersFailedError) {
    const errors = Object.entries(error.errors).map(([name, each]) => [name, withStory(each)])
    return new AllProvidersFailedError({
      ...error,
      errors: Object.fromEntries(errors),
      attempts: storyOf(error.attempts)
    })
  }
  const { message: _, cause, ...facts } = error as LlmFuseError & { readonly cause?: unknown }
  const Same = error.constructor as new (fields: object, options: object) => LlmFuseError
  const own = {
    ...facts,
    message: wordsOf(error),
    ...(isLlmFuseError(cause) ? { cause: copyOf(cause) } : {}),
    ...("partial" in error ? { partial: "" } : {}),
    ...("openedBy" in error && error.openedBy !== undefined ? { openedBy: ofUnknown(error.openedBy) } : {}),
    ...(error instanceof FallbackError ? { error: ofUnknown(error.error) } : {})
  }
  return new Same(own, { disableValidation: true })
}

type SingleError = Exclude<LlmFuseError, AllProvidersFailedError>

const wordsOf = (error: SingleError): string => {
  const { provider } = error
  if (isInOurWords(error)) return error.message
  if (error instanceof CircuitOpenError) {
    if (error.openUntil === undefined || error.openedBy === undefined) return error.message
    return `${provider}: circuit open, opened by: ${tagOf(error.openedBy)}`
  }
  const facts = [
    error.failureCase,
    error.statusCode === undefined ? undefined : `HTTP ${error.statusCode}`,
    codeOf(error, 4),
    error.retryAfter && `retry after ${Duration.format(error.retryAfter)}`
  ].filter((fact) => fact !== undefined)
  const { what } = error.constructor as unknown as { readonly what: string }
  return `${provider}: ${what}${facts.length === 0 ? "" : ` (${facts.join(", ")})`}`
}

/** Whether the words of an error are made of numbers and names alone. */
const isInOurWords = (error: SingleError): boolean =>
  error instanceof ThrottledError ||
  error instanceof CostLimitError ||
  error instanceof DeadlineExceededError ||
  error instanceof UnknownProviderError ||
  (error instanceof TimeoutError && error.phase !== "upstream") ||
  ("reason" in error && error.reason === "capability")

/** The system's code for a failed connection, such as `ECONNREFUSED`, from the error or what led to it. */
const codeOf = (error: unknown, depth: number): string | undefined => {
  if (depth === 0 || typeof error !== "object" || error === null) return undefined
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown }
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,40}$/.test(code) ? code : codeOf(cause, depth - 1)
}
