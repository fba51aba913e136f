/** Tries an effect again while its failure is worth it. */
import { Duration, Effect, ScheduleDecision, ScheduleIntervals } from "effect"
import type { LazyArg } from "effect/Function"
import { maxTimerMillis } from "../model/OptionCheck.ts"
import * as RetryPolicy from "./RetryPolicy.ts"

/** What `onRetry` is told, before the wait. */
export interface Retrying<E> {
  /** The number of the attempt that failed, from 1. */
  readonly attempt: number
  readonly error: E
  /** How long will be waited before the next attempt. */
  readonly delay: Duration.Duration
}

/** Hooks of a retry. */
export interface Hooks<E> {
  /**
   * Whether a failure is worth another attempt; `attempt` is the number of the one that failed, from 1.
   * Default: the error's `isRetryable` where it is a boolean, else true.
   */
  readonly shouldRetry?: ((error: E, attempt: number) => boolean | Effect.Effect<boolean>) | undefined
  /** The wait that the error asks for. A longer one than `maxDelay` ends the retries. Default: the error's `retryAfter`. */
  readonly retryAfter?: ((error: E) => Duration.Duration | undefined) | undefined
  /** Whether there is time for a wait. If not, it is not begun. Default: there is. */
  readonly fits?: ((delay: Duration.Duration) => Effect.Effect<boolean>) | undefined
  /** Asked again after each wait: is the attempt still wanted? If not, the last error stands. Default: it is. */
  readonly isStillWanted?: Effect.Effect<boolean> | undefined
  /** Run before each wait. A defect in it ends nothing. */
  readonly onRetry?: ((retrying: Retrying<E>) => Effect.Effect<void>) | undefined
}

const defaultShouldRetry = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "isRetryable" in error && typeof error.isRetryable === "boolean"
    ? error.isRetryable
    : true

const defaultRetryAfter = (error: unknown): Duration.Duration | undefined =>
  typeof error === "object" && error !== null && "retryAfter" in error && Duration.isDuration(error.retryAfter)
    ? error.retryAfter
    : undefined

const asEffect = (answer: boolean | Effect.Effect<boolean>): Effect.Effect<boolean> =>
  typeof answer === "boolean" ? Effect.succeed(answer) : answer

/**
 * The wait in milliseconds. A hint is a floor: with jitter the random wait comes on top of it, so that callers who got
 * the same hint do not come back together; without jitter the longer of the two is taken.
 */
const withHint = (backoffMillis: number, hintMillis: number, jitter: "full" | "none"): number =>
  jitter === "full" ? hintMillis + backoffMillis : Math.max(hintMillis, backoffMillis)

/**
 * Runs an effect, and runs it again after a typed failure as the policy says. Exhausted or not worth it, it fails with
 * the last error itself. Defects and interruption pass through at once. The waits end at once on interruption.
 * A success pays nothing: the hooks, where they are a function that makes them, and the policy's schedule are looked at
 * after the first failure.
 */
export const retry: {
  <E>(
    policy?: RetryPolicy.RetryPolicy,
    hooks?: Hooks<E> | LazyArg<Hooks<E>>
  ): <A, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    policy?: RetryPolicy.RetryPolicy,
    hooks?: Hooks<E> | LazyArg<Hooks<E>>
  ): Effect.Effect<A, E, R>
} = (...args: ReadonlyArray<unknown>): never =>
  (Effect.isEffect(args[0])
    ? first(args[0], args[1] as RetryPolicy.RetryPolicy | undefined, args[2] as Hooks<unknown> | undefined)
    : (effect: Effect.Effect<unknown, unknown, unknown>) =>
        first(effect, args[0] as RetryPolicy.RetryPolicy | undefined, args[1] as Hooks<unknown> | undefined)) as never

const first = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  policy: RetryPolicy.RetryPolicy = RetryPolicy.default,
  hooks: Hooks<E> | LazyArg<Hooks<E>> = {}
): Effect.Effect<A, E, R> =>
  Effect.catchAll(effect, (error) => again(effect, policy, typeof hooks === "function" ? hooks() : hooks, error))

const again = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  policy: RetryPolicy.RetryPolicy,
  hooks: Hooks<E>,
  firstError: E
): Effect.Effect<A, E, R> => {
  const { shouldRetry = defaultShouldRetry, retryAfter = defaultRetryAfter, fits, isStillWanted, onRetry } = hooks
  const { schedule } = policy
  const afterFailure = (error: E, attempt: number, state: unknown): Effect.Effect<A, E, R> =>
    Effect.flatMap(
      Effect.suspend(() => asEffect(shouldRetry(error, attempt))),
      (wanted) => {
        if (!wanted) return Effect.fail(error)
        const hint = retryAfter(error)
        if (hint !== undefined && Duration.toMillis(hint) > policy.maxDelayMillis) return Effect.fail(error)
        return Effect.flatMap(schedule.step(0, error, state), ([nextState, , decision]) => {
          if (ScheduleDecision.isDone(decision)) return Effect.fail(error)
          const backoffMillis = ScheduleIntervals.start(decision.intervals)
          const millis =
            hint === undefined ? backoffMillis : withHint(backoffMillis, Duration.toMillis(hint), policy.jitter)
          const delay = Duration.millis(Math.min(Math.ceil(millis), maxTimerMillis))
          const again = Effect.catchAll(effect, (next) => afterFailure(next, attempt + 1, nextState))
          const wait = Effect.zipRight(
            onRetry === undefined ? Effect.void : Effect.exit(Effect.suspend(() => onRetry({ attempt, error, delay }))),
            Effect.sleep(delay)
          )
          const waited =
            isStillWanted === undefined
              ? Effect.zipRight(wait, again)
              : Effect.flatMap(Effect.zipRight(wait, isStillWanted), (wanted) => (wanted ? again : Effect.fail(error)))
          return fits === undefined
            ? waited
            : Effect.flatMap(fits(delay), (isRoom) => (isRoom ? waited : Effect.fail(error)))
        })
      }
    )
  return afterFailure(firstError, 1, schedule.initial)
}
