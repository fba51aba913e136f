/** The caller's side of a streamed call: what has been handed out, and what has become void. */
import type { Effect } from "effect"
import type { ChatEvent } from "../model/ChatEvent.ts"
import {
  type CandidateError,
  ContentPolicyError,
  isLlmFuseError,
  type ProviderError,
  StreamInterruptedError
} from "../model/LlmError.ts"

/** What happens when a stream breaks after its first content. */
export type Recovery = "fail" | "restart"

/** The words for it. */
export const recoveries: ReadonlyArray<Recovery> = ["fail", "restart"]

/** Takes events to the caller; waits while the caller has not taken earlier ones. */
export interface Outlet {
  /** Whether there was room at once. */
  readonly offerNow: (events: ReadonlyArray<ChatEvent>) => boolean
  readonly offer: (events: ReadonlyArray<ChatEvent>) => Effect.Effect<unknown>
}

/** A stream that broke after its first content. */
interface Broken {
  /** Whose it was. */
  readonly provider: string
  readonly error: ProviderError
  readonly discarded: string
}

/** A streamed call under way. */
export interface CallStream {
  readonly recovery: Recovery
  readonly outlet: Outlet
  /** The last stream that broke. */
  broken: Broken | undefined
  /** Whether the caller has been handed some of an answer that is not void. */
  isCommitted: boolean
}

/** The caller's side of a call that begins. */
export const make = (recovery: Recovery, outlet: Outlet): CallStream => ({
  recovery,
  outlet,
  broken: undefined,
  isCommitted: false
})

/** What stands before the first content of an attempt. */
export const commit = (stream: CallStream, provider: string, model: string | undefined): ReadonlyArray<ChatEvent> => {
  stream.isCommitted = true
  const started: ChatEvent = { _tag: "Started", provider, model: model ?? "" }
  const { broken } = stream
  if (broken === undefined) return [started]
  const { provider: from, error: reason, discarded } = broken
  return [{ _tag: "Restarted", provider: from, reason, discarded }, started]
}

/**
 * The error of an attempt that failed after its first content: a `StreamInterruptedError` with what was handed out and
 * the failure as its cause. What the content policy stopped is no broken stream and stays what it is.
 */
export const breakOff = (stream: CallStream, provider: string, reason: ProviderError, text: string): ProviderError => {
  const error = reason instanceof ContentPolicyError ? reason : interrupted(reason, text)
  stream.broken = { provider, error, discarded: text }
  stream.isCommitted = stream.recovery === "fail"
  return error
}

/** Whether an error ended an attempt after its first content. */
export const isBroken = (stream: CallStream | undefined, error: CandidateError): boolean =>
  stream?.broken?.error === error

/** Whether an error ends the call: the caller has been handed some of the answer and wants no other. */
export const isFinal = (stream: CallStream | undefined, error: CandidateError): boolean =>
  stream?.recovery === "fail" && isBroken(stream, error)

/** A failure of a stream, with the text that had come. */
export const interrupted = (reason: ProviderError, partial: string): StreamInterruptedError => {
  const { provider, statusCode, requestId, retryAfter, shouldRetry, usage } = reason
  const isCut = reason instanceof StreamInterruptedError
  const message = isCut
    ? reason.message
    : `${provider}: stream interrupted: ${reason.message.replace(`${provider}: `, "")}`
  return new StreamInterruptedError({
    provider,
    partial,
    message,
    statusCode,
    requestId,
    retryAfter,
    shouldRetry,
    usage,
    cause: isCut ? reason.cause : reason
  })
}

/** The failure that an error stands for: an interrupted stream stands for what interrupted it. */
export const reasonOf = (error: CandidateError): CandidateError =>
  error instanceof StreamInterruptedError && isLlmFuseError(error.cause) ? (error.cause as CandidateError) : error
