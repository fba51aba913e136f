/** The limits of one provider: requests, tokens and calls in flight, and a rate that adapts. */
import { type ConfigError, Duration, Effect, Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import { type CandidateError, RateLimitError, StreamInterruptedError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import type { EventHub } from "../observability/EventHub.ts"
import * as AdaptiveRate from "../pipeline/AdaptiveRate.ts"
import * as Limiter from "../pipeline/Limiter.ts"
import type { Permit } from "../pipeline/LimiterPermit.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import type { Limits } from "../provider/Provider.ts"

/** What guards a provider that has limits. */
export interface Guard {
  readonly limiter: Limiter.Limiter
  readonly adaptive: AdaptiveRate.AdaptiveRate<CandidateError> | undefined
  /** Whether tokens are counted; then a request's are estimated before it is sent. */
  readonly countsTokens: boolean
  readonly estimateTokens: ((request: ChatRequest) => number) | undefined
}

const optionNames: ReadonlyArray<keyof Limits> = [
  "requestsPerMinute",
  "tokensPerMinute",
  "concurrency",
  "burst",
  "maxWait",
  "maxQueue",
  "adaptive",
  "estimateTokens"
]

const adaptiveNames = ["floor", "ceiling", "decrease", "increase"]

type Checked<A> = Either.Either<A, ConfigError.ConfigError>

/** Checks the limits of one provider (or of all): each problem names the option by its full path. */
export const check = (limits: Limits, path: string): Checked<Limits> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, limits, optionNames)
    const { requestsPerMinute, tokensPerMinute, concurrency, adaptive, estimateTokens } = limits
    if (requestsPerMinute !== undefined) yield* OptionCheck.positive(`${path}.requestsPerMinute`, requestsPerMinute)
    if (tokensPerMinute !== undefined) yield* OptionCheck.positive(`${path}.tokensPerMinute`, tokensPerMinute)
    if (concurrency !== undefined) yield* OptionCheck.wholeNumber(`${path}.concurrency`, concurrency, 1)
    yield* OptionCheck.wholeNumber(`${path}.burst`, limits.burst ?? 5, 1)
    yield* OptionCheck.durationMillis(`${path}.maxWait`, limits.maxWait ?? 1000, "zero")
    yield* OptionCheck.wholeNumber(`${path}.maxQueue`, limits.maxQueue ?? 100, 0)
    if (typeof adaptive === "object") yield* OptionCheck.knownKeys(`${path}.adaptive`, adaptive, adaptiveNames)
    else yield* OptionCheck.oneOf(`${path}.adaptive`, adaptive ?? false, [true, false])
    if (estimateTokens !== undefined && typeof estimateTokens !== "function") {
      return yield* OptionCheck.refuse(`${path}.estimateTokens`, estimateTokens, "a function")
    }
    return limits
  })

/** Builds what the limits want; `undefined` if they want nothing. */
export const make = (
  limits: Limits,
  name: string,
  path: string,
  hub: EventHub
): Effect.Effect<Guard | undefined, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    const { requestsPerMinute, tokensPerMinute, concurrency, adaptive, burst = 5, maxWait, maxQueue } = limits
    const isAdaptive = adaptive !== undefined && adaptive !== false
    if (requestsPerMinute === undefined && tokensPerMinute === undefined && concurrency === undefined && !isAdaptive) {
      return undefined
    }
    const limiter = yield* Limiter.make(
      {
        requests: requestsPerMinute === undefined ? undefined : { limit: requestsPerMinute, burst },
        tokens: tokensPerMinute === undefined ? undefined : { limit: tokensPerMinute },
        concurrency,
        maxQueue,
        maxWait
      },
      name,
      path
    )
    const guard = { limiter, countsTokens: tokensPerMinute !== undefined, estimateTokens: limits.estimateTokens }
    if (!isAdaptive) return { ...guard, adaptive: undefined }
    const options = { ceiling: requestsPerMinute, burst, ...(adaptive === true ? {} : adaptive) }
    const hooks = { name, limiter, classify: throttlingOf, ...listeners(name, hub) }
    return { ...guard, adaptive: yield* AdaptiveRate.make<CandidateError>(options, hooks, `${path}.adaptive`) }
  })

/** A rate rises a little with every answer; it is worth an event when it has risen by this share. */
const worthTelling = 1.1

const listeners = (provider: string, hub: EventHub) => {
  let told: number | undefined
  const tell = (_tag: "RateLowered" | "RateRaised", from: number | undefined, to: number) => {
    told = to
    if (hub.isHeard()) hub.tell({ _tag, at: hub.now(), callId: undefined, provider, from, to })
  }
  return {
    onLowered: ({ from, to }: Change) => Effect.sync(() => tell("RateLowered", from, to)),
    onRaised: ({ from, to }: Change) =>
      Effect.sync(() => {
        const before = told ?? from
        if (before === undefined || to >= before * worthTelling) tell("RateRaised", before, to)
      })
  }
}

type Change = Parameters<NonNullable<AdaptiveRate.Hooks<unknown>["onLowered"]>>[0]

const throttlingOf = (error: CandidateError): AdaptiveRate.Throttling | undefined =>
  error instanceof RateLimitError ? { retryAfter: error.retryAfter } : undefined

/** What an attempt that was given room brings to account: the tokens that it used, and what it says about the rate. */
export const accounted = <A extends Pick<ProviderAnswer, "usage" | "rateLimits">, E extends CandidateError>(
  { limiter, adaptive, countsTokens }: Guard,
  permit: Permit,
  attempt: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.flatMap(Monotonic.millis, (startedAtMillis) =>
    Effect.tapBoth(attempt, {
      onSuccess: ({ usage, rateLimits }) =>
        Effect.all(
          [
            usage === undefined || !countsTokens
              ? Effect.void
              : permit.reconcile(usage.inputTokens + usage.outputTokens),
            rateLimits === undefined ? Effect.void : limiter.correct(rateLimits, permit),
            adaptive === undefined ? Effect.void : adaptive.onSuccess(startedAtMillis)
          ],
          { discard: true }
        ),
      onFailure: (error) =>
        Effect.zipRight(
          // A stream that broke has used tokens, nobody knows how many: the estimate stands.
          !countsTokens || error instanceof StreamInterruptedError ? Effect.void : permit.refund,
          adaptive !== undefined && error instanceof RateLimitError
            ? adaptive.onThrottled(startedAtMillis, error.retryAfter && Duration.toMillis(error.retryAfter))
            : Effect.void
        )
    })
  )
