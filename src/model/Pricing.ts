/** Who knows what tokens cost: prices of one's own before all others. */
import { ConfigError, Effect, Either } from "effect"
import * as Capabilities from "./Capabilities.ts"
import * as OptionCheck from "./OptionCheck.ts"
import * as Price from "./Price.ts"
import type { Usage } from "./Usage.ts"

/** Who answered. */
export interface Answerer {
  /** The name of the provider. */
  readonly provider: string
  /** Its vendor, such as `groq`, or the address that is asked. Default: the provider's name is taken for the vendor's. */
  readonly vendor?: string | undefined
  /** The model that answered, as the vendor reports it. */
  readonly model: string
  /** The model as it was asked for, which is looked up where the reported one has no price. Default: none. */
  readonly requestedModel?: string | undefined
  /** When it was asked, in milliseconds since 1970, for prices that depend on the date or the hour. Default: now. */
  readonly atMillis?: number | undefined
}

/** Knows prices. */
export interface Pricing {
  /**
   * What a usage costs in US dollars, finite and not negative; `undefined` where the price is not known, never a guess.
   * What it throws, or any other number, is taken for not known.
   */
  readonly costOf: (usage: Usage, answerer: Answerer) => number | undefined
  /**
   * Fetches the prices. It is run with the first call; a call with `maxCost` waits for it, at most 10 seconds or half of
   * its deadline. If it fails, it is run again with the next call, which does without prices meanwhile. Default: they are
   * known from the start.
   */
  readonly load?: Effect.Effect<void> | undefined
}

/** Options of a pricing. */
export interface Options {
  /**
   * Prices of one's own, by `provider/model`, by `model`, or by `provider/*` for every model of a provider, the more
   * special key first; any other key is refused. A provider is meant by its name or its vendor's. Default: none.
   */
  readonly prices?: Readonly<Record<string, Price.Price>> | undefined
  /** Where all other prices come from. Default: nowhere. */
  readonly fallback?: Pricing | undefined
}

/** Knows no price. */
export const none: Pricing = { costOf: () => undefined }

/** A pricing from options; the left side names the first wrong option. */
export const check = (options: Options, path: string): Either.Either<Pricing, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["prices", "fallback"])
    const { prices = {}, fallback = none } = options
    if (typeof fallback?.costOf !== "function") {
      return yield* OptionCheck.refuse(`${path}.fallback`, fallback, "a Pricing")
    }
    // A Map or a Set has no keys of that kind, and would pass for no prices at all.
    if (Object.prototype.toString.call(prices) !== "[object Object]") {
      return yield* OptionCheck.refuse(`${path}.prices`, prices, "an object with a price for each model")
    }
    const own = new Map<string, Price.Price>()
    for (const [key, price] of Object.entries(prices)) {
      yield* checkKey(path, key)
      own.set(key, yield* Price.check(price, `${path}.prices.${key}`))
    }
    return own.size === 0 ? fallback : withOwn(own, fallback)
  })

/** A key that some answer can have: another would be a price, and with `maxCost` a limit, that nobody misses. */
const checkKey = (path: string, key: string): Either.Either<void, ConfigError.ConfigError> => {
  const name = key.endsWith("/*") ? key.slice(0, -2) : key
  const isPart = name !== "" && name === name.trim() && !name.includes("*") && !name.startsWith("/")
  if (isPart && !key.endsWith("/")) return Either.right(undefined)
  const allowed = `a key that is a model, "provider/model", or "provider/*" for every model of a provider`
  return Either.left(
    ConfigError.InvalidData(
      [...path.split("."), "prices", key],
      `${path}.prices has the key ${JSON.stringify(key)}; allowed: ${allowed}`
    )
  )
}

/** The same as an effect. Fails with a `ConfigError` that names a wrong option. */
export const make = (options: Options = {}, path = "pricing"): Effect.Effect<Pricing, ConfigError.ConfigError> =>
  Effect.suspend(() => check(options, path))

/** A pricing with prices of one's own before its others. Fails as `make` does. */
export const register = (
  pricing: Pricing,
  prices: Readonly<Record<string, Price.Price>>
): Effect.Effect<Pricing, ConfigError.ConfigError> => make({ prices, fallback: pricing })

/** About what was used, by the length of the texts in characters: for an answer that was cut before its usage came. */
export const estimateUsage = (requestCharacters: number, answerCharacters: number): Usage => {
  const tokens = (characters: number) =>
    Number.isFinite(characters) && characters > 0 ? Math.ceil(characters / Capabilities.charactersPerToken) : 0
  return { inputTokens: tokens(requestCharacters), outputTokens: tokens(answerCharacters) }
}

const withOwn = (own: ReadonlyMap<string, Price.Price>, fallback: Pricing): Pricing => ({
  load: fallback.load,
  costOf: (usage, answerer) => {
    const { provider, vendor = provider, model, requestedModel = model } = answerer
    const price =
      own.get(`${provider}/${model}`) ??
      own.get(`${provider}/${requestedModel}`) ??
      own.get(`${vendor}/${model}`) ??
      own.get(`${vendor}/${requestedModel}`) ??
      own.get(model) ??
      own.get(requestedModel) ??
      own.get(`${provider}/*`) ??
      own.get(`${vendor}/*`)
    return price === undefined ? fallback.costOf(usage, answerer) : Price.costOf(price, usage)
  }
})
