/** The beginning and the end of a call, for those who listen. */
import { Cause, Effect, Either, Exit, FiberId, Option } from "effect"
import type { LlmFuseError } from "../model/LlmError.ts"
import type { FuseEvent } from "../observability/FuseEvent.ts"
import type { Asked } from "../observability/SpanFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Call from "./Call.ts"
import type { CheckedCall } from "./CallCheck.ts"
import type { Answering, Told } from "./Conversation.ts"
import * as Story from "./Story.ts"

/** Tells that a call begins, and how it ends: when nothing happens any more in its name. */
export const told = <A extends Told>(call: Call.Call, running: Answering<A>): Answering<A> =>
  Effect.uninterruptibleMask((restore) => {
    tellStart(call)
    return Effect.onExit(restore(running), (exit) =>
      Effect.sync(() => {
        if (call.isShared) call.onShared = () => tellEnd(call, exit)
        else tellEnd(call, exit)
      })
    )
  })

/**
 * What a call does for others too, who may go on waiting when it is left: its end is then told after theirs. Where it
 * was left before this begins, it begins once more, with another id.
 */
export const shared = <A, E>(call: Call.Call, running: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) => {
    call.isShared = true
    if (call.isOver) {
      call.id = undefined
      tellStart(call)
      call.onShared = () => tellEnd(call, Exit.interrupt(FiberId.none))
    }
    return Effect.onExit(restore(running), () =>
      Effect.sync(() => {
        call.isShared = false
        call.onShared?.()
      })
    )
  })

const tellStart = (call: Call.Call): void => {
  const { operation, tag } = call
  call.hub.tell({ _tag: "CallStarted", ...Call.factsOf(call), operation, tag })
}

const tellEnd = <A extends Told>(call: Call.Call, exit: Exit.Exit<A, LlmFuseError>): void => {
  call.isOver = true
  call.hub.tell(endOf(call, exit))
}

/** Gives up what is under way when nobody waits for it any more. */
export const brokenOff = <A>(call: Call.Call, running: Answering<A>): Answering<A> =>
  Effect.onExit(running, (exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => Story.breakOff(call))))

/** Puts a span around a call. */
export const traced = <In, A extends Told>(
  call: Call.Call,
  checked: Either.Either<Pick<CheckedCall, "candidates">, unknown>,
  input: Either.Either<In, unknown>,
  requestOf: (input: In) => Asked,
  onStart: Tracing.CallSpan["onStart"],
  running: Answering<A>
): Answering<A> => {
  const first = Either.match(checked, { onLeft: () => undefined, onRight: ({ candidates }) => candidates[0]?.provider })
  const { operation, hub } = call
  const { capturesContent } = hub
  return Tracing.aroundCall(
    {
      callId: Call.idOf(call),
      operation,
      provider: first?.name,
      model: first?.model,
      request: Either.getOrUndefined(Either.map(input, requestOf)),
      capturesContent,
      onStart,
      story: () => ({ attempts: call.attempts.length, cost: Story.costOf(call) })
    },
    running
  )
}

const endOf = <A extends Told>(call: Call.Call, exit: Exit.Exit<A, LlmFuseError>): FuseEvent => {
  const facts = Call.factsOf(call)
  if (Exit.isSuccess(exit)) {
    const { provider, model, attempts, latency, usage, cost } = exit.value
    const last = attempts.at(-1)
    const isAnswer = last?.outcome === "success"
    const attempt = isAnswer ? last.number : 0
    const timeToFirstToken = isAnswer ? last.timeToFirstToken : undefined
    return { _tag: "CallSucceeded", ...facts, provider, model, attempt, latency, timeToFirstToken, usage, cost }
  }
  const cost = Story.costOf(call)
  const { cause } = exit
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) return { _tag: "CallFailed", ...facts, error: failure.value, cost }
  const defect = Cause.dieOption(cause)
  return Option.isSome(defect)
    ? { _tag: "CallDied", ...facts, error: defect.value, cost }
    : { _tag: "CallInterrupted", ...facts, cost }
}
