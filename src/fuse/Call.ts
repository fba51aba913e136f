/** One call: how much time it has, and what it comes to. */
import { type Clock, DateTime, Duration } from "effect"
import type { ChatResponse, ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import {
  AllProvidersFailedError,
  type Attempt,
  type CandidateError,
  type LlmFuseError,
  recordStory
} from "../model/LlmError.ts"
import type { EventHub } from "../observability/EventHub.ts"
import type { Operation } from "../observability/FuseEvent.ts"
import type { Deadline } from "../pipeline/Deadline.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import type { RetryPolicy } from "../pipeline/RetryPolicy.ts"
import type { Provider } from "../provider/Provider.ts"
import type { CallStream } from "./CallStream.ts"
import type { HedgeRule } from "./HedgeRule.ts"
import { type Begun, costOf, dateTimeAt, type Story, whole } from "./Story.ts"
import type { Timeouts } from "./Timeouts.ts"

/** A call under way. */
export interface Call extends Story {
  readonly hub: EventHub
  readonly operation: Operation
  /** Whether a tracer is there, and spans are made. */
  readonly isTraced: boolean
  /** Made when somebody asks for it. */
  id: string | undefined
  readonly clock: Clock.Clock
  /** Monotonic time. */
  readonly startMillis: number
  readonly deadline: Deadline | undefined
  /** The call's own limits for its attempts. */
  readonly timeouts: Timeouts | undefined
  /** The call's own way to retry. */
  readonly retry: RetryPolicy | undefined
  readonly hedge: HedgeRule | undefined
  /** Whether the call has options of its own that decide how it is answered. */
  readonly isOfItsOwn: boolean
  readonly tag: string | undefined
  /** In US dollars. */
  readonly maxCost: number | undefined
  /** The caller's side, where the answer is handed out as it comes. */
  readonly stream: CallStream | undefined
}

/** The id of the call. */
export const idOf = (call: Call): string => {
  call.id ??= call.hub.nextId()
  return call.id
}

/** What every event of the call tells. */
export const factsOf = (call: Call): { readonly at: DateTime.Utc; readonly callId: string } => ({
  at: wallTimeOf(call),
  callId: idOf(call)
})

/** The wall time by the clock of the call. */
export const wallTimeOf = (call: Call): DateTime.Utc => dateTimeAt(call.clock.unsafeCurrentTimeMillis())

/** Notes that an attempt begins. The first one, if nothing was waited for, begins with the call. */
export const begin = (
  call: Call,
  provider: Provider,
  number: number,
  waitedMillis: number,
  claim: Begun["claim"],
  giveUp: Begun["giveUp"]
): Begun => {
  const begun: Begun = {
    provider,
    number,
    wallMillis: call.clock.unsafeCurrentTimeMillis(),
    millis: isFirst(call, number, waitedMillis) ? call.startMillis : nowOf(call),
    waitedMillis,
    firstContentMillis: undefined,
    transcript: undefined,
    isOver: false,
    claim,
    giveUp
  }
  call.current = begun
  call.underWay?.set(provider.name, begun)
  return begun
}

const isFirst = (call: Call, number: number, waitedMillis: number): boolean =>
  number === 1 && waitedMillis === 0 && call.attempts.length === 0 && call.hedge === undefined

/** The monotonic time by the clock of the call. */
export const nowOf = (call: Call): number => Monotonic.unsafeMillis(call.clock)

/** Whether the call has any time left. */
export const hasTime = (call: Call): boolean => call.deadline === undefined || nowOf(call) < call.deadline.atMillis

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
