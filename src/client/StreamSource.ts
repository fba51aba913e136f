/** A stream run on a runtime, one pull at a time, until it ends or is stopped from outside. */
import { Cause, type Chunk, Effect, Exit, type Fiber, FiberId, Option, Runtime, Scope } from "effect"
import type { Source } from "./EventIterator.ts"

/** What can stop the stream from outside. */
export interface Stops {
  /** Its abort stops the stream; what is being pulled rejects with its reason. */
  readonly signal: AbortSignal | undefined
  /** The functions that stop everything under way; the stream's own is among them while it runs. */
  readonly inFlight: Set<(reason: unknown) => void>
  /** Whether a stop from outside is the end and no failure. */
  readonly endsQuietly: boolean
}

/** Opens a stream: gives the effect that pulls its next elements, as `Stream.toPull` does. */
export type Opening<A> = Effect.Effect<Effect.Effect<Chunk.Chunk<A>, Option.Option<unknown>>, never, Scope.Scope>

/** Makes the source. The stream begins with the first pull. */
export const open = <A>(
  runtime: Runtime.Runtime<never>,
  opening: Opening<A>,
  { signal, inFlight, endsQuietly }: Stops
): Source<A> => {
  const scope = Effect.runSync(Scope.make())
  let pulling: Fiber.RuntimeFiber<Exit.Exit<Chunk.Chunk<A>, Option.Option<unknown>>> | undefined
  let settle: ((end: Promise<undefined>) => void) | undefined
  let closing: Promise<void> | undefined
  let stoppedBy: { readonly reason: unknown } | undefined

  // As exits: Effect logs what a fiber fails with, and the end of a stream is none of that.
  let pull = Effect.exit(
    Effect.flatMap(Scope.extend(opening, scope), (next) => {
      pull = Effect.exit(next)
      return next
    })
  )

  const close = (): Promise<void> => {
    closing ??= (() => {
      inFlight.delete(stop)
      signal?.removeEventListener("abort", onAbort)
      pulling?.unsafeInterruptAsFork(FiberId.none)
      const closed = Runtime.runPromise(runtime, Effect.asVoid(Effect.exit(Scope.close(scope, Exit.void))))
      settle?.(end())
      return closed
    })()
    return closing
  }

  /** Nothing more; but whoever stopped the stream from outside is told of once. */
  const end = (): Promise<undefined> => {
    if (stoppedBy === undefined) return Promise.resolve(undefined)
    const { reason } = stoppedBy
    stoppedBy = undefined
    return endsQuietly ? Promise.resolve(undefined) : Promise.reject(reason)
  }

  const stop = (reason: unknown): void => {
    stoppedBy = { reason }
    close()
  }
  const onAbort = () => stop(signal?.reason)

  inFlight.add(stop)
  signal?.addEventListener("abort", onAbort)

  return {
    isStopped: () => stoppedBy !== undefined,
    close,
    pull: () =>
      closing !== undefined
        ? end()
        : new Promise((resolve, reject) => {
            settle = resolve
            pulling = Runtime.runFork(runtime, pull)
            pulling.addObserver((pulled) => {
              settle = undefined
              if (closing !== undefined) return
              const exit = Exit.flatten(pulled)
              if (Exit.isSuccess(exit)) return resolve(exit.value)
              close()
              const reason = Cause.squash(exit.cause)
              if (!Option.isOption(reason)) reject(reason)
              else if (Option.isNone(reason)) resolve(undefined)
              else reject(reason.value)
            })
          })
  }
}
