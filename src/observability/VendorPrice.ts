/** A model's price in the words of `@pydantic/genai-prices`, in ours. */
import type { Price, Rates } from "../model/Price.ts"

/** US dollars per million tokens: one number, or other numbers for requests that read more than `start` tokens. */
export type Tiered = number | { readonly base: number; readonly tiers: ReadonlyArray<{ start: number; price: number }> }

/** What the data has for a model, by kind of token. Kinds that no usage of ours counts, such as audio, are left out. */
export type Listed = Readonly<Record<string, Tiered | undefined>>

/**
 * The price of a model; `undefined` where nothing is listed for input, so that what is only free for some is not free
 * for all. OpenRouter marks what costs nothing for everybody with `:free`.
 */
export const from = (listed: Listed, model: string): Price | undefined => {
  if (listed.input_mtok === undefined) {
    return Object.keys(listed).length === 0 && model.endsWith(":free") ? { input: 0, output: 0 } : undefined
  }
  const starts = new Set(kinds.flatMap((kind) => startsOf(listed[kind])))
  const request = listed.requests_kcount
  return {
    ...ratesAt(listed, 0),
    ...(typeof request === "number" ? { request: request / 1000 } : {}),
    tiers: [...starts].map((start) => ({ above: start, ...ratesAt(listed, start + 1) }))
  }
}

const kinds = [
  "input_mtok",
  "output_mtok",
  "cache_read_mtok",
  "cache_write_mtok",
  "cache_write_1h_mtok",
  "output_reasoning_mtok"
] as const

const startsOf = (tiered: Tiered | undefined): ReadonlyArray<number> =>
  typeof tiered === "object" ? tiered.tiers.map(({ start }) => start) : []

const ratesAt = (listed: Listed, inputTokens: number): Rates => ({
  input: at(listed.input_mtok, inputTokens) ?? 0,
  output: at(listed.output_mtok, inputTokens),
  cachedInput: at(listed.cache_read_mtok, inputTokens),
  cacheWrite: at(listed.cache_write_mtok, inputTokens),
  cacheWrite1h: at(listed.cache_write_1h_mtok, inputTokens),
  reasoning: at(listed.output_reasoning_mtok, inputTokens)
})

const at = (tiered: Tiered | undefined, inputTokens: number): number | undefined => {
  if (typeof tiered !== "object") return tiered
  const reached = tiered.tiers.filter(({ start }) => inputTokens > start)
  return reached.length === 0 ? tiered.base : reached.reduce((high, it) => (it.start > high.start ? it : high)).price
}
