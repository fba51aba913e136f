/** The end of an attempt: in the story of its call, in what is remembered of its provider, and for those who listen. */
import { Effect } from "effect"
import type { Attempt, ProviderError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import * as Call from "./Call.ts"
import * as Cost from "./Cost.ts"
import type { Stages } from "./Stages.ts"
import * as Story from "./Story.ts"

/** What an end is noted in. */
type Where = Pick<Stages, "provider" | "options" | "record">

/** Notes and tells that an attempt was answered. */
export const succeeded = (
  { provider, options, record }: Where,
  call: Call.Call,
  begun: Call.Begun,
  { usage, model }: { readonly usage?: Usage | undefined; readonly model?: string | undefined },
  nowMillis: number
): void => {
  const { millis, firstContentMillis } = begun
  record.succeeded(nowMillis - millis, firstContentMillis && firstContentMillis - millis)
  const billed = usage && Cost.known(options.pricing, provider, usage, model, begun.wallMillis)
  record.spent(billed?.cost)
  const attempt = Story.end(call, begun, { nowMillis, outcome: "success", billed })
  if (call.hub.isHeard()) tellSuccess(call, attempt, model ?? provider.model ?? "")
}

const tellSuccess = (call: Call.Call, attempt: Attempt, model: string): void => {
  const { timeToFirstToken } = attempt
  call.hub.tell({
    _tag: "AttemptSucceeded",
    ...Call.factsOf(call),
    ...endOf(attempt),
    model,
    timeToFirstToken
  })
}

/** Notes and tells that an attempt has failed. What fails after it was given up is nobody's concern. */
export const failed = (
  { options, record }: Where,
  call: Call.Call,
  begun: Call.Begun,
  error: ProviderError
): Effect.Effect<never, ProviderError> => {
  if (begun.isOver) return Effect.fail(error)
  const billed = Cost.ofFailure(options.pricing, begun, error)
  const attempt = Story.end(call, begun, { nowMillis: Call.nowOf(call), outcome: "failure", error, billed })
  record.spent(attempt.cost)
  record.failed(call.hub.discreet(error), Call.wallTimeOf(call))
  if (call.hub.isHeard()) {
    call.hub.tell({ _tag: "AttemptFailed", ...Call.factsOf(call), ...endOf(attempt), error })
  }
  return Effect.fail(error)
}

/**
 * Notes and tells that nobody waits for an attempt any more. It has been asked, and will be billed at least for what it
 * has read and written so far.
 */
export const givenUp = (
  { options, record }: Where,
  call: Call.Call,
  begun: Call.Begun,
  outcome: Call.GivenUp
): void => {
  const billed = Cost.soFar(options.pricing, begun)
  const isPriced = billed.cost !== undefined
  const attempt = Story.end(call, begun, {
    nowMillis: Call.nowOf(call),
    outcome,
    billed: isPriced ? billed : undefined
  })
  record.spent(attempt.cost)
  if (call.hub.isHeard()) {
    const _tag = outcome === "hedge-lost" ? "HedgeLost" : "AttemptInterrupted"
    call.hub.tell({ _tag, ...Call.factsOf(call), ...endOf(attempt) })
  }
}

const endOf = ({ provider, number: attempt, duration, usage, cost, estimated = false }: Attempt) => ({
  provider,
  attempt,
  duration,
  usage,
  cost,
  isEstimated: estimated
})
