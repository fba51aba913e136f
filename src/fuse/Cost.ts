/** What attempts cost, and whether a call may spend more. */
import { Either } from "effect"
import * as Capabilities from "../model/Capabilities.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { CostLimitError, inOwnWords, type ProviderError } from "../model/LlmError.ts"
import { estimateUsage, type Pricing } from "../model/Pricing.ts"
import type { Usage } from "../model/Usage.ts"
import type { Provider } from "../provider/Provider.ts"
import type { Begun, Call } from "./Call.ts"
import { type Billed, costOf } from "./Story.ts"

/**
 * What a usage costs at a provider, in US dollars: finite and not negative; `undefined` where nobody knows. Prices of
 * one's own that throw, or are no such number, are not known: they never harm a call.
 */
export const of = (
  pricing: Pricing,
  { name, vendor, model: requestedModel }: Provider,
  usage: Usage,
  model: string | undefined,
  atMillis: number
): number | undefined => {
  const known = model ?? requestedModel ?? ""
  if (known === "") return undefined
  const cost = Either.getOrUndefined(
    Either.try(() => pricing.costOf(usage, { provider: name, vendor, model: known, requestedModel, atMillis }))
  )
  return cost !== undefined && Number.isFinite(cost) && cost >= 0 ? cost : undefined
}

/** About what a request will use at least: its own length, and the longest answer that it allows where it says so. */
export const expected = (request: ChatRequest): Usage => ({
  inputTokens: Capabilities.estimateTokens({ ...request, maxTokens: undefined }),
  outputTokens: request.maxTokens ?? 0
})

/** What an attempt used and cost, as the provider says. */
export const known = (
  pricing: Pricing,
  provider: Provider,
  usage: Usage,
  model: string | undefined,
  atMillis: number
): Billed => ({ usage, cost: of(pricing, provider, usage, model, atMillis), estimated: false })

/** The estimate of an attempt that ended before its answer did: what is said of its usage so far, and what it wrote. */
export const estimated = (
  pricing: Pricing,
  provider: Provider,
  soFar: Usage,
  writtenCharacters: number,
  atMillis: number
): Billed => {
  const written = estimateUsage(0, writtenCharacters).outputTokens
  const usage = { ...soFar, outputTokens: Math.max(soFar.outputTokens, written) }
  return { usage, cost: of(pricing, provider, usage, undefined, atMillis), estimated: true }
}

/** What an attempt has read and written so far. */
export const soFar = (
  pricing: Pricing,
  begun: Begun,
  usage: Usage = { ...begun.expected(), outputTokens: 0 }
): Billed => estimated(pricing, begun.provider, usage, begun.transcript?.characters ?? 0, begun.wallMillis)

/**
 * What a failed attempt is billed for: what its provider says; else what it had read and written when it was ended.
 * `undefined` where nothing says that it was billed at all.
 */
export const ofFailure = (pricing: Pricing, begun: Begun, error: ProviderError): Billed | undefined => {
  const { usage } = error
  const hasWritten = begun.transcript !== undefined && begun.transcript.characters > 0
  const isCut = error._tag === "StreamInterruptedError" && hasWritten
  if (usage !== undefined && !isCut) return known(pricing, begun.provider, usage, undefined, begun.wallMillis)
  const isEndedByUs = error._tag === "TimeoutError" && error.phase !== "upstream"
  if (!hasWritten && !isEndedByUs) return undefined
  const billed = soFar(pricing, begun, usage)
  return !hasWritten && billed.cost === undefined ? undefined : billed
}

/** What attempts under way will cost at least. */
const underWay = ({ underWay = new Map() }: Call, pricing: Pricing): number => {
  let sum = 0
  for (const begun of underWay.values()) {
    if (!begun.isOver) sum += soFar(pricing, begun, begun.expected()).cost ?? 0
  }
  return sum
}

/**
 * The error of an attempt that the call cannot afford: what it has spent, what its attempts under way and what this one
 * will cost at least come to more than its `maxCost`. What has no known price counts as nothing.
 */
export const obstacleTo = (
  call: Call,
  provider: Provider,
  pricing: Pricing,
  expected: Usage
): CostLimitError | undefined => {
  const { maxCost } = call
  if (maxCost === undefined) return undefined
  const spent = costOf(call) ?? 0
  const pending = underWay(call, pricing)
  const next = of(pricing, provider, expected, undefined, call.clock.unsafeCurrentTimeMillis()) ?? 0
  if (spent + pending + next <= maxCost) return undefined
  const { name } = provider
  const dollars = (value: number) => `$${Number(value.toPrecision(3))}`
  const soFar = `${dollars(spent)} spent${pending === 0 ? "" : ` and about ${dollars(pending)} under way`}`
  const message = `${name}: another attempt would cost about ${dollars(next)}, with ${soFar} of at most ${dollars(maxCost)}`
  return inOwnWords(new CostLimitError({ provider: name, maxCost, spent, message }))
}
