/** What attempts cost, and whether a call may spend more. */
import * as Capabilities from "../model/Capabilities.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { CostLimitError } from "../model/LlmError.ts"
import { estimateUsage, type Pricing } from "../model/Pricing.ts"
import type { Usage } from "../model/Usage.ts"
import type { Provider } from "../provider/Provider.ts"
import type { Call } from "./Call.ts"
import { type Billed, costOf } from "./Story.ts"

/** What a usage costs at a provider, in US dollars; `undefined` where nobody knows. */
export const of = (
  pricing: Pricing,
  { name, vendor, model: requestedModel }: Provider,
  usage: Usage,
  model: string | undefined,
  atMillis: number
): number | undefined => {
  const known = model ?? requestedModel ?? ""
  return known === ""
    ? undefined
    : pricing.costOf(usage, { provider: name, vendor, model: known, requestedModel, atMillis })
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

/** The estimate of an attempt that ended before its answer did: what is said of its usage so far, and its text. */
export const estimated = (
  pricing: Pricing,
  provider: Provider,
  soFar: Usage,
  text: string,
  atMillis: number
): Billed => {
  const written = estimateUsage(0, text.length).outputTokens
  const usage = { ...soFar, outputTokens: Math.max(soFar.outputTokens, written) }
  return { usage, cost: of(pricing, provider, usage, undefined, atMillis), estimated: true }
}

/**
 * The error of an attempt that the call cannot afford: what it has spent and what the attempt will cost at least come to
 * more than its `maxCost`. What has no known price counts as nothing.
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
  const next = of(pricing, provider, expected, undefined, call.clock.unsafeCurrentTimeMillis()) ?? 0
  if (spent + next <= maxCost) return undefined
  const { name } = provider
  const dollars = (value: number) => `$${Number(value.toPrecision(3))}`
  const message = `${name}: another attempt would cost about ${dollars(next)}, with ${dollars(spent)} spent of at most ${dollars(maxCost)}`
  return new CostLimitError({ provider: name, maxCost, spent, message })
}
