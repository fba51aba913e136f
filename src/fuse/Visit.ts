/** What one call does at one provider: its attempts, within retry, limits and breaker. */
import { Duration, Effect, Either } from "effect"
import type { CandidateError } from "../model/LlmError.ts"
import type * as CircuitState from "../pipeline/CircuitState.ts"
import * as Deadline from "../pipeline/Deadline.ts"
import type { Permit } from "../pipeline/LimiterPermit.ts"
import { retry } from "../pipeline/Retry.ts"
import * as AttemptEnd from "./AttemptEnd.ts"
import * as AttemptSpan from "./AttemptSpan.ts"
import * as Call from "./Call.ts"
import * as CallEnd from "./CallEnd.ts"
import * as Cost from "./Cost.ts"
import * as Limits from "./Limits.ts"
import type { Answer, AttemptTime, Job, Stages } from "./Stages.ts"
import * as Story from "./Story.ts"
import * as Timeouts from "./Timeouts.ts"
import * as VisitRetry from "./VisitRetry.ts"

/** What a call can do at a provider. */
export interface Visits {
  /**
   * Has the provider answer a call. `others` counts the providers that could take the call over; `claim` wins the race
   * against those that are asked at the same time.
   */
  readonly ask: <A extends Answer>(
    call: Call.Call,
    job: Job<A>,
    others: Effect.Effect<number>,
    claim?: () => boolean
  ) => Effect.Effect<A, CandidateError>
  /** Notes and tells that another provider was faster. */
  readonly noteLost: (call: Call.Call) => void
  /** Takes one from what may be retried and hedged; `false` if there is nothing left. */
  readonly mayRepeat: (nowMillis: number) => boolean
  /** Notes in the story of the call that, and why, the provider did not answer it. */
  readonly noteFailure: (call: Call.Call, error: CandidateError) => void
}

/** The visits to a provider behind its stages. */
export const make = (stages: Stages): Visits => {
  const { provider, options, guard, budget, breaker, limits } = stages
  const { name } = provider

  const limitsOf = ({ timeouts }: Call.Call): Timeouts.Limits =>
    timeouts === undefined
      ? limits
      : Either.getOrElse(Timeouts.resolve(Timeouts.over(stages.timeouts, timeouts), "timeouts"), () => limits)

  const giveUp: Call.Begun["giveUp"] = (call, begun, outcome) => AttemptEnd.givenUp(stages, call, begun, outcome)

  const untimed: AttemptTime = { limits, shareMillis: Number.POSITIVE_INFINITY }

  /** What of the deadline the next attempt may take. Only with others still to come is there a share to keep to. */
  const shareOf = <A extends Answer>({ call, others }: VisitRetry.Visit<A>): Effect.Effect<number> =>
    Effect.flatMap(others, (count) =>
      count === 0
        ? Effect.succeed(Number.POSITIVE_INFINITY)
        : Effect.map(Deadline.share(call.deadline, Effect.succeed(count)), Duration.toMillis)
    )

  /** The next attempt of a visit, after so long in line where there is one. */
  const sendNow = <A extends Answer>(visit: VisitRetry.Visit<A>, room?: Permit): Effect.Effect<A, CandidateError> => {
    const { call } = visit
    const inLineMillis = room === undefined ? 0 : Duration.toMillis(room.waited)
    const hold = room?.hold
    const tooExpensive =
      call.maxCost === undefined ? undefined : Cost.obstacleTo(call, provider, options.pricing, visit.job.expected())
    if (tooExpensive !== undefined) return stopped(visit, tooExpensive)
    if (call.deadline === undefined && call.timeouts === undefined) {
      return sendWithin(visit, inLineMillis, hold === undefined ? untimed : { ...untimed, hold })
    }
    const own = limitsOf(call)
    return Effect.flatMap(shareOf(visit), (shareMillis) =>
      sendWithin(visit, inLineMillis, { limits: own, shareMillis, hold })
    )
  }

  const sendWithin = <A extends Answer>(visit: VisitRetry.Visit<A>, inLineMillis: number, time: AttemptTime) => {
    const { call } = visit
    visit.number += 1
    const waitMillis = visit.backoffMillis + inLineMillis
    const begun = Call.begin(call, provider, visit.number, waitMillis, visit.claim, visit.job.expected, giveUp)
    visit.begun = begun
    if (call.hub.isHeard()) tellStart(call, begun)
    const sent = visit.job.send(stages, call, begun, time)
    return call.isTraced ? AttemptSpan.around(call, begun, sent) : sent
  }

  /** The same, when there is room for it. */
  const sendWithRoom = <A extends Answer>(visit: VisitRetry.Visit<A>, room: Limits.Guard) => {
    const { call, others, job } = visit
    const tokens = room.countsTokens ? job.tokens(room.estimateTokens) : 0
    return Effect.flatMap(Deadline.share(call.deadline, others), (atMost) =>
      Effect.catchTag(
        room.limiter.withRoom({ tokens, key: call.tag, atMost }, (permit) =>
          Limits.accounted(room, permit, sendNow(visit, permit))
        ),
        "ThrottledError",
        (throttled) => stopped(visit, throttled)
      )
    )
  }

  /**
   * Ends a visit for a reason of our own. Where that stops a retry, the provider's own last failure is what counts, for
   * the circuit and the caller.
   */
  const stopped = <A extends Answer>(visit: VisitRetry.Visit<A>, error: CandidateError) => {
    rejected(visit.call, visit.number, error)
    visit.isOver = true
    return Effect.fail(visit.lastError ?? error)
  }

  const rejected = (call: Call.Call, attempt: number, error: CandidateError): void => {
    Story.reject(call, name, attempt, error, call.clock.unsafeCurrentTimeMillis())
    if (!call.hub.isHeard()) return
    const facts = { ...Call.factsOf(call), provider: name, attempt }
    call.hub.tell(
      error._tag === "ThrottledError"
        ? { _tag: "Throttled", ...facts, wait: error.wait, error }
        : { _tag: "AttemptRejected", ...facts, error }
    )
  }

  const mayRepeat = (nowMillis: number): boolean => budget === undefined || budget.withdraw(nowMillis)

  return {
    ask: <A extends Answer>(
      call: Call.Call,
      job: Job<A>,
      others: Effect.Effect<number>,
      claim?: () => boolean
    ): Effect.Effect<A, CandidateError> => {
      const obstacle = job.obstacle(provider)
      if (obstacle !== undefined) {
        rejected(call, Story.countOf(call, name), obstacle)
        return Effect.fail(obstacle)
      }
      let visit: VisitRetry.Visit<A> | undefined
      return breaker.withPermit(
        (permit) => {
          budget?.deposit(Call.nowOf(call))
          const begun = beginVisit(call, job, others, permit, claim, Story.countOf(call, name))
          visit = begun
          const next = Effect.suspend(() => (guard === undefined ? sendNow(begun) : sendWithRoom(begun, guard)))
          return permit.isProbe
            ? next
            : retry(next, call.retry ?? options.retry, () => VisitRetry.hooks(stages, begun, mayRepeat))
        },
        () => visit?.begun?.firstContentMillis,
        call
      )
    },
    mayRepeat,
    noteLost: (call) => {
      const begun = call.underWay?.get(name)
      if (begun !== undefined && !begun.isOver) begun.giveUp(call, begun, "hedge-lost")
      else if (call.hub.isHeard()) call.hub.tell({ _tag: "HedgeLost", ...Call.factsOf(call), provider: name })
    },
    noteFailure: (call, error) => {
      if (error._tag === "CircuitOpenError") rejected(call, Story.countOf(call, name), error)
      CallEnd.tell(call, error, name)
    }
  }
}

const tellStart = (call: Call.Call, { provider, number: attempt, waitedMillis }: Call.Begun): void => {
  const waited = Call.whole(waitedMillis)
  call.hub.tell({ _tag: "AttemptStarted", ...Call.factsOf(call), provider: provider.name, attempt, waited })
}

const beginVisit = <A extends Answer>(
  call: Call.Call,
  job: Job<A>,
  others: Effect.Effect<number>,
  permit: CircuitState.Permit,
  claim: (() => boolean) | undefined,
  number: number
): VisitRetry.Visit<A> => ({
  call,
  job,
  permit,
  others,
  claim,
  number,
  begun: undefined,
  backoffMillis: 0,
  lastError: undefined,
  hasRetriedOnce: false,
  isOver: false
})
