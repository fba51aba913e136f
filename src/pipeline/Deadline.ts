/** One time budget over everything that a call does, and over the calls within it. */
import { Duration, Effect, FiberRef } from "effect"
import { globalValue } from "effect/GlobalValue"
import { DeadlineExceededError, inOwnWords } from "../model/LlmError.ts"
import { attemptTimeout } from "./AttemptTimeout.ts"
import * as Monotonic from "./Monotonic.ts"

/** A moment by which a call must have ended. */
export interface Deadline {
  /** Monotonic time. */
  readonly atMillis: number
}

/** The deadline of what runs here; undefined where there is none. Fibers that are forked inherit it. */
export const current: FiberRef.FiberRef<Deadline | undefined> = globalValue("llmfuse/Deadline/current", () =>
  FiberRef.unsafeMake<Deadline | undefined>(undefined)
)

/** A deadline so many milliseconds after a moment of the monotonic clock. */
export const after = (startMillis: number, millis: number): Deadline => ({ atMillis: startMillis + millis })

/** The earlier of two. */
export const earlier = (one: Deadline | undefined, other: Deadline | undefined): Deadline | undefined =>
  one === undefined || other === undefined ? (one ?? other) : one.atMillis <= other.atMillis ? one : other

/** What is left of a deadline, zero if nothing is; without one, for ever. */
export const left = (deadline: Deadline | undefined): Effect.Effect<Duration.Duration> =>
  deadline === undefined
    ? Effect.succeed(Duration.infinity)
    : Effect.map(Monotonic.millis, (now) => Duration.millis(Math.max(0, deadline.atMillis - now)))

/**
 * What is left of the time budget that this runs in: of a call of LlmFuse, or of `withDeadline`. Infinite where there is
 * none. For a provider of one's own that wants to know how long it may take.
 */
export const remaining: Effect.Effect<Duration.Duration> = Effect.flatMap(FiberRef.get(current), left)

/** The fair share of what is left, when so many others may still have to be asked; without a deadline, for ever. */
export const share = (
  deadline: Deadline | undefined,
  others: Effect.Effect<number>
): Effect.Effect<Duration.Duration> =>
  deadline === undefined
    ? Effect.succeed(Duration.infinity)
    : Effect.zipWith(left(deadline), others, (time, count) =>
        Duration.millis(Math.floor(Duration.toMillis(time) / (count + 1)))
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

/** Interrupts the effect when the deadline comes, and fails with `onExpired()`. What runs within it can look it up. */
export const within =
  <E2>(deadline: Deadline | undefined, onExpired: () => E2) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    deadline === undefined
      ? effect
      : Effect.flatMap(left(deadline), (time) =>
          attemptTimeout(time, onExpired)(Effect.locally(effect, current, deadline))
        )

/**
 * Gives an effect so much time, or what is left of the budget that it runs in already if that is less: then it is
 * interrupted, and the failure is a `DeadlineExceededError`, which `name` names. Calls of LlmFuse within it keep to it.
 */
export const withDeadline =
  (budget: Duration.DurationInput, name = "deadline") =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | DeadlineExceededError, R> =>
    Effect.flatMap(Effect.zip(Monotonic.millis, FiberRef.get(current)), ([now, outer]) => {
      const own = after(now, Duration.toMillis(budget))
      const first = earlier(own, outer) ?? own
      const deadline = Duration.millis(Math.max(0, Math.round(first.atMillis - now)))
      const whose = first === own ? "" : " that the budget around it had left"
      const message = `${name}: not done within ${Duration.format(deadline)}${whose}`
      const exceeded = () => inOwnWords(new DeadlineExceededError({ provider: name, deadline, message }))
      return within(first, exceeded)(effect)
    })
