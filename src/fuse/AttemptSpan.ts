/** An attempt as a span. */
import type { Effect } from "effect"
import type { Attempt } from "../model/LlmError.ts"
import * as Tracing from "../observability/Tracing.ts"
import type * as Call from "./Call.ts"
import type { Answer } from "./Stages.ts"

/** Puts a span around an attempt, within its call's. */
export const around = <A extends Answer, E>(
  call: Call.Call,
  begun: Call.Begun,
  sent: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const { operation, hub } = call
  const { provider, number, waitedMillis } = begun
  const { name, model } = provider
  const { capturesContent } = hub
  const end = (isInterrupted: boolean) => endOf(call, begun, isInterrupted)
  return Tracing.aroundAttempt({ provider: name, model, operation, number, waitedMillis, capturesContent, end }, sent)
}

/** One that lost a race has been given up by now; whoever else is interrupted has lost its caller. */
const endOf = (call: Call.Call, begun: Call.Begun, isInterrupted: boolean): Attempt | undefined => {
  if (isInterrupted && !begun.isOver) begun.giveUp(call, begun, "interrupted")
  const isIt = ({ provider, number }: Attempt) => provider === begun.provider.name && number === begun.number
  return begun.isOver ? call.attempts.findLast(isIt) : undefined
}
