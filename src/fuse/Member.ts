/** A provider with the stages that guard it. */
import { type ConfigError, Duration, Effect, Either, Exit, type Scope } from "effect"
import type { ChatResponse, ProviderAnswer } from "../model/ChatResponse.ts"
import { type CandidateError, type ProviderError, TimeoutError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import { attemptTimeout } from "../pipeline/AttemptTimeout.ts"
import * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import type * as CircuitState from "../pipeline/CircuitState.ts"
import * as Deadline from "../pipeline/Deadline.ts"
import { type Hooks, retry } from "../pipeline/Retry.ts"
import * as TokenBucket from "../pipeline/TokenBucket.ts"
import * as Watch from "../pipeline/Watch.ts"
import type { Limits, Provider } from "../provider/Provider.ts"
import { checkAnswer } from "./AnswerCheck.ts"
import * as Call from "./Call.ts"
import type { Emit } from "./Emit.ts"
import { checkLimits, type Resolved } from "./FuseOptions.ts"

/** A provider in the list, with its own circuit and limits. */
export interface Member {
  readonly provider: Provider
  readonly circuitState: Effect.Effect<CircuitState.CircuitState>
  /**
   * Has the provider answer a call, behind its breaker, with retries, limits and timeout. `isAlone` tells whether no
   * other provider could take the call over.
   */
  readonly ask: (call: Call.Call, isAlone: Effect.Effect<boolean>) => Effect.Effect<ChatResponse, CandidateError>
}

/** What a typed failure means for the circuit: the failure table's word, with the hint that the error brings. */
const classifyFor =
  ({ failover, retry }: Resolved) =>
  (error: CandidateError): CircuitState.Outcome => {
    const hint = error.retryAfter === undefined ? undefined : Duration.toMillis(error.retryAfter)
    switch (failover.verdict(error).breaker) {
      case "ignored":
        return "ignored"
      case "counts":
        return "failure"
      case "counts-or-opens":
        return hint !== undefined && hint > retry.maxDelayMillis ? { openForMillis: hint } : "failure"
      case "opens":
        return { openForMillis: hint }
    }
  }

const makeBucket = (limits: Limits, name: string, path: string) =>
  limits.requestsPerMinute === undefined
    ? Effect.succeed(undefined)
    : TokenBucket.make(
        { limit: limits.requestsPerMinute, burst: limits.burst ?? 5, maxWait: limits.maxWait ?? "1 second" },
        name,
        path
      )

/** Checks what a provider says about itself and gives it its stages. */
export const make = (
  provider: Provider,
  options: Resolved,
  emit: Emit | undefined
): Effect.Effect<Member, ConfigError.ConfigError, Scope.Scope> =>
  Effect.gen(function* () {
    const { name } = provider
    const path = `providers.${name}`
    const own = yield* checkLimits(provider.limits ?? {}, `${path}.limits`)
    const isSet = ([, value]: readonly [string, unknown]) => value !== undefined
    const limits: Limits = { ...options.limits, ...Object.fromEntries(Object.entries(own).filter(isSet)) }
    const bucket = yield* makeBucket(limits, name, `${path}.limits`)
    const attemptMillis =
      provider.timeout === undefined
        ? options.attemptMillis
        : yield* OptionCheck.durationMillis(`${path}.timeout`, provider.timeout, "above-zero")
    const breaker = yield* CircuitBreaker.make<CandidateError>(options.breaker, {
      name,
      classify: classifyFor(options),
      ...(emit === undefined
        ? {}
        : {
            onOpen: ({ error, openUntil }: CircuitBreaker.Opened) =>
              emit({ _tag: "CircuitOpened", provider: name, openUntil, error }),
            onHalfOpen: emit({ _tag: "CircuitHalfOpened", provider: name }),
            onClose: emit({ _tag: "CircuitClosed", provider: name })
          })
    })
    const watch = yield* Effect.acquireRelease(
      Effect.sync(() => Watch.make(attemptMillis)),
      ({ stop }) => stop
    )
    return fromStages({ provider, options, emit, bucket, breaker, attemptMillis, watch })
  })

interface Stages {
  readonly provider: Provider
  readonly options: Resolved
  readonly emit: Emit | undefined
  readonly bucket: TokenBucket.TokenBucket | undefined
  readonly breaker: CircuitBreaker.CircuitBreaker<CandidateError>
  readonly attemptMillis: number
  readonly watch: Watch.Watch
}

const fromStages = ({ provider, options, emit, bucket, breaker, attemptMillis, watch }: Stages): Member => {
  const { name } = provider
  const timedOut = () =>
    new TimeoutError({ provider: name, phase: "attempt", message: `${name}: no answer within ${attemptMillis} ms` })
  const interruptAfter = attemptTimeout(attemptMillis, timedOut)

  /** The provider's answer within the time of an attempt. What is there already needs no timer. */
  const answerTo = ({ request, clock }: Call.Call): Effect.Effect<ProviderAnswer | string, ProviderError> => {
    if (provider.completeWithin !== undefined) {
      return provider.completeWithin(request, {
        start: (onExpire) => watch.start(clock, () => onExpire(timedOut()))
      })
    }
    const answer = provider.complete(request)
    return Exit.isExit(answer) ? answer : interruptAfter(answer)
  }

  /** One request to the provider, and what it came to. Runs within a `suspend`, so that what is thrown is a defect. */
  const send = (call: Call.Call, begun: Call.Begun): Effect.Effect<ChatResponse, CandidateError> => {
    const failed = (error: ProviderError) => {
      const { duration } = Call.end(call, provider, begun, { nowMillis: Call.nowOf(call), outcome: "failure", error })
      return emit === undefined
        ? Effect.fail(error)
        : Effect.zipRight(
            emit({ _tag: "AttemptFailed", provider: name, attempt: begun.number, duration, error }),
            Effect.fail(error)
          )
    }
    return Effect.matchEffect(answerTo(call), {
      onFailure: failed,
      onSuccess: (handedOver) => {
        const answer = checkAnswer(name, handedOver)
        if (Either.isLeft(answer)) return failed(answer.left)
        const nowMillis = Call.nowOf(call)
        Call.end(call, provider, begun, { nowMillis, outcome: "success", usage: answer.right.usage })
        return Effect.succeed(Call.respond(call, provider, answer.right, nowMillis))
      }
    })
  }

  /** The next attempt of a visit, after so long in line. */
  const sendNow = (visit: Visit, inLineMillis: number): Effect.Effect<ChatResponse, CandidateError> => {
    const { call } = visit
    visit.number += 1
    const begun = Call.begin(call, visit.number, visit.backoffMillis + inLineMillis)
    return emit === undefined
      ? send(call, begun)
      : Effect.zipRight(
          emit({ _tag: "AttemptStarted", provider: name, attempt: visit.number }),
          Effect.suspend(() => send(call, begun))
        )
  }

  /** The same, after taking a token. */
  const sendWithToken = (visit: Visit, { withTokens }: TokenBucket.TokenBucket) => {
    const { call } = visit
    const arrivedMillis = Call.nowOf(call)
    const sending = Effect.suspend(() => sendNow(visit, Call.nowOf(call) - arrivedMillis))
    return Effect.flatMap(Deadline.remaining(call.deadline), (left) =>
      Effect.catchTag(withTokens(1, left)(sending), "ThrottledError", (throttled) => {
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

  const hooks = (visit: Visit, isAlone: Effect.Effect<boolean>): Hooks<CandidateError> => ({
    shouldRetry: (error) => {
      visit.lastError = error
      if (visit.isOver) return false
      const isClosed = breaker.isCurrent(visit.permit)
      switch (options.failover.verdict(error).retry) {
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
          return Effect.zipWith(isAlone, isClosed, (alone, closed) => alone && closed)
      }
    },
    fits: (delay) => Deadline.fits(visit.call.deadline, delay),
    isStillWanted: breaker.isCurrent(visit.permit),
    onRetry: ({ attempt, error, delay }) => {
      visit.backoffMillis = Duration.toMillis(delay)
      return emit === undefined ? Effect.void : emit({ _tag: "RetryScheduled", provider: name, attempt, delay, error })
    }
  })

  const ask: Member["ask"] = (call, isAlone) =>
    Effect.mapError(
      breaker.withPermit((permit) => {
        const visit: Visit = {
          call,
          permit,
          number: 0,
          backoffMillis: 0,
          lastError: undefined,
          hasRetriedOnce: false,
          isOver: false
        }
        const next = Effect.suspend(() => (bucket === undefined ? sendNow(visit, 0) : sendWithToken(visit, bucket)))
        return permit.isProbe ? next : retry(next, options.retry, () => hooks(visit, isAlone))
      }),
      (error) => {
        if (error._tag === "CircuitOpenError") rejected(call, 0, error)
        return Call.tell(call, error)
      }
    )

  return { provider, circuitState: breaker.state, ask }
}

/** What one call does at one provider. */
interface Visit {
  readonly call: Call.Call
  readonly permit: CircuitState.Permit
  /** Attempts so far. */
  number: number
  /** The wait before the next attempt. */
  backoffMillis: number
  lastError: CandidateError | undefined
  /** Whether a failure that may be retried once has been. */
  hasRetriedOnce: boolean
  /** Whether our own limiter has ended the visit. */
  isOver: boolean
}
