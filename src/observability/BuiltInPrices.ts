/** The vendors' own prices, from the data of `@pydantic/genai-prices`, which are loaded when they are first needed. */
import { Effect, Either } from "effect"
import * as Price from "../model/Price.ts"
import type { Answerer, Pricing } from "../model/Pricing.ts"
import * as VendorPrice from "./VendorPrice.ts"

/** What is used of `@pydantic/genai-prices`. */
export type PriceData = Pick<typeof import("@pydantic/genai-prices"), "calcPrice" | "findProvider">

/** A pricing that has to be loaded. */
export interface BuiltInPrices extends Pricing {
  /**
   * Loads the data once, however often it is asked; waits for nothing once that is over. Never fails: without data no
   * price is known.
   */
  readonly load: Effect.Effect<void>
  /** How many models are remembered with their prices; at most 1,000. */
  readonly size: () => number
}

/** A pricing on price data of one's own source, with a memory of its own. */
export const make = (source: () => Promise<PriceData>): BuiltInPrices => {
  const found = new Map<string, Found>()
  let data: PriceData | undefined
  let loading: Promise<void> | undefined
  let isOver = false

  const start = (): Promise<void> => {
    // `then` also turns what the source throws into a rejection.
    loading ??= Promise.resolve()
      .then(source)
      .then(
        (loaded) => {
          data = loaded
        },
        () => undefined
      )
      .then(() => {
        isOver = true
      })
    return loading
  }

  const priceOf = (data: PriceData, vendor: string, model: string, atMillis: number | undefined) => {
    const key = `${vendor}\n${model}`
    const known = found.get(key)
    // Without a time it is no number, which equals nothing: a price that changes with time is looked up again.
    const minute = Math.floor((atMillis ?? Number.NaN) / 60_000)
    if (known !== undefined && (known.minute === "any" || known.minute === minute)) return known.price
    const listing = Either.getOrUndefined(Either.try(() => look(data, vendor, model, atMillis)))
    const price = listing && VendorPrice.from(listing.listed, model)
    const [oldest] = found.size >= maxModels && known === undefined ? found.keys() : []
    if (oldest !== undefined) found.delete(oldest)
    found.set(key, { price, minute: listing?.changes ? minute : "any" })
    return price
  }

  return {
    load: Effect.suspend(() => (isOver ? Effect.void : Effect.promise(start))),
    size: () => found.size,
    costOf: (usage, answerer) => {
      if (data === undefined) return undefined
      const { provider, vendor = provider, model, requestedModel, atMillis }: Answerer = answerer
      let price = priceOf(data, vendor, model, atMillis)
      if (price === undefined && requestedModel !== undefined && requestedModel !== model) {
        price = priceOf(data, vendor, requestedModel, atMillis)
      }
      return price === undefined ? undefined : Price.costOf(price, usage)
    }
  }
}

/** The pricing that all calls share. */
export const shared: BuiltInPrices = make(() => import("@pydantic/genai-prices"))

/** A price that was looked up, or that there is none, and the minute for which it holds. */
interface Found {
  readonly price: Price.Price | undefined
  readonly minute: number | "any"
}

const maxModels = 1000

/** Our vendors where the data name them otherwise; `undefined`: no price whatever the data may say one day. */
const ids: ReadonlyMap<string, string | undefined> = new Map([
  ["gemini", "google"],
  ["gemini-native", "google"],
  ["xai", "x-ai"],
  ["azure-openai", "azure"],
  ...["ollama", "lmstudio", "vllm", "llamacpp"].map((local) => [local, undefined] as const)
])

/** The data's own search also takes a name that only contains a vendor's; that would be a guess. */
const idOf = (data: PriceData, vendor: string): string | undefined => {
  if (/^https?:\/\//.test(vendor)) return data.findProvider({ providerApiUrl: vendor })?.id
  const id = ids.has(vendor) ? ids.get(vendor) : vendor
  return id !== undefined && data.findProvider({ providerId: id })?.id === id ? id : undefined
}

const look = (data: PriceData, vendor: string, model: string, atMillis: number | undefined) => {
  const providerId = idOf(data, vendor)
  if (providerId === undefined) return undefined
  // Google's own interface names models by their path.
  const name = providerId === "google" ? model.replace(/^models\//, "") : model
  const timestamp = atMillis === undefined ? {} : { timestamp: new Date(atMillis) }
  const answer = data.calcPrice({}, name, { providerId, ...timestamp })
  return answer === null ? undefined : { listed: answer.model_price, changes: Array.isArray(answer.model.prices) }
}
