/** When a call asks the same provider again. */
import { Duration, Effect } from "effect"
import type { CandidateError } from "../model/LlmError.ts"
import type * as CircuitState from "../pipeline/CircuitState.ts"
import * as Deadline from "../pipeline/Deadline.ts"
import type { Hooks } from "../pipeline/Retry.ts"
import * as Call from "./Call.ts"
import * as CallStream from "./CallStream.ts"
import type { Answer, Job, Stages } from "./Stages.ts"

/** One call at one provider. */
export interface Visit<A extends Answer> {
  readonly call: Call.Call
  readonly job: Job<A>
  readonly permit: CircuitState.Permit
  /** How many other providers could take the call over. */
  readonly others: Effect.Effect<number>
  /** Wins the race that it is in; undefined where there is none. */
  readonly claim: (() => boolean) | undefined
  /** Attempts so far, those of earlier visits of the call included. */
  number: number
  /** The last attempt. */
  begun: Call.Begun | undefined
  /** The wait before the next attempt. */
  backoffMillis: number
  lastError: CandidateError | undefined
  /** Whether a failure that may be retried once has been. */
  hasRetriedOnce: boolean
  /** Whether our own limiter has ended the visit. */
  isOver: boolean
}

/** What the retry of a visit asks and tells. `mayRepeat` takes one from what may be retried. */
export const hooks = <A extends Answer>(
  { provider, options, breaker }: Pick<Stages, "provider" | "options" | "breaker">,
  visit: Visit<A>,
  mayRepeat: (nowMillis: number) => boolean
): Hooks<CandidateError> => ({
  shouldRetry: (error) => {
    visit.lastError = error
    if (visit.isOver || !visit.job.mayRetry(error)) return false
    const isClosed = breaker.isCurrent(visit.permit)
    const whenAlone = Effect.zipWith(visit.others, isClosed, (others, closed) => others === 0 && closed)
    const { retry } = options.failover.verdict(CallStream.reasonOf(error))
    if (CallStream.isBroken(visit.call.stream, error)) {
      return visit.call.stream?.recovery === "restart" && retry !== "no" ? whenAlone : false
    }
    switch (retry) {
      case "yes":
        return isClosed
      case "no":
        return false
      case "once": {
        const isFirst = !visit.hasRetriedOnce
        visit.hasRetriedOnce = true
        return isFirst && isClosed
      }
      case "when-alone":
        return whenAlone
    }
  },
  fits: (delay) =>
    Effect.map(
      Deadline.fits(visit.call.deadline, delay, visit.others),
      (isTime) => isTime && mayRepeat(Call.nowOf(visit.call))
    ),
  isStillWanted: breaker.isCurrent(visit.permit),
  onRetry: ({ error, delay }) => {
    visit.backoffMillis = Duration.toMillis(delay)
    const { call, number: attempt } = visit
    if (call.hub.isHeard()) {
      call.hub.tell({ _tag: "RetryScheduled", ...Call.factsOf(call), provider: provider.name, attempt, delay, error })
    }
    return Effect.void
  }
})
