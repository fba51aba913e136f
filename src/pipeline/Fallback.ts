/** A degraded answer instead of an error. */
import { Effect } from "effect"
import { FallbackError } from "../model/LlmError.ts"

/** What a fallback asks, and what it calls. */
export interface Hooks<E> {
  /** Whether an error is one that the fallback is for. Default: every typed failure is. */
  readonly appliesTo?: ((error: E) => boolean) | undefined
  /** Told before the fallback runs. A defect in it ends nothing. */
  readonly onFallback?: ((error: E) => Effect.Effect<void>) | undefined
  /** Names the fallback in `FallbackError.provider`. Default: `"fallback"`. */
  readonly name?: string | undefined
}

/**
 * Runs `instead` when an effect fails, whatever the failure says of itself: open circuits and limits too. When `instead`
 * fails as well, the failure is a `FallbackError`: `error` is what `instead` failed with, `cause` the failure before it.
 * Defects and interruption pass through.
 */
export const fallback =
  <E, A2, E2, R2>(instead: (error: E) => Effect.Effect<A2, E2, R2>, hooks: Hooks<E> = {}) =>
  <A, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A | A2, E | FallbackError, R | R2> => {
    const { appliesTo = () => true, onFallback, name = "fallback" } = hooks
    return Effect.catchAll(effect, (error): Effect.Effect<A2, E | FallbackError, R2> => {
      if (!appliesTo(error)) return Effect.fail(error)
      const told = onFallback === undefined ? Effect.void : Effect.exit(Effect.suspend(() => onFallback(error)))
      const answer = Effect.mapError(
        Effect.suspend(() => instead(error)),
        (own) =>
          new FallbackError({
            provider: name,
            error: own,
            cause: error,
            message: `${name}: the fallback failed too: ${messageOf(own)} (after: ${messageOf(error)})`
          })
      )
      return Effect.zipRight(told, answer)
    })
  }

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
