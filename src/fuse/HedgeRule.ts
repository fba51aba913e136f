/** When the next provider is asked too, because the current one is slow. */
import { type ConfigError, Duration, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import type { Latency } from "../pipeline/Latency.ts"

/** A delay that follows how long a provider has taken lately. */
export interface PercentileDelay {
  /**
   * The share of its recent answers that a provider must be slower than; above 0, below 1. While there are too few of
   * them (20) nothing is hedged.
   */
  readonly percentile: number
  /** The delay is never shorter; from 0. Default: 100 ms. */
  readonly floor?: Duration.DurationInput | undefined
}

/** How hedging goes. */
export interface HedgeOptions {
  /** How long a provider may take before the next one is asked too: a duration, or a percentile of its recent latency. */
  readonly delay: Duration.DurationInput | PercentileDelay
  /** How many may be asked at once beside the first; a whole number from 1. Default: 1. */
  readonly maxHedges?: number | undefined
  /**
   * Whether a request is hedged too that holds results of tools: two providers may then both go on with what the tools
   * have begun. Default: false.
   */
  readonly toolResults?: boolean | undefined
}

/** Hedging with all defaults in place. */
export interface HedgeRule {
  /** The delay in milliseconds for a provider of such a latency; undefined: do not hedge now. */
  readonly delayMillis: (latency: Latency) => number | undefined
  readonly maxHedges: number
  readonly toolResults: boolean
}

const isPercentile = (delay: HedgeOptions["delay"]): delay is PercentileDelay =>
  typeof delay === "object" && delay !== null && !Duration.isDuration(delay) && !Array.isArray(delay)

const checkedDelay = (
  delay: HedgeOptions["delay"],
  path: string
): Either.Either<HedgeRule["delayMillis"], ConfigError.ConfigError> =>
  Either.gen(function* () {
    if (!isPercentile(delay)) {
      const millis = yield* OptionCheck.durationMillis(path, delay, "above-zero")
      return () => millis
    }
    yield* OptionCheck.knownKeys(path, delay, ["percentile", "floor"])
    const { percentile, floor = 100 } = delay
    if (!(typeof percentile === "number" && percentile > 0 && percentile < 1)) {
      return yield* OptionCheck.refuse(`${path}.percentile`, percentile, "a number above 0 and below 1")
    }
    const floorMillis = yield* OptionCheck.durationMillis(`${path}.floor`, floor, "zero")
    return (latency: Latency) => {
      const millis = latency.percentile(percentile)
      return millis === undefined ? undefined : Math.max(floorMillis, Math.ceil(millis))
    }
  })

/** Puts the defaults in place. Fails with a `ConfigError` that names the first wrong option, its value and the rule. */
export const resolve = (options: HedgeOptions, path: string): Either.Either<HedgeRule, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["delay", "maxHedges", "toolResults"])
    return {
      delayMillis: yield* checkedDelay(options.delay, `${path}.delay`),
      maxHedges: yield* OptionCheck.wholeNumber(`${path}.maxHedges`, options.maxHedges ?? 1, 1),
      toolResults: yield* OptionCheck.oneOf(`${path}.toolResults`, options.toolResults ?? false, [true, false])
    }
  })
