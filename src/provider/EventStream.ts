/** The body of a response as the parts of an answer. */
import type { HttpClientError } from "@effect/platform/HttpClientError"
import { Channel, Chunk, Effect, Either, type Scope, Stream } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { ProviderError } from "../model/LlmError.ts"
import * as Connection from "./Connection.ts"
import * as EventReader from "./EventReader.ts"
import type * as Exchange from "./Exchange.ts"

/** The parts of a provider's answer. */
export type Parts = Stream.Stream<StreamPart, ProviderError>

/** How long after the finish reason a stream may still say its usage and its end, in milliseconds. */
export const graceMillis = 2000

/**
 * The parts as the body of the response brings them, once its headers have come. Whole tool calls and the end come last,
 * when the answer is known to be whole. A body that is no stream is read as what it is.
 */
export const open = (
  wire: EventReader.Wire,
  opening: Effect.Effect<Exchange.Opened, ProviderError, Scope.Scope>
): Effect.Effect<Parts, ProviderError, Scope.Scope> =>
  Effect.map(Connection.hold(opening), (connection) =>
    Stream.suspend(() => Stream.fromChannel(read(connection, EventReader.make(wire, connection.head))))
  )

type Reading = Channel.Channel<Chunk.Chunk<StreamPart>, unknown, ProviderError, unknown, unknown, unknown>

/** One pass for every packet: its bytes in, its parts out. */
const read = (connection: Connection.Connection, reader: EventReader.EventReader): Reading => {
  const handOut = (parts: ReadonlyArray<StreamPart>, rest: Reading): Reading =>
    parts.length === 0 ? rest : Channel.zipRight(Channel.write(Chunk.unsafeFromArray(parts)), rest)

  const close = (end: EventReader.End): Reading => {
    connection.isWhole = reader.isOver()
    return Either.match(end, {
      onLeft: (error) => handOut(reader.takeParts(), Channel.fail(error)),
      onRight: (last) => handOut([...reader.takeParts(), ...last], Channel.void)
    })
  }
  const next = (pull: Connection.Pull, rest: (parts: ReadonlyArray<StreamPart>) => Reading): Reading => {
    const onBytes = (bytes: Chunk.Chunk<Uint8Array>): Reading => {
      const end = reader.bytes(bytes)
      if (end !== undefined) return close(end)
      const parts = reader.takeParts()
      return handOut(parts, rest(parts))
    }
    return Channel.unwrap(
      Effect.match(pull, {
        onFailure: (error: HttpClientError) => close(reader.broken(error)),
        onSuccess: (bytes) => (Either.isRight(bytes) ? onBytes(bytes.right) : close(reader.ended()))
      })
    )
  }
  const usual: Reading = next(connection.pull, () => (reader.isFinished() ? hurried : usual))
  const hurried = Channel.unwrap(
    Effect.map(connection.pullFor(graceMillis), (pull) => {
      // Where content comes after the reason to stop, the model has not stopped.
      const rest: Reading = next(pull, (parts) => (parts.length > 0 ? hurried : rest))
      return rest
    })
  )
  return usual
}
