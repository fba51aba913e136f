/** What a call comes to: a response, or an error that tells its story. */
import { DateTime, Duration } from "effect"
import type { ChatResponse, ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import {
  AllProvidersFailedError,
  type Attempt,
  type CandidateError,
  type LlmFuseError,
  recordStory
} from "../model/LlmError.ts"
import type { Provider } from "../provider/Provider.ts"
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
  errors: Readonly<Record<string, CandidateError>>
): AllProvidersFailedError => {
  const waits = Object.values(errors).flatMap((error) => {
    const wait = waitOf(error)
    return wait === undefined || !Duration.isFinite(wait) ? [] : [Duration.toMillis(wait)]
  })
  return new AllProvidersFailedError({
    errors: Object.fromEntries(names.flatMap((name) => (errors[name] === undefined ? [] : [[name, errors[name]]]))),
    attempts: call.attempts,
    ...(waits.length === 0
      ? {}
      : { retryAt: DateTime.unsafeMake(call.clock.unsafeCurrentTimeMillis() + Math.min(...waits)) })
  })
}
