/** What one call does at one provider: its attempts, within retry, limits and breaker. */
import { Duration, Effect, Either } from "effect"
import type { ChatEvent } from "../model/ChatEvent.ts"
import type { ChatResponse, ProviderAnswer } from "../model/ChatResponse.ts"
import type { CandidateError, ProviderError } from "../model/LlmError.ts"
import type * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import type * as CircuitState from "../pipeline/CircuitState.ts"
import * as Deadline from "../pipeline/Deadline.ts"
import { type Hooks, retry } from "../pipeline/Retry.ts"
import type * as TokenBucket from "../pipeline/TokenBucket.ts"
import type * as Watch from "../pipeline/Watch.ts"
import type { Provider } from "../provider/Provider.ts"
import { checkAnswer } from "./AnswerCheck.ts"
import * as Attempt from "./Attempt.ts"
import * as Call from "./Call.ts"
import * as CallStream from "./CallStream.ts"
import type { Emit } from "./Emit.ts"
import type { Resolved } from "./FuseOptions.ts"
import * as Timeouts from "./Timeouts.ts"

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

interface Visit {
  readonly call: Call.Call
  readonly permit: CircuitState.Permit
  /** How many other providers could take the call over. */
  readonly others: Effect.Effect<number>
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

/** What a call can do at a provider. */
export interface Visits {
  /** Has the provider answer a call. `others` counts the providers that could take the call over. */
  readonly ask: (call: Call.Call, others: Effect.Effect<number>) => Effect.Effect<ChatResponse, CandidateError>
  /** Notes in the story of the call that, and why, the provider did not answer it. */
  readonly noteFailure: (call: Call.Call, error: CandidateError) => void
}

/** The visits to a provider behind its stages. */
export const make = (stages: Stages): Visits => {
  const { provider, options, emit, bucket, breaker, limits, watch } = stages
  const { name } = provider

  const limitsOf = ({ timeouts }: Call.Call): Timeouts.Limits =>
    timeouts === undefined
      ? limits
      : Either.getOrElse(Timeouts.resolve(Timeouts.over(stages.timeouts, timeouts), "timeouts"), () => limits)

  const untimed: Attempt.Time = { limits, shareMillis: Number.POSITIVE_INFINITY }

  /** What of the deadline the next attempt may take. Only with others still to come is there a share to keep to. */
  const shareOf = ({ call, others }: Visit): Effect.Effect<number> =>
    Effect.flatMap(others, (count) =>
      count === 0
        ? Effect.succeed(Number.POSITIVE_INFINITY)
        : Effect.map(Deadline.share(call.deadline, Effect.succeed(count)), Duration.toMillis)
    )

  /** One request to the provider, and what it came to. Runs within a `suspend`, so that what is thrown is a defect. */
  const send = (
    call: Call.Call,
    begun: Call.Begun,
    time: Attempt.Time
  ): Effect.Effect<ChatResponse, CandidateError> => {
    const isStreamed = provider.stream !== undefined && (call.stream !== undefined || time.limits.areOfStreams)
    const reading = isStreamed || call.stream !== undefined ? Attempt.newReading() : undefined

    const failed = (reason: ProviderError) => {
      const error = reading === undefined ? reason : withText(call, reading, reason)
      const { duration } = Call.end(call, provider, begun, { nowMillis: Call.nowOf(call), outcome: "failure", error })
      return emit === undefined
        ? Effect.fail(error)
        : Effect.zipRight(
            emit({ _tag: "AttemptFailed", provider: name, attempt: begun.number, duration, error }),
            Effect.fail(error)
          )
    }

    const answered = (handedOver: ProviderAnswer | string) => {
      const answer = checkAnswer(name, handedOver)
      if (Either.isLeft(answer)) return failed(answer.left)
      const nowMillis = Call.nowOf(call)
      Call.end(call, provider, begun, { nowMillis, outcome: "success", usage: answer.right.usage })
      const response = Call.respond(call, provider, answer.right, nowMillis)
      if (call.stream === undefined || reading === undefined) return Effect.succeed(response)
      const rest = Attempt.withStart(call.stream, provider, reading, restOf(response, isStreamed))
      return Effect.as(Attempt.handOut(call.stream, rest), response)
    }

    return reading !== undefined && isStreamed
      ? Effect.matchEffect(Attempt.streamed(provider, call, time, reading), {
          onFailure: failed,
          onSuccess: () => answered(reading.transcript.answer)
        })
      : Effect.matchEffect(Attempt.inOnePiece(provider, call, time, watch, limits.wholeMillis), {
          onFailure: failed,
          onSuccess: answered
        })
  }

  /** The next attempt of a visit, after so long in line. */
  const sendNow = (visit: Visit, inLineMillis: number): Effect.Effect<ChatResponse, CandidateError> => {
    const { call } = visit
    if (call.deadline === undefined && call.timeouts === undefined) return sendWithin(visit, inLineMillis, untimed)
    const own = limitsOf(call)
    return Effect.flatMap(shareOf(visit), (shareMillis) =>
      sendWithin(visit, inLineMillis, { limits: own, shareMillis })
    )
  }

  const sendWithin = (visit: Visit, inLineMillis: number, time: Attempt.Time) => {
    const { call } = visit
    visit.number += 1
    const begun = Call.begin(call, visit.number, visit.backoffMillis + inLineMillis)
    return emit === undefined
      ? send(call, begun, time)
      : Effect.zipRight(
          emit({ _tag: "AttemptStarted", provider: name, attempt: visit.number }),
          Effect.suspend(() => send(call, begun, time))
        )
  }

  /** The same, after taking a token. */
  const sendWithToken = (visit: Visit, { withTokens }: TokenBucket.TokenBucket) => {
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

  const hooks = (visit: Visit): Hooks<CandidateError> => ({
    shouldRetry: (error) => {
      visit.lastError = error
      if (visit.isOver) return false
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
    ask: (call, others) =>
      breaker.withPermit((permit) => {
        const visit: Visit = {
          call,
          permit,
          others,
          number: 0,
          backoffMillis: 0,
          lastError: undefined,
          hasRetriedOnce: false,
          isOver: false
        }
        const next = Effect.suspend(() => (bucket === undefined ? sendNow(visit, 0) : sendWithToken(visit, bucket)))
        return permit.isProbe ? next : retry(next, options.retry, () => hooks(visit))
      }),
    noteFailure: (call, error) => {
      if (error._tag === "CircuitOpenError") rejected(call, 0, error)
      Call.tell(call, error)
    }
  }
}

/** The failure of an attempt, with the text that had come: what the caller has been handed makes it a broken stream. */
const withText = (call: Call.Call, reading: Attempt.Reading, reason: ProviderError): ProviderError => {
  const { text } = reading.transcript
  if (call.stream !== undefined && reading.isCommitted) return CallStream.breakOff(call.stream, reason, text)
  return reason._tag === "StreamInterruptedError" && text !== "" ? CallStream.interrupted(reason, text) : reason
}

/** What of a whole answer the caller has not been handed yet. */
const restOf = (response: ChatResponse, wasStreamed: boolean): ReadonlyArray<ChatEvent> => {
  const { text, reasoning, toolCalls } = response
  const calls = toolCalls.map((toolCall): ChatEvent => ({ _tag: "ToolCall", ...toolCall }))
  if (wasStreamed) return calls
  return [
    ...(reasoning === undefined || reasoning === "" ? [] : [{ _tag: "ReasoningDelta", text: reasoning } as const]),
    ...(text === "" ? [] : [{ _tag: "TextDelta", text } as const]),
    ...calls
  ]
}
