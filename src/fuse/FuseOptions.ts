/** The options of LlmFuse, and their check. */
import { type ConfigError, type Duration, Effect, Either } from "effect"
import * as FailoverPolicy from "../model/FailoverPolicy.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import { none as noPrices, type Pricing } from "../model/Pricing.ts"
import { shared as builtIn } from "../observability/BuiltInPrices.ts"
import type { FuseEvent } from "../observability/FuseEvent.ts"
import * as MetricsOptions from "../observability/MetricsOptions.ts"
import type * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import type * as RetryBudget from "../pipeline/RetryBudget.ts"
import * as RetryPolicy from "../pipeline/RetryPolicy.ts"
import type { Provider, Limits as ProviderLimits } from "../provider/Provider.ts"
import type { CacheOptions } from "./CacheOptions.ts"
import { type Recovery, recoveries } from "./CallStream.ts"
import type { Fallback } from "./FallbackAnswer.ts"
import { type HedgeOptions, type HedgeRule, resolve as resolveHedge } from "./HedgeRule.ts"
import * as Limits from "./Limits.ts"
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
  readonly retry?: RetryOptions | undefined
  /**
   * Asks the next provider too when the current one has not answered after a delay; the first answer wins. A stream wins
   * with its first content. Default: off.
   */
  readonly hedge?: HedgeOptions | undefined
  /** When a provider is left alone. Default: after 5 consecutive failed calls, for 30 seconds. */
  readonly breaker?: CircuitBreaker.Options | undefined
  /** How much each provider may be asked; a provider's own `limits` win, each for itself. Default: no limit. */
  readonly limits?: ProviderLimits | undefined
  /** The limits of an attempt. Default: 30 seconds each; `attempt` off for streams. */
  readonly timeouts?: Timeouts.Timeouts | undefined
  /** The time budget of every call, over waits, attempts and providers; above zero. Default: none. */
  readonly deadline?: Duration.DurationInput | undefined
  /**
   * What happens when a stream breaks after its first content: it fails with `StreamInterruptedError` (`"fail"`), or says
   * `Restarted` and begins afresh on the next provider (`"restart"`). Default: `"fail"`.
   */
  readonly recovery?: Recovery | undefined
  /**
   * What to answer instead of an error: a text, or a function that makes an answer of the request and the error, as an
   * effect, a promise or a value. The response says `fallback: true`. For `complete`, `stream` and `object`. Default: none.
   */
  readonly fallback?: Fallback | undefined
  /**
   * Keeps whole answers and gives them again to who asks exactly the same; when every provider fails, stale ones too. For
   * `complete`, `stream` and `object`. Default: off.
   */
  readonly cache?: CacheOptions | undefined
  /**
   * What tokens cost, for `cost` in attempts, responses, events and health. Prices of your own: `Pricing.make({ prices })`.
   * Default: `builtInPrices`, the vendors' published prices, for providers of the vendors' classes; a model that they do
   * not know has no cost. They are loaded with the first call. `Pricing.none`: no prices.
   */
  readonly pricing?: Pricing | undefined
  /**
   * The most that a call may spend, in US dollars; above zero. An attempt that would exceed it is not sent: the next
   * provider may be cheaper. What has no known price counts as nothing. Default: no limit.
   */
  readonly maxCost?: number | undefined
  /** What each failure means. Default: `FailoverPolicy.default`, the failure table as it stands. */
  readonly failover?: FailoverPolicy.FailoverPolicy | undefined
  /**
   * Whether what happens is counted too, in Effect's metrics, by the names of OpenTelemetry's GenAI conventions where they
   * exist: `gen_ai.client.operation.duration`, `llmfuse.attempts`, ... `{ labels }`: yes, with labels of your own on every
   * value. Default: false.
   */
  readonly metrics?: boolean | MetricsOptions.MetricsOptions | undefined
  /**
   * Whether what happens is logged too, with Effect's logger: calls that failed or died of a defect as errors, failovers and
   * circuits as warnings. Default: false.
   */
  readonly logs?: boolean | undefined
  /**
   * Whether events, logs and spans may quote what was asked and answered: errors in the vendors' own words, and on spans
   * `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.system_instructions`. Default: false; they tell facts and
   * numbers. What a call returns or fails with is whole either way.
   */
  readonly captureContent?: boolean | undefined
  /**
   * Called with everything that happens, as it happens. What it throws is lost and harms no call, and so is the failure of a
   * promise that it returns; nobody waits for one. Default: nobody.
   */
  readonly onEvent?: ((event: FuseEvent) => void) | undefined
}

/** How a provider is asked again. */
export interface RetryOptions extends RetryPolicy.Options {
  /**
   * How many retries and hedges there may be beside the calls, for each provider, so that an outage is not multiplied.
   * `false`: any number. Default: one for five calls, and 3 a second.
   */
  readonly budget?: RetryBudget.Options | false | undefined
}

/** Options of one call. */
export interface CallOptions {
  /** Names of the providers to ask, in this order, instead of all in the order of the list. */
  readonly providers?: ReadonlyArray<string> | undefined
  /** The time budget of this call; wins over the option of the same name. */
  readonly deadline?: Duration.DurationInput | undefined
  /** The limits of its attempts; each that is set wins over the options' `timeouts` and a provider's own `timeout`. */
  readonly timeouts?: Timeouts.Timeouts | undefined
  /** How its attempts are repeated; each that is set wins over the options' `retry`. */
  readonly retry?: RetryPolicy.Options | undefined
  /** How it is hedged; wins over the option of the same name. `false`: not at all. */
  readonly hedge?: HedgeOptions | false | undefined
  /** What happens when its stream breaks; wins over the option of the same name. */
  readonly recovery?: Recovery | undefined
  /** The most that it may spend, in US dollars; wins over the option of the same name. */
  readonly maxCost?: number | undefined
  /** A word of your own, such as a tenant: calls with different tags take turns where they wait for limits. */
  readonly tag?: string | undefined
}

/** The options with all defaults in place. */
export interface Resolved {
  readonly retry: RetryPolicy.RetryPolicy
  readonly retryOptions: RetryPolicy.Options
  /** `undefined`: no budget. */
  readonly budget: RetryBudget.Options | undefined
  readonly hedge: HedgeRule | undefined
  readonly fallback: Fallback | undefined
  readonly cache: CacheOptions | undefined
  readonly pricing: Pricing
  readonly maxCost: number | undefined
  readonly breaker: CircuitBreaker.Options
  readonly limits: ProviderLimits
  readonly timeouts: Timeouts.Timeouts
  readonly deadlineMillis: number | undefined
  readonly recovery: Recovery
  readonly failover: FailoverPolicy.FailoverPolicy
  readonly logs: boolean
  /** `undefined`: nothing is counted. */
  readonly metrics: MetricsOptions.MetricsOptions | undefined
  readonly captureContent: boolean
  readonly onEvent: ((event: FuseEvent) => void) | undefined
}

const optionNames: ReadonlyArray<keyof Options> = [
  "providers",
  "retry",
  "hedge",
  "fallback",
  "cache",
  "pricing",
  "maxCost",
  "metrics",
  "breaker",
  "limits",
  "timeouts",
  "deadline",
  "recovery",
  "failover",
  "logs",
  "captureContent",
  "onEvent"
]

/** The vendors' prices, for who says that they are its vendor's: a name alone proves nothing. */
const ofVendors: Pricing = {
  load: builtIn.load,
  costOf: (usage, answerer) => (answerer.vendor === undefined ? undefined : builtIn.costOf(usage, answerer))
}

/** What the prices are to the calls of a service. */
export interface Account {
  /** Whether there may be a price for one of the providers. */
  readonly isPriced: boolean
  /** Fetches the prices; `undefined` where there are none to fetch. */
  readonly load: Effect.Effect<void> | undefined
}

/** What the prices are to calls of these providers. */
export const accountOf = ({ pricing }: Pick<Resolved, "pricing">, providers: ReadonlyArray<Provider>): Account => {
  const isPriced = pricing === ofVendors ? providers.some(({ vendor }) => vendor !== undefined) : pricing !== noPrices
  return { isPriced, load: isPriced ? pricing.load : undefined }
}

const checkFunction = (option: string, value: unknown, allowed = "a function") =>
  value === undefined || typeof value === "function"
    ? Either.right(undefined)
    : OptionCheck.refuse(option, value, allowed)

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
    if (options.pricing !== undefined && typeof options.pricing.costOf !== "function") {
      return yield* OptionCheck.refuse("pricing", options.pricing, "a Pricing, such as Pricing.make({ prices })")
    }
    yield* checkFunction("onEvent", options.onEvent)
    if (typeof options.fallback !== "string") yield* checkFunction("fallback", options.fallback, "a text or a function")
    const { budget = {}, ...retryOptions } = options.retry ?? {}
    return {
      retry: yield* RetryPolicy.make(retryOptions),
      retryOptions,
      budget: budget === false ? undefined : budget,
      hedge: options.hedge === undefined ? undefined : yield* resolveHedge(options.hedge, "hedge"),
      fallback: options.fallback,
      cache: options.cache,
      pricing: options.pricing ?? ofVendors,
      maxCost: options.maxCost === undefined ? undefined : yield* OptionCheck.positive("maxCost", options.maxCost),
      metrics: yield* MetricsOptions.resolve("metrics", options.metrics ?? false),
      breaker: options.breaker ?? {},
      limits: yield* Limits.check(options.limits ?? {}, "limits"),
      timeouts,
      deadlineMillis:
        options.deadline === undefined
          ? undefined
          : yield* OptionCheck.durationMillis("deadline", options.deadline, "above-zero"),
      recovery: yield* OptionCheck.oneOf("recovery", options.recovery ?? "fail", recoveries),
      failover: options.failover ?? FailoverPolicy.default,
      logs: yield* OptionCheck.oneOf("logs", options.logs ?? false, [true, false]),
      captureContent: yield* OptionCheck.oneOf("captureContent", options.captureContent ?? false, [true, false]),
      onEvent: options.onEvent
    }
  })
