/** What a call comes to: a response, or an error that tells its story. */
import { DateTime, Duration } from "effect"
import type { ChatResponse, ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import {
  AllProvidersFailedError,
  type Attempt,
  type CandidateError,
  classOf,
  type LlmFuseError,
  type ProviderError,
  recordStory,
  withoutStackTrace
} from "../model/LlmError.ts"
import type { Provider } from "../provider/Provider.ts"
import { toProviderError } from "../provider/Rejection.ts"
import { type Call, whole } from "./Call.ts"
import { costOf } from "./Story.ts"

const noToolCalls: ReadonlyArray<ToolCall> = Object.freeze([])

/** The response to the call. Field by field: to spread the answer costs as much as the rest of a call. */
export const respond = (call: Call, provider: Provider, answer: ProviderAnswer, nowMillis: number): ChatResponse => {
  const response: { -readonly [K in keyof ChatResponse]: ChatResponse[K] } = {
    text: answer.text,
    provider: provider.name,
    model: answer.model ?? provider.model ?? "",
    finishReason: answer.finishReason ?? "unknown",
    toolCalls: answer.toolCalls ?? noToolCalls,
    latency: whole(nowMillis - call.startMillis),
    attempts: call.attempts,
    cached: false
  }
  const cost = costOf(call)
  if (cost !== undefined) response.cost = cost
  if (answer.usage !== undefined) response.usage = answer.usage
  if (answer.reasoning !== undefined) response.reasoning = answer.reasoning
  if (answer.refusal !== undefined) response.refusal = answer.refusal
  if (answer.requestId !== undefined) response.requestId = answer.requestId
  if (answer.opaque !== undefined) response.opaque = answer.opaque
  if (answer.rateLimits !== undefined) response.rateLimits = answer.rateLimits
  if (answer.changes !== undefined) response.changes = answer.changes
  return response
}

/** Gives an error the story of the call: all attempts, and how many of them were sent to the provider that it is from. */
export const tell = <E extends LlmFuseError>(call: Call, error: E, from?: string): E => {
  if (error._tag === "AllProvidersFailedError") return error
  const name = from ?? error.provider
  const isSent = ({ provider, outcome }: Attempt) => provider === name && outcome !== "rejected"
  recordStory(error, { attempts: call.attempts, attemptCount: call.attempts.filter(isSent).length })
  return error
}

/**
 * What a provider failed with, as an error of this call alone. A provider may fail with the same value again and again:
 * what holds the story of another call stays as it is, and its like stands in for it.
 */
export const ownError = (call: Call, provider: string, reason: unknown): ProviderError => {
  const error = toProviderError(provider, reason, call.clock.unsafeCurrentTimeMillis())
  const { attempts } = error
  const isTaken = attempts !== call.attempts && attempts.length > 0
  // A class of somebody else's cannot be made anew from its fields.
  const own = isTaken && error.constructor === classOf(error) ? likeOf(error) : error
  recordStory(own, { attempts: call.attempts, attemptCount: 0 })
  return own
}

const likeOf = (error: ProviderError): ProviderError => {
  const Class = error.constructor as new (fields: object, options: object) => ProviderError
  const like = withoutStackTrace(() => new Class({ ...error, message: error.message }, { disableValidation: true }))
  return Object.defineProperty(like, "stack", { value: error.stack, writable: true, configurable: true })
}

/** Why a provider did not answer, and since when. */
export interface Failed {
  readonly error: CandidateError
  /** The wall time. */
  readonly atMillis: number
}

/** When a provider may answer again; nothing where it does not say. */
const freeAtOf = ({ error, atMillis }: Failed): ReadonlyArray<number> => {
  const wait = error._tag === "ThrottledError" ? error.wait : error.retryAfter
  return wait === undefined || !Duration.isFinite(wait) ? [] : [atMillis + Duration.toMillis(wait)]
}

/** Everybody's last error, by provider, and the earliest moment at which one of them may answer again. */
export const exhausted = (
  call: Call,
  names: ReadonlyArray<string>,
  failures: ReadonlyMap<string, Failed>
): AllProvidersFailedError => {
  const freeAt = [...failures.values()].flatMap(freeAtOf)
  const errors = names.flatMap((name) => {
    const error = failures.get(name)?.error
    return error === undefined ? [] : [[name, error] as const]
  })
  return new AllProvidersFailedError({
    errors: Object.fromEntries(errors),
    attempts: call.attempts,
    ...(freeAt.length === 0 ? {} : { retryAt: DateTime.unsafeMake(Math.min(...freeAt)) })
  })
}
