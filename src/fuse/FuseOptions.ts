/** The options of LlmFuse, and their check. */
import { type ConfigError, type Duration, Effect, Either } from "effect"
import * as FailoverPolicy from "../model/FailoverPolicy.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import type { FuseEvent } from "../observability/FuseEvent.ts"
import type * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import * as RetryPolicy from "../pipeline/RetryPolicy.ts"
import type { Limits, Provider } from "../provider/Provider.ts"
import { type Recovery, recoveries } from "./CallStream.ts"
import * as Timeouts from "./Timeouts.ts"

/** A provider, or an effect that yields one: `Groq` (the tag), `Groq.make({ model })`, or a provider of your own. */
export type ProviderInput = Provider | Effect.Effect<Provider, unknown, unknown>

/** What building the providers can fail with. */
export type ProviderErrorOf<Input> = Input extends Effect.Effect<infer _A, infer E, infer _R> ? E : never

/** What building the providers needs. */
export type ProviderContextOf<Input> = Input extends Effect.Effect<infer _A, infer _E, infer R> ? R : never

/** Options of `LlmFuse.layer` and `FuseClient.make`. */
export interface Options<Providers extends ReadonlyArray<ProviderInput> = ReadonlyArray<ProviderInput>> {
  /** In order of preference: each call starts with the first. At least one; no two of the same name. */
  readonly providers: Providers
  /** How often a provider is asked again, and after what wait. Default: 3 attempts, full jitter below 500 ms and 1 s. */
  readonly retry?: RetryPolicy.Options | undefined
  /** When a provider is left alone. Default: after 5 consecutive failed calls, for 30 seconds. */
  readonly breaker?: CircuitBreaker.Options | undefined
  /** How much each provider may be asked; a provider's own `limits` win, each for itself. Default: no limit. */
  readonly limits?: Limits | undefined
  /** The limits of an attempt. Default: 30 seconds each; `attempt` off for streams. */
  readonly timeouts?: Timeouts.Timeouts | undefined
  /** The time budget of every call, over waits, attempts and providers; above zero. Default: none. */
  readonly deadline?: Duration.DurationInput | undefined
  /**
   * What happens when a stream breaks after its first content: it fails with `StreamInterruptedError` (`"fail"`), or says
   * `Restarted` and begins afresh on the next provider (`"restart"`). Default: `"fail"`.
   */
  readonly recovery?: Recovery | undefined
  /** What each failure means. Default: `FailoverPolicy.default`, the failure table as it stands. */
  readonly failover?: FailoverPolicy.FailoverPolicy | undefined
  /** Called with everything that happens, as it happens. What it throws is lost and harms no call. Default: nobody. */
  readonly onEvent?: ((event: FuseEvent) => void) | undefined
}

/** Options of one call. */
export interface CallOptions {
  /** Names of the providers to ask, in this order, instead of all in the order of the list. */
  readonly providers?: ReadonlyArray<string> | undefined
  /** The time budget of this call; wins over the option of the same name. */
  readonly deadline?: Duration.DurationInput | undefined
  /** The limits of its attempts; each that is set wins over the options' `timeouts` and a provider's own `timeout`. */
  readonly timeouts?: Timeouts.Timeouts | undefined
  /** What happens when its stream breaks; wins over the option of the same name. */
  readonly recovery?: Recovery | undefined
}

/** The options with all defaults in place. */
export interface Resolved {
  readonly retry: RetryPolicy.RetryPolicy
  readonly breaker: CircuitBreaker.Options
  readonly limits: Limits
  readonly timeouts: Timeouts.Timeouts
  readonly deadlineMillis: number | undefined
  readonly recovery: Recovery
  readonly failover: FailoverPolicy.FailoverPolicy
  readonly onEvent: ((event: FuseEvent) => void) | undefined
}

const optionNames: ReadonlyArray<keyof Options> = [
  "providers",
  "retry",
  "breaker",
  "limits",
  "timeouts",
  "deadline",
  "recovery",
  "failover",
  "onEvent"
]

/** Checks the limits of one provider (or of all): each problem names the option by its full path. */
export const checkLimits = (limits: Limits, path: string): Either.Either<Limits, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, limits, ["requestsPerMinute", "burst", "maxWait"])
    if (limits.requestsPerMinute !== undefined) {
      yield* OptionCheck.positive(`${path}.requestsPerMinute`, limits.requestsPerMinute)
    }
    yield* OptionCheck.wholeNumber(`${path}.burst`, limits.burst ?? 5, 1)
    yield* OptionCheck.durationMillis(`${path}.maxWait`, limits.maxWait ?? 1000, "zero")
    return limits
  })

const checkFunction = (option: string, value: unknown) =>
  value === undefined || typeof value === "function"
    ? Either.right(undefined)
    : OptionCheck.refuse(option, value, "a function")

/** Puts the defaults in place. Fails with a `ConfigError` that names the first wrong option, its value and the rule. */
export const resolve = (options: Options): Effect.Effect<Resolved, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    yield* OptionCheck.knownKeys("", options, optionNames)
    if (!Array.isArray(options.providers) || options.providers.length === 0) {
      return yield* OptionCheck.refuse("providers", options.providers, "a list of at least one provider")
    }
    const timeouts = options.timeouts ?? {}
    yield* Timeouts.resolve(timeouts, "timeouts")
    if (options.failover !== undefined && typeof options.failover.verdict !== "function") {
      return yield* OptionCheck.refuse("failover", options.failover, "a FailoverPolicy, such as FailoverPolicy.strict")
    }
    yield* checkFunction("onEvent", options.onEvent)
    return {
      retry: yield* RetryPolicy.make(options.retry),
      breaker: options.breaker ?? {},
      limits: yield* checkLimits(options.limits ?? {}, "limits"),
      timeouts,
      deadlineMillis:
        options.deadline === undefined
          ? undefined
          : yield* OptionCheck.durationMillis("deadline", options.deadline, "above-zero"),
      recovery: yield* OptionCheck.oneOf("recovery", options.recovery ?? "fail", recoveries),
      failover: options.failover ?? FailoverPolicy.default,
      onEvent: options.onEvent
    }
  })
