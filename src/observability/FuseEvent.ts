/** What happened, told as it happens: facts in the past tense. */
import type { DateTime, Duration } from "effect"
import type { CandidateError, LlmFuseError, ProviderError, ThrottledError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import type { Reason } from "../pipeline/CircuitState.ts"

/** What every fact tells. */
interface Fact {
  /** The wall time. */
  readonly at: DateTime.Utc
}

/** What every fact of a call tells. */
interface FactOfCall extends Fact {
  /** The same in all facts of a call. */
  readonly callId: string
}

/** What every fact of a provider's state tells. */
interface FactOfProvider extends Fact {
  readonly provider: string
  /** The call that brought it about; undefined where it was done by hand, and for `RateLowered` and `RateRaised`. */
  readonly callId: string | undefined
}

/** A call begins. */
export interface CallStarted extends FactOfCall {
  readonly _tag: "CallStarted"
  readonly operation: Operation
  /** The word that the caller has given it. */
  readonly tag: string | undefined
}

/** What a call is for. */
export type Operation = "complete" | "stream" | "object" | "embed"

/** An attempt on a provider begins. `attempt` counts from 1 on each provider of a call. */
export interface AttemptStarted extends FactOfCall {
  readonly _tag: "AttemptStarted"
  readonly provider: string
  readonly attempt: number
  /** How long it was waited for: backoff and limiter. */
  readonly waited: Duration.Duration
}

/** What the end of an attempt tells. Each attempt that began ends with exactly one such fact, or it is still under way. */
interface EndOfAttempt extends FactOfCall {
  readonly provider: string
  readonly attempt: number
  readonly duration: Duration.Duration
  /** What it used, where that is known or can be estimated. */
  readonly usage: Usage | undefined
  /** What it cost, in US dollars, where that is known. */
  readonly cost: number | undefined
  /** Whether usage and cost are estimated from the length of the texts, for the answer did not come to its end. */
  readonly isEstimated: boolean
}

/** An attempt was answered. */
export interface AttemptSucceeded extends EndOfAttempt {
  readonly _tag: "AttemptSucceeded"
  /** The model that answered: as the provider reports it, else the one that it is asked for; empty where neither is known. */
  readonly model: string
  /** Until the first content; undefined where the answer was not streamed. */
  readonly timeToFirstToken: Duration.Duration | undefined
}

/** An attempt failed, or was answered with nothing usable. */
export interface AttemptFailed extends EndOfAttempt {
  readonly _tag: "AttemptFailed"
  readonly error: CandidateError
}

/** An attempt was ended because its call was: by the deadline, by the caller, or by a defect. */
export interface AttemptInterrupted extends EndOfAttempt {
  readonly _tag: "AttemptInterrupted"
}

/** A provider was passed over, or not asked again: its circuit is open, it cannot do what is asked, or it costs too much. */
export interface AttemptRejected extends FactOfCall {
  readonly _tag: "AttemptRejected"
  readonly provider: string
  /** How many attempts it had in this call. */
  readonly attempt: number
  readonly error: Exclude<CandidateError, ThrottledError>
}

/** The same provider will be asked again after `delay`; `attempt` is the number of the one that failed. */
export interface RetryScheduled extends FactOfCall {
  readonly _tag: "RetryScheduled"
  readonly provider: string
  readonly attempt: number
  readonly delay: Duration.Duration
  readonly error: CandidateError
}

/** An attempt was not sent: our own limiter has no room within `maxWait`. */
export interface Throttled extends FactOfCall {
  readonly _tag: "Throttled"
  readonly provider: string
  /** How many attempts the provider had in this call. */
  readonly attempt: number
  readonly error: ThrottledError
  readonly wait: Duration.Duration
}

/** A provider's circuit opened; it is not called until `openUntil`. */
export interface CircuitOpened extends FactOfProvider {
  readonly _tag: "CircuitOpened"
  readonly openUntil: DateTime.Utc
  /** Why it opened. */
  readonly reason: Reason
  /** The failure that opened it; undefined where slow calls did. */
  readonly error: unknown
}

/** A provider was taken out by hand. */
export interface CircuitIsolated extends FactOfProvider {
  readonly _tag: "CircuitIsolated"
}

/** A provider's circuit lets probes through. */
export interface CircuitHalfOpened extends FactOfProvider {
  readonly _tag: "CircuitHalfOpened"
}

/** A provider's circuit closed: it works again. */
export interface CircuitClosed extends FactOfProvider {
  readonly _tag: "CircuitClosed"
}

/** The call goes from one provider to the next. */
export interface FailedOver extends FactOfCall {
  readonly _tag: "FailedOver"
  readonly from: string
  readonly to: string
  readonly error: CandidateError
}

/** A provider has not answered after the delay, and the next one is asked too. */
export interface Hedged extends FactOfCall {
  readonly _tag: "Hedged"
  readonly from: string
  readonly to: string
}

/** A provider was given up because another was faster; the end of the attempt that was under way, if one was. */
export interface HedgeLost extends FactOfCall, Partial<Omit<EndOfAttempt, keyof FactOfCall | "provider">> {
  readonly _tag: "HedgeLost"
  readonly provider: string
}

/** The rate of a provider with an adaptive limit was cut. Rates are attempts per minute. */
export interface RateLowered extends FactOfProvider {
  readonly _tag: "RateLowered"
  /** Undefined if there was no limit before. */
  readonly from: number | undefined
  readonly to: number
}

/** The rate of a provider with an adaptive limit was raised. */
export interface RateRaised extends FactOfProvider {
  readonly _tag: "RateRaised"
  readonly from: number | undefined
  readonly to: number
}

/** The fallback answers instead of the error. */
export interface FallbackUsed extends FactOfCall {
  readonly _tag: "FallbackUsed"
  readonly error: LlmFuseError
}

/** An answer was given that came from an earlier call, or from one that somebody else had under way. */
export interface ServedFromCache extends FactOfCall {
  readonly _tag: "ServedFromCache"
  /** Who had given it. */
  readonly provider: string
  readonly ageMillis: number
  /** Whether it was too old, and stood in for a failure. */
  readonly isStale: boolean
}

/** What the caller of a stream had been handed is void: it broke, and a whole answer begins afresh. */
export interface StreamRestarted extends FactOfCall {
  readonly _tag: "StreamRestarted"
  /** The provider whose stream broke. */
  readonly from: string
  /** The provider that begins afresh. */
  readonly to: string
  readonly error: ProviderError
}

/** A call was answered. */
export interface CallSucceeded extends FactOfCall {
  readonly _tag: "CallSucceeded"
  readonly provider: string
  /** The attempt that answered; 0 where none did: the answer was kept, or is the fallback. */
  readonly attempt: number
  /** The model that answered: as the provider reports it, else the one that it is asked for; empty where neither is known. */
  readonly model: string
  readonly latency: Duration.Duration
  /** From the beginning of the attempt that answered to its first content; undefined where it was not streamed. */
  readonly timeToFirstToken: Duration.Duration | undefined
  readonly usage: Usage | undefined
  /** What all its attempts cost, in US dollars, as far as their prices are known. */
  readonly cost: number | undefined
}

/** A call failed. */
export interface CallFailed extends FactOfCall {
  readonly _tag: "CallFailed"
  readonly error: LlmFuseError
  /** What all its attempts cost, in US dollars, as far as their prices are known. */
  readonly cost: number | undefined
}

/** A call was interrupted by its caller: neither success nor failure. */
export interface CallInterrupted extends FactOfCall {
  readonly _tag: "CallInterrupted"
  /** What its attempts cost until then, in US dollars, as far as their prices are known. */
  readonly cost: number | undefined
}

/** A defect ended a call: a bug in a provider, or in a function of the caller's. */
export interface CallDied extends FactOfCall {
  readonly _tag: "CallDied"
  /** What kind of value the defect is, as `{ _tag }`; with `captureContent`, the defect itself. */
  readonly error: unknown
  /** What its attempts cost until then, in US dollars, as far as their prices are known. */
  readonly cost: number | undefined
}

/** A fact, in the past tense. */
export type FuseEvent =
  | CallStarted
  | AttemptStarted
  | AttemptSucceeded
  | AttemptFailed
  | AttemptInterrupted
  | AttemptRejected
  | RetryScheduled
  | Throttled
  | CircuitOpened
  | CircuitHalfOpened
  | CircuitClosed
  | CircuitIsolated
  | RateLowered
  | RateRaised
  | Hedged
  | HedgeLost
  | FailedOver
  | StreamRestarted
  | FallbackUsed
  | ServedFromCache
  | CallSucceeded
  | CallFailed
  | CallInterrupted
  | CallDied
