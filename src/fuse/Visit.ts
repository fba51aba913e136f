/** What one call does at one provider: its attempts, within retry, limits and breaker. */
import { Duration, Effect, Either } from "effect"
import type { CandidateError } from "../model/LlmError.ts"
import type * as CircuitState from "../pipeline/CircuitState.ts"
import * as Deadline from "../pipeline/Deadline.ts"
import { type Hooks, retry } from "../pipeline/Retry.ts"
import type * as TokenBucket from "../pipeline/TokenBucket.ts"
import type * as Attempt from "./Attempt.ts"
import * as Call from "./Call.ts"
import * as CallStream from "./CallStream.ts"
import type { Job, Stages } from "./Stages.ts"
import * as Timeouts from "./Timeouts.ts"

interface Visit<A> {
  readonly call: Call.Call
  readonly job: Job<A>
  readonly permit: CircuitState.Permit
  /** How many other providers could take the call over. */
  readonly others: Effect.Effect<number>
  /** Attempts so far. */
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

/** What a call can do at a provider. */
export interface Visits {
  /** Has the provider answer a call. `others` counts the providers that could take the call over. */
  readonly ask: <A>(call: Call.Call, job: Job<A>, others: Effect.Effect<number>) => Effect.Effect<A, CandidateError>
  /** Notes in the story of the call that, and why, the provider did not answer it. */
  readonly noteFailure: (call: Call.Call, error: CandidateError) => void
}

/** The visits to a provider behind its stages. */
export const make = (stages: Stages): Visits => {
  const { provider, options, emit, bucket, breaker, limits } = stages
  const { name } = provider

  const limitsOf = ({ timeouts }: Call.Call): Timeouts.Limits =>
    timeouts === undefined
      ? limits
      : Either.getOrElse(Timeouts.resolve(Timeouts.over(stages.timeouts, timeouts), "timeouts"), () => limits)

  const untimed: Attempt.Time = { limits, shareMillis: Number.POSITIVE_INFINITY }

  /** What of the deadline the next attempt may take. Only with others still to come is there a share to keep to. */
  const shareOf = <A>({ call, others }: Visit<A>): Effect.Effect<number> =>
    Effect.flatMap(others, (count) =>
      count === 0
        ? Effect.succeed(Number.POSITIVE_INFINITY)
        : Effect.map(Deadline.share(call.deadline, Effect.succeed(count)), Duration.toMillis)
    )

  /** The next attempt of a visit, after so long in line. */
  const sendNow = <A>(visit: Visit<A>, inLineMillis: number): Effect.Effect<A, CandidateError> => {
    const { call } = visit
    if (call.deadline === undefined && call.timeouts === undefined) return sendWithin(visit, inLineMillis, untimed)
    const own = limitsOf(call)
    return Effect.flatMap(shareOf(visit), (shareMillis) =>
      sendWithin(visit, inLineMillis, { limits: own, shareMillis })
    )
  }

  const sendWithin = <A>(visit: Visit<A>, inLineMillis: number, time: Attempt.Time) => {
    const { call } = visit
    visit.number += 1
    const begun = Call.begin(call, visit.number, visit.backoffMillis + inLineMillis)
    visit.begun = begun
    return emit === undefined
      ? visit.job.send(stages, call, begun, time)
      : Effect.zipRight(
          emit({ _tag: "AttemptStarted", provider: name, attempt: visit.number }),
          Effect.suspend(() => visit.job.send(stages, call, begun, time))
        )
  }

  /** The same, after taking a token. */
  const sendWithToken = <A>(visit: Visit<A>, { withTokens }: TokenBucket.TokenBucket) => {
    const { call, others } = visit
    const arrivedMillis = Call.nowOf(call)
    const sending = Effect.suspend(() => sendNow(visit, Call.nowOf(call) - arrivedMillis))
    return Effect.flatMap(Deadline.share(call.deadline, others), (share) =>
      Effect.catchTag(withTokens(1, share)(sending), "ThrottledError", (throttled) => {
        rejected(call, visit.number, throttled)
        visit.isOver = true
        // Throttled before a retry, the provider's own last failure is what counts, for the circuit and the caller.
        const failed = Effect.fail(visit.lastError ?? throttled)
        return emit === undefined
          ? failed
          : Effect.zipRight(emit({ _tag: "Throttled", provider: name, wait: throttled.wait }), failed)
      })
    )
  }

  const rejected = (call: Call.Call, number: number, error: CandidateError): void => {
    const begun = Call.begin(call, number, 0)
    Call.end(call, provider, begun, { nowMillis: begun.millis, outcome: "rejected", error })
  }

  const hooks = <A>(visit: Visit<A>): Hooks<CandidateError> => ({
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
    fits: (delay) => Deadline.fits(visit.call.deadline, delay, visit.others),
    isStillWanted: breaker.isCurrent(visit.permit),
    onRetry: ({ attempt, error, delay }) => {
      visit.backoffMillis = Duration.toMillis(delay)
      return emit === undefined ? Effect.void : emit({ _tag: "RetryScheduled", provider: name, attempt, delay, error })
    }
  })

  return {
    ask: <A>(call: Call.Call, job: Job<A>, others: Effect.Effect<number>): Effect.Effect<A, CandidateError> => {
      const obstacle = job.obstacle(provider)
      if (obstacle !== undefined) {
        rejected(call, 0, obstacle)
        return Effect.fail(obstacle)
      }
      let visit: Visit<A> | undefined
      return breaker.withPermit(
        (permit) => {
          const begun = beginVisit(call, job, others, permit)
          visit = begun
          const next = Effect.suspend(() => (bucket === undefined ? sendNow(begun, 0) : sendWithToken(begun, bucket)))
          return permit.isProbe ? next : retry(next, options.retry, () => hooks(begun))
        },
        () => visit?.begun?.firstContentMillis
      )
    },
    noteFailure: (call, error) => {
      if (error._tag === "CircuitOpenError") rejected(call, 0, error)
      Call.tell(call, error)
    }
  }
}

const beginVisit = <A>(
  call: Call.Call,
  job: Job<A>,
  others: Effect.Effect<number>,
  permit: CircuitState.Permit
): Visit<A> => ({
  call,
  job,
  permit,
  others,
  number: 0,
  begun: undefined,
  backoffMillis: 0,
  lastError: undefined,
  hasRetriedOnce: false,
  isOver: false
})
