/** The way of a streamed answer from the call that reads it to the caller who takes it. */
import { Chunk, Effect, Mailbox, Option, type Scope, Stream } from "effect"
import type { ChatEvent } from "../model/ChatEvent.ts"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { LlmFuseError } from "../model/LlmError.ts"
import type { Outlet } from "./CallStream.ts"

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
  Effect.flatMap(Mailbox.make<ReadonlyArray<ChatEvent>, LlmFuseError>(capacity), (mailbox) => {
    const outlet: Outlet = {
      offerNow: (events) => mailbox.unsafeOffer(events),
      offer: (events) => mailbox.offer(events)
    }
    const call = Effect.matchCauseEffect(answer(outlet), {
      onSuccess: (response) => Effect.zipRight(mailbox.offer([{ _tag: "Finished", response }]), mailbox.end),
      onFailure: (cause) => mailbox.failCause(cause)
    })
    const pull = Effect.flatMap(Effect.mapError(mailbox.takeAll, Option.some), ([batches]) =>
      Chunk.isEmpty(batches) ? Effect.fail(Option.none()) : Effect.succeed(Chunk.unsafeFromArray(joined(batches)))
    )
    return Effect.as(Effect.forkScoped(call), pull)
  })

const joined = (batches: Chunk.Chunk<ReadonlyArray<ChatEvent>>): ReadonlyArray<ChatEvent> =>
  batches.length === 1 ? Chunk.unsafeHead(batches) : Chunk.toReadonlyArray(batches).flat()

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
