/** A provider with the stages that guard it, and what can be done there. */
import type { Effect } from "effect"
import type { CandidateError, ProviderError } from "../model/LlmError.ts"
import type * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import type * as TokenBucket from "../pipeline/TokenBucket.ts"
import type * as Watch from "../pipeline/Watch.ts"
import type { Provider } from "../provider/Provider.ts"
import type * as Attempt from "./Attempt.ts"
import type * as Call from "./Call.ts"
import type { Emit } from "./Emit.ts"
import type { Resolved } from "./FuseOptions.ts"
import type * as Timeouts from "./Timeouts.ts"

/** A provider with the stages that guard it. */
export interface Stages {
  readonly provider: Provider
  readonly options: Resolved
  readonly emit: Emit | undefined
  readonly bucket: TokenBucket.TokenBucket | undefined
  readonly breaker: CircuitBreaker.CircuitBreaker<CandidateError>
  readonly timeouts: Timeouts.Timeouts
  readonly limits: Timeouts.Limits
  /** Over `limits.wholeMillis`. */
  readonly watch: Watch.Watch
}

/** What a call wants of a provider. */
export interface Job<A> {
  /** Why the provider cannot do it at all; `undefined` if it can. */
  readonly obstacle: (provider: Provider) => ProviderError | undefined
  /** Whether a failure may be tried again that the failure table would have tried again. */
  readonly mayRetry: (error: CandidateError) => boolean
  /** One request to the provider, and what it came to. */
  readonly send: (
    stages: Stages,
    call: Call.Call,
    begun: Call.Begun,
    time: Attempt.Time
  ) => Effect.Effect<A, CandidateError>
}
