/** The beginning and the end of a call, for those who listen. */
import { Cause, Effect, Exit, Option } from "effect"
import type { FuseEvent, Operation } from "../observability/FuseEvent.ts"
import * as Call from "./Call.ts"
import type { Answering, Told } from "./Conversation.ts"

/** Tells that a call begins, and how it ends. */
export const told = <A extends Told>(call: Call.Call, operation: Operation, running: Answering<A>): Answering<A> => {
  call.hub.tell({ _tag: "CallStarted", ...Call.factsOf(call), operation, tag: call.tag })
  return Effect.onExit(running, (exit) => Effect.sync(() => call.hub.tell(endOf(call, exit))))
}

const endOf = <A extends Told>(call: Call.Call, exit: Exit.Exit<A, Error>): FuseEvent => {
  const facts = Call.factsOf(call)
  if (Exit.isSuccess(exit)) {
    const { provider, model, attempts, latency, usage } = exit.value
    const last = attempts.at(-1)
    const attempt = last?.outcome === "success" ? last.number : 0
    return { _tag: "CallSucceeded", ...facts, provider, model, attempt, latency, usage }
  }
  return Option.match(Cause.failureOption(exit.cause), {
    onNone: (): FuseEvent => ({ _tag: "CallInterrupted", ...facts }),
    onSome: (error) => ({ _tag: "CallFailed", ...facts, error: error as never })
  })
}
