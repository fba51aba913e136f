/** The way of an event from the stages to the listener. */
import { Effect } from "effect"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { LlmFuseError } from "../model/LlmError.ts"
import type { FuseEvent } from "../observability/FuseEvent.ts"

/** Tells the listener. Where there is none there is no `Emit` either, and no event is built. */
export type Emit = (event: FuseEvent) => Effect.Effect<void>

/** An `Emit` to a listener; what the listener throws is lost and harms no call. */
export const toListener =
  (listener: (event: FuseEvent) => void): Emit =>
  (event) =>
    Effect.asVoid(Effect.exit(Effect.sync(() => listener(event))))

/** Tells how a call ended. */
export const withEvents =
  (emit: Emit) =>
  <A extends Pick<ChatResponse, "provider" | "attempts" | "latency">>(
    call: Effect.Effect<A, LlmFuseError>
  ): Effect.Effect<A, LlmFuseError> =>
    Effect.tapBoth(call, {
      onFailure: (error) => emit({ _tag: "CallFailed", error }),
      onSuccess: ({ provider, attempts, latency }) =>
        emit({ _tag: "CallSucceeded", provider, attempt: attempts.at(-1)?.number ?? 0, latency })
    })
