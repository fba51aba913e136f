/** A provider with the stages that guard it, and what can be done there. */
import type { Effect } from "effect"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { CandidateError, ProviderError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import type * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import type * as RetryBudget from "../pipeline/RetryBudget.ts"
import type * as Watch from "../pipeline/Watch.ts"
import type { Provider } from "../provider/Provider.ts"
import type * as Call from "./Call.ts"
import type { Resolved } from "./FuseOptions.ts"
import type { Guard } from "./Limits.ts"
import type { ProviderRecord } from "./ProviderRecord.ts"
import type * as Timeouts from "./Timeouts.ts"

/** A provider with the stages that guard it. */
export interface Stages {
  readonly provider: Provider
  readonly options: Resolved
  readonly guard: Guard | undefined
  /** `undefined`: retries are not bounded. */
  readonly budget: RetryBudget.RetryBudget | undefined
  readonly record: ProviderRecord
  readonly breaker: CircuitBreaker.CircuitBreaker<CandidateError, Call.Call>
  readonly timeouts: Timeouts.Timeouts
  readonly limits: Timeouts.Limits
  /** Over `limits.wholeMillis`. */
  readonly watch: Watch.Watch
}

/** How long an attempt may take. */
export interface AttemptTime {
  readonly limits: Timeouts.Limits
  /** The share of the deadline, in milliseconds; infinite where it does not matter. */
  readonly shareMillis: number
  /** Keeps the attempt's place in flight until it has really ended; undefined where there are no limits. */
  readonly hold?: (<A, E, R>(attempt: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** What every answer can tell. */
export type Answer = Pick<ProviderAnswer, "usage" | "rateLimits">

/** What a call wants of a provider. */
export interface Job<out A extends Answer> {
  /** Why the provider cannot do it at all; `undefined` if it can. */
  readonly obstacle: (provider: Provider) => ProviderError | undefined
  /** Whether it goes on from what tools have done. */
  readonly hasToolResults: () => boolean
  /** What it will use at least. */
  readonly expected: () => Usage
  /** About how many tokens it will use. */
  readonly tokens: (estimate: Guard["estimateTokens"]) => number
  /** Whether a failure may be tried again that the failure table would have tried again. */
  readonly mayRetry: (error: CandidateError) => boolean
  /** One request to the provider, and what it came to. */
  readonly send: (
    stages: Stages,
    call: Call.Call,
    begun: Call.Begun,
    time: AttemptTime
  ) => Effect.Effect<A, CandidateError>
}
