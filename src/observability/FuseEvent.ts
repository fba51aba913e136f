/** What happened, told as it happens. */
import type { DateTime, Duration } from "effect"
import type { CandidateError, LlmFuseError } from "../model/LlmError.ts"
import type { Reason } from "../pipeline/CircuitState.ts"

/** An attempt on a provider begins. `attempt` counts from 1 on each provider of a call. */
export interface AttemptStarted {
  readonly _tag: "AttemptStarted"
  readonly provider: string
  readonly attempt: number
}

/** An attempt failed, or was answered with nothing usable. */
export interface AttemptFailed {
  readonly _tag: "AttemptFailed"
  readonly provider: string
  readonly attempt: number
  readonly duration: Duration.Duration
  readonly error: CandidateError
}

/** The same provider will be asked again after `delay`; `attempt` is the number of the one that failed. */
export interface RetryScheduled {
  readonly _tag: "RetryScheduled"
  readonly provider: string
  readonly attempt: number
  readonly delay: Duration.Duration
  readonly error: CandidateError
}

/** An attempt was not sent: our own limiter has no room within `maxWait`. */
export interface Throttled {
  readonly _tag: "Throttled"
  readonly provider: string
  readonly wait: Duration.Duration
}

/** A provider's circuit opened; it is not called until `openUntil`. */
export interface CircuitOpened {
  readonly _tag: "CircuitOpened"
  readonly provider: string
  readonly openUntil: DateTime.Utc
  /** Why it opened. */
  readonly reason: Reason
  /** The failure that opened it; undefined where slow calls did. */
  readonly error: unknown
}

/** A provider was taken out by hand. */
export interface CircuitIsolated {
  readonly _tag: "CircuitIsolated"
  readonly provider: string
}

/** A provider's circuit lets probes through. */
export interface CircuitHalfOpened {
  readonly _tag: "CircuitHalfOpened"
  readonly provider: string
}

/** A provider's circuit closed: it works again. */
export interface CircuitClosed {
  readonly _tag: "CircuitClosed"
  readonly provider: string
}

/** The call goes from one provider to the next. */
export interface FailedOver {
  readonly _tag: "FailedOver"
  readonly from: string
  readonly to: string
  readonly error: CandidateError
}

/** A provider has not answered after the delay, and the next one is asked too. */
export interface Hedged {
  readonly _tag: "Hedged"
  readonly from: string
  readonly to: string
}

/** A provider was given up because another was faster. */
export interface HedgeLost {
  readonly _tag: "HedgeLost"
  readonly provider: string
}

/** The rate of a provider with an adaptive limit was cut. Rates are attempts per minute. */
export interface RateLowered {
  readonly _tag: "RateLowered"
  readonly provider: string
  /** Undefined if there was no limit before. */
  readonly from: number | undefined
  readonly to: number
}

/** The rate of a provider with an adaptive limit was raised. */
export interface RateRaised {
  readonly _tag: "RateRaised"
  readonly provider: string
  readonly from: number | undefined
  readonly to: number
}

/** The fallback answers instead of the error. */
export interface FallbackUsed {
  readonly _tag: "FallbackUsed"
  readonly error: LlmFuseError
}

/** An answer was given that came from an earlier call, or from one that somebody else had under way. */
export interface ServedFromCache {
  readonly _tag: "ServedFromCache"
  /** Who had given it. */
  readonly provider: string
  readonly ageMillis: number
  /** Whether it was too old, and stood in for a failure. */
  readonly isStale: boolean
}

/** A call was answered. */
export interface CallSucceeded {
  readonly _tag: "CallSucceeded"
  readonly provider: string
  readonly attempt: number
  readonly latency: Duration.Duration
}

/** A call failed. */
export interface CallFailed {
  readonly _tag: "CallFailed"
  readonly error: LlmFuseError
}

/** A fact, in the past tense. */
export type FuseEvent =
  | AttemptStarted
  | AttemptFailed
  | RetryScheduled
  | Throttled
  | CircuitOpened
  | CircuitHalfOpened
  | CircuitClosed
  | CircuitIsolated
  | FailedOver
  | Hedged
  | HedgeLost
  | RateLowered
  | RateRaised
  | FallbackUsed
  | ServedFromCache
  | CallSucceeded
  | CallFailed
