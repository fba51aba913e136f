/** Counts the retries that come to pass: one that is planned may be overtaken by limits, circuits, costs or the call's end. */
import type { FuseEvent } from "./FuseEvent.ts"
import type { Instruments } from "./MetricsInstrument.ts"

/** A listener, which holds something of a call only until an answer or its end is told. */
export const make = ({ retries }: Instruments): ((event: FuseEvent) => void) => {
  /** Of each call, the kind of failure that its next attempt at a provider repeats. */
  const planned = new Map<string, Map<string, string>>()

  const plan = (callId: string, provider: string, type: string): void => {
    const ofCall = planned.get(callId) ?? new Map<string, string>()
    planned.set(callId, ofCall.set(provider, type))
  }

  const begun = (callId: string, provider: string): void => {
    const ofCall = planned.get(callId)
    const type = ofCall?.get(provider)
    if (ofCall === undefined || type === undefined) return
    ofCall.delete(provider)
    retries(1, provider, type)
  }

  return (event) => {
    switch (event._tag) {
      case "RetryScheduled":
        return plan(event.callId, event.provider, event.error._tag)
      case "AttemptStarted":
        return begun(event.callId, event.provider)
      // A call for vectors may go on with its next batch, which repeats nothing.
      case "AttemptSucceeded":
      case "CallSucceeded":
      case "CallFailed":
      case "CallInterrupted":
      case "CallDied":
        return void planned.delete(event.callId)
    }
  }
}
