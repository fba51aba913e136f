/** What a model costs, and what a usage comes to by it. */
import { type ConfigError, Either } from "effect"
import * as OptionCheck from "./OptionCheck.ts"
import type { Usage } from "./Usage.ts"

/** US dollars per million tokens; from 0 to 1,000,000. */
export interface Rates {
  /** Tokens read. */
  readonly input: number
  /** Tokens written. Default: unknown, as for a model that only embeds; an answer with output tokens has no cost then. */
  readonly output?: number | undefined
  /** Tokens read from the vendor's cache. Default: `input`. */
  readonly cachedInput?: number | undefined
  /** Tokens written to the vendor's cache. Default: `input`. */
  readonly cacheWrite?: number | undefined
  /** Tokens written to the vendor's cache to be kept for an hour. Default: `cacheWrite`. */
  readonly cacheWrite1h?: number | undefined
  /** Tokens of reasoning. Default: `output`. */
  readonly reasoning?: number | undefined
}

/** The rates of requests that read more than so many tokens; they stand in for all lower ones, for the whole request. */
export interface Tier extends Rates {
  /** Tokens read, those from and to the cache included; a whole number from 0, each in one tier only. */
  readonly above: number
}

/** What a model costs. */
export interface Price extends Rates {
  /** US dollars for a request, whatever its size; from 0 to 1,000,000. Default: 0. */
  readonly request?: number | undefined
  /** Other rates for long requests; the order does not matter. Default: none. */
  readonly tiers?: ReadonlyArray<Tier> | undefined
}

/**
 * What a usage costs by a price, in US dollars: finite and not negative; `undefined` for counts that are not, and for
 * output tokens where the price of output is unknown.
 */
export const costOf = (price: Price, usage: Usage): number | undefined => {
  const rates = ratesOf(price, usage.inputTokens)
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = usage
  const { cacheWriteInputTokens = 0, cacheWrite1hInputTokens = 0 } = usage
  const inputParts = [cachedInputTokens, cacheWriteInputTokens, cacheWrite1hInputTokens]
  if (![inputTokens, outputTokens, reasoningTokens, ...inputParts].every(isCount)) return undefined
  if (outputTokens > 0 && rates.output === undefined) return undefined
  const dollars = (price.request ?? 0) + (inputCost(rates, usage) + outputCost(rates, usage)) / 1_000_000
  return isCount(dollars) ? dollars : undefined
}

/** No part counts for more than what it is a part of: what was read from the cache comes before what was written to it. */
const inputCost = (rates: Rates, usage: Usage): number => {
  const { input, cachedInput = input, cacheWrite = input, cacheWrite1h = cacheWrite } = rates
  const { inputTokens, cachedInputTokens = 0, cacheWriteInputTokens = 0, cacheWrite1hInputTokens = 0 } = usage
  const cached = Math.min(cachedInputTokens, inputTokens)
  const kept = Math.min(cacheWriteInputTokens, inputTokens - cached)
  const kept1h = Math.min(cacheWrite1hInputTokens, kept)
  const plain = inputTokens - cached - kept
  return plain * input + cached * cachedInput + (kept - kept1h) * cacheWrite + kept1h * cacheWrite1h
}

const outputCost = (rates: Rates, usage: Usage): number => {
  const { output = 0, reasoning = output } = rates
  const { outputTokens, reasoningTokens = 0 } = usage
  const reasoned = Math.min(reasoningTokens, outputTokens)
  return (outputTokens - reasoned) * output + reasoned * reasoning
}

/** The price if it is one; the left side names what is wrong with it. */
export const check = (price: Price, path: string): Either.Either<Price, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, price, [...rateNames, "request", "tiers"])
    yield* checkRates(price, path)
    if (price.request !== undefined) yield* checkDollars(`${path}.request`, price.request)
    const { tiers = [] } = price
    if (!Array.isArray(tiers)) return yield* OptionCheck.refuse(`${path}.tiers`, tiers, "a list of tiers")
    for (const [index, tier] of tiers.entries()) {
      const place = `${path}.tiers.${index}`
      yield* OptionCheck.knownKeys(place, tier, [...rateNames, "above"])
      yield* OptionCheck.wholeNumber(`${place}.above`, tier.above, 0)
      if (tiers.findIndex(({ above }) => above === tier.above) < index) {
        return yield* OptionCheck.refuse(`${place}.above`, tier.above, "a number that no other tier has")
      }
      yield* checkRates(tier, place)
    }
    return price
  })

const isCount = (value: number): boolean => value >= 0 && Number.isFinite(value)

const ratesOf = (price: Price, inputTokens: number): Rates => {
  let rates: Rates = price
  let least = -1
  for (const tier of price.tiers ?? []) {
    if (inputTokens <= tier.above || tier.above < least) continue
    rates = tier
    least = tier.above
  }
  return rates
}

const rateNames = ["input", "output", "cachedInput", "cacheWrite", "cacheWrite1h", "reasoning"] as const

const checkRates = (rates: Rates, path: string): Either.Either<void, ConfigError.ConfigError> =>
  Either.gen(function* () {
    for (const name of rateNames) {
      const value = rates[name]
      if (value !== undefined || name === "input") yield* checkDollars(`${path}.${name}`, value)
    }
  })

const checkDollars = (option: string, value: unknown) => OptionCheck.number(option, value, 0, 1_000_000)
