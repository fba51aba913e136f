/** The end of an attempt that failed. */
import { Effect } from "effect"
import type { ProviderError } from "../model/LlmError.ts"
import type { Provider } from "../provider/Provider.ts"
import * as Call from "./Call.ts"
import type { ProviderRecord } from "./ProviderRecord.ts"

/** Notes and tells that an attempt has failed. What fails after it was given up is nobody's concern. */
export const failed = (
  provider: Provider,
  record: ProviderRecord,
  call: Call.Call,
  begun: Call.Begun,
  error: ProviderError
): Effect.Effect<never, ProviderError> => {
  const wasOver = begun.isOver
  const { duration } = Call.end(call, provider, begun, { nowMillis: Call.nowOf(call), outcome: "failure", error })
  if (!wasOver) record.failed(error, Call.wallTimeOf(call))
  if (call.hub.isHeard() && !wasOver) {
    const { number: attempt } = begun
    call.hub.tell({ _tag: "AttemptFailed", ...Call.factsOf(call), provider: provider.name, attempt, duration, error })
  }
  return Effect.fail(error)
}
