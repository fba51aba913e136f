/** The way of a streamed answer from the call that reads it to the caller who takes it. */
import { Cause, Chunk, Effect, Exit, Option, type Scope, Stream } from "effect"
import type { ChatEvent } from "../model/ChatEvent.ts"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { LlmFuseError } from "../model/LlmError.ts"
import type { Outlet } from "./CallStream.ts"
import * as Handover from "./Handover.ts"

/** How many batches of events wait for the caller. A batch is what one piece from the network held. */
const capacity = 2

/** Gives the next events; fails with nothing at the end. */
export type Pull = Effect.Effect<Chunk.Chunk<ChatEvent>, Option.Option<LlmFuseError>>

/**
 * Runs a call in a fiber of its own, which ends with the scope, and hands its events over as they are asked for. A call
 * whose caller does not take them waits, and with it the provider's socket.
 */
export const open = (
  answer: (outlet: Outlet) => Effect.Effect<ChatResponse, LlmFuseError>
): Effect.Effect<Pull, never, Scope.Scope> =>
  Effect.suspend(() => {
    const line = Handover.make<ReadonlyArray<ChatEvent>, Option.Option<LlmFuseError>>(capacity)
    const call = Effect.matchCauseEffect(answer(line), {
      onSuccess: (response) =>
        Effect.zipRight(line.offer([{ _tag: "Finished", response }]), line.end(Exit.fail(Option.none()))),
      onFailure: (cause) => line.end(Exit.failCause(Cause.map(cause, Option.some)))
    })
    const pull = Effect.map(line.takeAll, (batches) => Chunk.unsafeFromArray(joined(batches)))
    return Effect.as(Effect.forkScoped(call), pull)
  })

const joined = (batches: ReadonlyArray<ReadonlyArray<ChatEvent>>): ReadonlyArray<ChatEvent> =>
  batches.length === 1 && batches[0] !== undefined ? batches[0] : batches.flat()

/** How the streams made here are opened, so that who takes events by hand need not go through the stream. */
const openings = new WeakMap<object, Effect.Effect<Pull, never, Scope.Scope>>()

/** A call as a stream of its events. */
export const toStream = (
  answer: (outlet: Outlet) => Effect.Effect<ChatResponse, LlmFuseError>
): Stream.Stream<ChatEvent, LlmFuseError> => {
  const opening = open(answer)
  const stream = Stream.fromPull(opening)
  openings.set(stream, opening)
  return stream
}

/** Takes the events of a stream by hand. Same as `Stream.toPull`, and cheaper for a stream that was made here. */
export const toPull = (stream: Stream.Stream<ChatEvent, LlmFuseError>): Effect.Effect<Pull, never, Scope.Scope> =>
  openings.get(stream) ?? Stream.toPull(stream)
