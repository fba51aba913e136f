/** Bounds an attempt in time. */
import { type Duration, Effect, Exit, FiberId, Runtime } from "effect"

/** Starts a limit; `expire` ends the effect early with an error. What it gives back stops the limit. */
export type StartLimit<E> = (expire: (error: E) => void) => () => void

/**
 * Fails with `onTimeout()` if the effect has not ended after `duration`; the effect is interrupted then, but not waited
 * for, so that one which does not let itself be interrupted cannot hold up its caller. An interrupted caller does wait
 * until the effect has cleaned up.
 *
 * The effect begins at once, in a fiber of its own; where it ends without a pause, no timer is ever made.
 */
export const attemptTimeout =
  <E2>(duration: Duration.DurationInput, onTimeout: () => E2) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    endedBy(after(duration, onTimeout))(effect)

/** A limit that is one wait of its own. */
export const after =
  <E>(duration: Duration.DurationInput, onTimeout: () => E) =>
  (clock: Runtime.Runtime<never>): StartLimit<E> =>
  (expire) => {
    const timer = Runtime.runFork(clock, Effect.sleep(duration))
    timer.addObserver((exit) => {
      if (Exit.isSuccess(exit)) expire(onTimeout())
    })
    return () => timer.unsafeInterruptAsFork(FiberId.none)
  }

/**
 * The same with a limit that is made elsewhere: a shared timer, or one that moves. With `cleanUp`, an effect that has
 * been ended early is waited for that long before the failure comes, so that what follows meets it closed.
 */
export const endedBy =
  <E2>(limit: (runtime: Runtime.Runtime<never>) => StartLimit<E2>, cleanUp?: Duration.DurationInput) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    Effect.flatMap(Effect.runtime<R>(), (runtime) =>
      Effect.uninterruptibleMask((restore) => {
        // As an exit: Effect logs what a fiber fails with, and an attempt that fails is nothing unhandled.
        const attempt = Runtime.runFork(runtime, Effect.exit(effect))
        const ended = attempt.unsafePoll()
        if (ended !== null) return Exit.flatten(ended)
        let stop: (() => void) | undefined
        const first = Effect.async<A, E | E2>((resume) => {
          stop = limit(runtime)((error) => {
            attempt.unsafeInterruptAsFork(FiberId.none)
            const failure = Effect.fail(error)
            resume(cleanUp === undefined ? failure : Effect.zipRight(awaitBriefly(attempt.await, cleanUp), failure))
          })
          attempt.addObserver((exit) => {
            stop?.()
            resume(Exit.flatten(exit))
          })
        })
        return Effect.onInterrupt(restore(first), () => {
          stop?.()
          attempt.unsafeInterruptAsFork(FiberId.none)
          return attempt.await
        })
      })
    )

const awaitBriefly = (end: Effect.Effect<unknown>, duration: Duration.DurationInput): Effect.Effect<void> =>
  Effect.ignore(attemptTimeout(duration, () => undefined)(end))
