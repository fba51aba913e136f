/** Bounds an attempt in time. */
import { type Duration, Effect, Exit, FiberId, Runtime } from "effect"

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
    Effect.flatMap(Effect.runtime<R>(), (runtime) =>
      Effect.uninterruptibleMask((restore) => {
        const attempt = Runtime.runFork(runtime, effect)
        const ended = attempt.unsafePoll()
        if (ended !== null) return ended
        const timer = Runtime.runFork(runtime, Effect.sleep(duration))
        const first = Effect.async<A, E | E2>((resume) => {
          attempt.addObserver((exit) => {
            timer.unsafeInterruptAsFork(FiberId.none)
            resume(exit)
          })
          timer.addObserver((exit) => {
            if (Exit.isFailure(exit)) return
            resume(Effect.suspend(() => Effect.fail(onTimeout())))
            attempt.unsafeInterruptAsFork(FiberId.none)
          })
        })
        return Effect.onInterrupt(restore(first), () => {
          timer.unsafeInterruptAsFork(FiberId.none)
          attempt.unsafeInterruptAsFork(FiberId.none)
          return attempt.await
        })
      })
    )
