/**
 * What may be said of an error where prompts and answers are not to be read. A vendor's words may quote them, and so may
 * those of a request that is refused: only facts go on, and words of our own that hold nothing else.
 */
import { Duration, Either } from "effect"
import {
  AllProvidersFailedError,
  type Attempt,
  CircuitOpenError,
  classOf,
  isInOwnWords,
  isLlmFuseError,
  type LlmFuseError,
  recordStory,
  withoutStackTrace
} from "../model/LlmError.ts"
import type { FuseEvent } from "./FuseEvent.ts"

/** An event whose error quotes nobody. */
export const event = <Event extends FuseEvent>(event: Event): Event =>
  "error" in event && event.error !== undefined ? { ...event, error: ofUnknown(event.error) } : event

/** The same error with nothing in it that quotes a prompt or an answer. */
export const of = <E extends LlmFuseError>(error: E): E => ofUnknown(error) as E

/** The same of any value; of one that is no error of LlmFuse, or cannot be read, what kind it is. */
export const ofUnknown = (error: unknown): unknown => orKind(error, withStory)

/** The tag of an error; where it has none, what kind of value it is. */
export const tagOf = (error: unknown): string =>
  Either.getOrElse(
    Either.try(() =>
      typeof error === "object" && error !== null && "_tag" in error
        ? String(error._tag)
        : error instanceof Error
          ? error.name
          : typeof error
    ),
    () => "unknown"
  )

/** A class of somebody else's may have getters that fail: no call is to break on what is told of it. */
const orKind = (error: unknown, copied: (error: LlmFuseError) => unknown): unknown =>
  Either.getOrElse(
    Either.try(() => (isLlmFuseError(error) ? copied(error) : { _tag: tagOf(error) })),
    () => ({ _tag: tagOf(error) })
  )

/** An error stays one and the same value in all that is told of it. */
const copies = new WeakMap<LlmFuseError, LlmFuseError>()

/** How many causes of causes are told: an error may be its own. */
const maxDepth = 5

const copyOf = (error: LlmFuseError, depth = maxDepth): LlmFuseError => {
  const copy = copies.get(error) ?? withoutStackTrace(() => made(error, depth))
  copies.set(error, copy)
  return copy
}

/** The copy with its story, which the error itself may have got only since. */
const withStory = (error: LlmFuseError): LlmFuseError => {
  const copy = copyOf(error)
  if (!(error instanceof AllProvidersFailedError) && error.attempts.length > 0) {
    recordStory(copy, { attempts: storyOf(error.attempts), attemptCount: error.attemptCount })
  }
  return copy
}

const storyOf = (attempts: ReadonlyArray<Attempt>): ReadonlyArray<Attempt> =>
  attempts.map((attempt) =>
    attempt.error === undefined
      ? attempt
      : { ...attempt, error: orKind(attempt.error, (it) => copyOf(it)) as typeof attempt.error }
  )

const unchecked = { disableValidation: true }

const made = (error: LlmFuseError, depth: number): LlmFuseError => {
  if (error instanceof AllProvidersFailedError) {
    const { retryAt } = error
    const errors = Object.fromEntries(Object.entries(error.errors).map(([name, each]) => [name, of(each)]))
    return new AllProvidersFailedError({ errors, attempts: storyOf(error.attempts), retryAt }, unchecked)
  }
  const Class = classOf(error) as unknown as SingleClass
  const { message: _, cause, ...facts } = factsOf(error, Class)
  const own = {
    ...facts,
    message: wordsOf(error, Class, facts),
    ...(depth > 0 && isLlmFuseError(cause) ? { cause: orKind(cause, (it) => copyOf(it, depth - 1)) } : {}),
    ...("partial" in facts ? { partial: "" } : {}),
    ...("openedBy" in facts ? { openedBy: ofUnknown(facts.openedBy) } : {}),
    ...("error" in facts ? { error: ofUnknown(facts.error) } : {})
  }
  return new Class(own, unchecked)
}

type SingleError = Exclude<LlmFuseError, AllProvidersFailedError>

/** The class of an error that is of one provider. */
interface SingleClass {
  new (facts: object, options: object): SingleError
  readonly prototype: SingleError
  readonly fields: object
  readonly what: string
}

/** The fields of an error that its class of ours has; what a class made from it adds may be anything. */
const factsOf = (error: SingleError, { fields }: SingleClass): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.keys(fields).flatMap((key) => {
      const value: unknown = Reflect.get(error, key)
      return value === undefined ? [] : [[key, value]]
    })
  )

const wordsOf = (error: SingleError, { prototype, what }: SingleClass, facts: object): string => {
  const { provider } = error
  if (isInOwnWords(error)) return error.message
  if (error instanceof CircuitOpenError && error.openedBy !== undefined) {
    return `${provider}: circuit open, opened by: ${tagOf(error.openedBy)}`
  }
  const said = [
    // As our class has it, whatever a class made from it says.
    Reflect.get(prototype, "failureCase", facts),
    error.statusCode === undefined ? undefined : `HTTP ${error.statusCode}`,
    codeOf(error, 4),
    error.retryAfter && `retry after ${Duration.format(error.retryAfter)}`
  ].filter((fact) => fact !== undefined)
  return `${provider}: ${what}${said.length === 0 ? "" : ` (${said.join(", ")})`}`
}

/** The system's code for a failed connection, such as `ECONNREFUSED`, from the error or what led to it. */
const codeOf = (error: unknown, depth: number): string | undefined => {
  if (depth === 0 || typeof error !== "object" || error === null) return undefined
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown }
  return typeof code === "string" && systemCode.test(code) ? code : codeOf(cause, depth - 1)
}

/** The codes of the operating system and its resolver, of undici, and of Node and OpenSSL. */
const systemCode =
  /^(E[A-Z0-9]{2,24}|EAI_[A-Z]{2,16}|UND_ERR_[A-Z_]{2,32}|(CERT|ERR|DEPTH|SELF|UNABLE)_[A-Z0-9_]{2,40})$/
