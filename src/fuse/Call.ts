/** One call: what is asked, how much time it has, and the story of its attempts. */
import { type Clock, DateTime, Duration } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse, ProviderAnswer } from "../model/ChatResponse.ts"
import {
  AllProvidersFailedError,
  type Attempt,
  type AttemptOutcome,
  type CandidateError,
  type LlmFuseError,
  recordStory
} from "../model/LlmError.ts"
import type { Deadline } from "../pipeline/Deadline.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import type { Provider } from "../provider/Provider.ts"

/** A call under way. */
export interface Call {
  readonly request: ChatRequest
  readonly clock: Clock.Clock
  /** Monotonic time. */
  readonly startMillis: number
  readonly deadline: Deadline | undefined
  /** Grows as the call goes on; the response and the errors hold this very list. */
  readonly attempts: Array<Attempt>
}

/** The time since a moment, in whole milliseconds: Duration keeps fractions as big integers, which are slow and unreadable. */
const sinceMillis = (call: Call, millis: number): Duration.Duration =>
  Duration.millis(Math.max(0, Math.round(Monotonic.unsafeMillis(call.clock) - millis)))

/** An attempt under way. */
export interface Begun {
  readonly number: number
  readonly wallMillis: number
  /** Monotonic time. */
  readonly millis: number
  readonly waitedMillis: number
}

/** Notes that an attempt begins. */
export const begin = (call: Call, number: number, waitedMillis: number): Begun => ({
  number,
  wallMillis: call.clock.unsafeCurrentTimeMillis(),
  millis: Monotonic.unsafeMillis(call.clock),
  waitedMillis
})

/** Notes how an attempt ended. */
export const end = (
  call: Call,
  provider: Provider,
  begun: Begun,
  outcome: AttemptOutcome,
  detail: Pick<Attempt, "error" | "usage">
): Duration.Duration => {
  const duration = sinceMillis(call, begun.millis)
  call.attempts.push({
    provider: provider.name,
    number: begun.number,
    startedAt: DateTime.unsafeMake(begun.wallMillis),
    duration,
    outcome,
    ...detail,
    ...(begun.waitedMillis > 0 ? { waited: Duration.millis(Math.round(begun.waitedMillis)) } : {})
  })
  return duration
}

/** The response to the call. */
export const respond = (call: Call, provider: Provider, answer: ProviderAnswer): ChatResponse => ({
  ...answer,
  provider: provider.name,
  model: answer.model ?? provider.model ?? "",
  finishReason: answer.finishReason ?? "unknown",
  toolCalls: answer.toolCalls ?? [],
  latency: sinceMillis(call, call.startMillis),
  attempts: call.attempts,
  cached: false
})

/** Gives an error the story of the call: all attempts, and how many of them were sent to its provider. */
export const tell = <E extends LlmFuseError>(call: Call, error: E): E => {
  if (error._tag === "AllProvidersFailedError") return error
  const isSent = (attempt: Attempt) => attempt.provider === error.provider && attempt.outcome !== "rejected"
  recordStory(error, { attempts: call.attempts, attemptCount: call.attempts.filter(isSent).length })
  return error
}

const waitOf = (error: CandidateError): Duration.Duration | undefined =>
  error._tag === "ThrottledError" ? error.wait : error.retryAfter

/** Everybody's last error, by provider, and the earliest moment at which one of them may answer again. */
export const exhausted = (
  call: Call,
  names: ReadonlyArray<string>,
  errors: ReadonlyArray<CandidateError>
): AllProvidersFailedError => {
  const waits = errors.flatMap((error) => {
    const wait = waitOf(error)
    return wait === undefined || !Duration.isFinite(wait) ? [] : [Duration.toMillis(wait)]
  })
  return new AllProvidersFailedError({
    errors: Object.fromEntries(errors.map((error, index) => [names[index], error])),
    attempts: call.attempts,
    ...(waits.length === 0
      ? {}
      : { retryAt: DateTime.unsafeMake(call.clock.unsafeCurrentTimeMillis() + Math.min(...waits)) })
  })
}
