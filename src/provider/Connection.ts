/** A response whose body is read as it is wanted, and the end of its request. */
import type { HttpClientError } from "@effect/platform/HttpClientError"
import { Channel, type Chunk, Clock, Duration, Effect, Either, Scope, Stream } from "effect"
import type * as Exchange from "./Exchange.ts"

/** The next bytes of a body, or the left side when there are no more. */
export type Pull = Effect.Effect<Either.Either<Chunk.Chunk<Uint8Array>, unknown>, HttpClientError>

/** A response that is being read. */
export interface Connection extends Exchange.Opened {
  /** Reads on. Nothing is read ahead. */
  readonly pull: Pull
  /** `pull` for the next so many milliseconds; after them there are no more bytes. */
  readonly pullFor: (millis: number) => Effect.Effect<Pull>
  /** Whether the server has said that its answer is whole, so that only the end of the body can follow. */
  isWhole: boolean
}

/** How long the end of a whole body is waited for, in milliseconds. */
export const lingerMillis = 250

/**
 * Holds on to a response while the scope is open. What is left of the request is aborted at once when the scope closes.
 * Only the end of a whole body is waited for a moment, behind everybody's back: then its connection can be used again.
 */
export const hold = <E>(
  opening: Effect.Effect<Exchange.Opened, E, Scope.Scope>
): Effect.Effect<Connection, E, Scope.Scope> =>
  Effect.gen(function* () {
    const request = yield* Scope.make()
    const body = yield* Scope.make()
    let connection: Connection | undefined
    yield* Effect.addFinalizer((exit) => {
      const close = Scope.close(request, exit)
      return connection?.isWhole ? Effect.forkDaemon(Effect.ensuring(toEnd(connection), close)) : close
    })
    // The abort, which is added later, goes first: a body may be slow to close.
    yield* Scope.addFinalizerExit(request, (exit) => Effect.forkDaemon(Effect.exit(Scope.close(body, exit))))
    const opened = yield* Scope.extend(opening, request)
    const pull = yield* Channel.toPullIn(Stream.toChannel(opened.response.stream), body)
    connection = { ...opened, pull, pullFor: (millis) => limited(pull, millis), isWhole: false }
    return connection
  })

// Not by a race: `Effect.race` and `raceFirst` (effect 3.22) hang when interrupted at one of their first operations.
const limited = (pull: Pull, millis: number): Effect.Effect<Pull> =>
  Effect.map(Clock.currentTimeNanos, (start) =>
    Effect.flatMap(Clock.currentTimeNanos, (now) =>
      Effect.timeoutTo(pull, {
        duration: Duration.millis(Math.max(0, millis - Number(now - start) / 1e6)),
        onSuccess: (bytes) => bytes,
        onTimeout: () => Either.left(undefined)
      })
    )
  )

const toEnd = ({ pull }: Connection): Effect.Effect<void> =>
  Effect.repeat(pull, { until: Either.isLeft }).pipe(
    Effect.timeout(lingerMillis),
    Effect.ignore,
    // It is begun by a finalizer, where nothing can be interrupted.
    Effect.interruptible
  )
