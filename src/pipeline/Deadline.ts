/** One time budget over everything that a call does. */
import { Duration, Effect } from "effect"
import { attemptTimeout } from "./AttemptTimeout.ts"
import * as Monotonic from "./Monotonic.ts"

/** A moment by which a call must have ended. */
export interface Deadline {
  /** Monotonic time. */
  readonly atMillis: number
}

/** A deadline so many milliseconds after a moment of the monotonic clock. */
export const after = (startMillis: number, millis: number): Deadline => ({ atMillis: startMillis + millis })

/** What is left, zero if nothing is; without a deadline, for ever. */
export const remaining = (deadline: Deadline | undefined): Effect.Effect<Duration.Duration> =>
  deadline === undefined
    ? Effect.succeed(Duration.infinity)
    : Effect.map(Monotonic.millis, (now) => Duration.millis(Math.max(0, deadline.atMillis - now)))

/** The fair share of what is left, when so many others may still have to be asked; without a deadline, for ever. */
export const share = (
  deadline: Deadline | undefined,
  others: Effect.Effect<number>
): Effect.Effect<Duration.Duration> =>
  deadline === undefined
    ? Effect.succeed(Duration.infinity)
    : Effect.zipWith(remaining(deadline), others, (left, count) =>
        Duration.millis(Math.floor(Duration.toMillis(left) / (count + 1)))
      )

/** Whether a wait would leave any time of a share after it. */
export const fits = (
  deadline: Deadline | undefined,
  delay: Duration.Duration,
  others: Effect.Effect<number> = Effect.succeed(0)
): Effect.Effect<boolean> =>
  deadline === undefined
    ? Effect.succeed(true)
    : Effect.map(share(deadline, others), (part) => Duration.lessThan(delay, part))

/** Interrupts the effect when the deadline comes, and fails with `onExpired()`. */
export const within =
  <E2>(deadline: Deadline | undefined, onExpired: () => E2) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    deadline === undefined
      ? effect
      : Effect.flatMap(remaining(deadline), (left) => attemptTimeout(left, onExpired)(effect))
