/** The end of an attempt that failed. */
import { Effect } from "effect"
import type { ProviderError } from "../model/LlmError.ts"
import type { Provider } from "../provider/Provider.ts"
import * as Call from "./Call.ts"
import type * as Cost from "./Cost.ts"
import type { ProviderRecord } from "./ProviderRecord.ts"

/** Notes and tells that an attempt has failed. What fails after it was given up is nobody's concern. */
export const failed = (
  provider: Provider,
  record: ProviderRecord,
  call: Call.Call,
  begun: Call.Begun,
  error: ProviderError,
  billed?: Cost.Billed
): Effect.Effect<never, ProviderError> => {
  const wasOver = begun.isOver
  const ending = { nowMillis: Call.nowOf(call), outcome: "failure", error } as const
  const { duration, cost } = Call.end(
    call,
    provider,
    begun,
    billed === undefined ? ending : { ...ending, ...billed, estimated: true }
  )
  if (cost !== undefined && !wasOver) record.cost += cost
  if (!wasOver) record.failed(error, Call.wallTimeOf(call))
  if (call.hub.isHeard() && !wasOver) {
    const { number: attempt } = begun
    call.hub.tell({ _tag: "AttemptFailed", ...Call.factsOf(call), provider: provider.name, attempt, duration, error })
  }
  return Effect.fail(error)
}
