/** Asks one candidate after the other until one answers. */
import { Effect } from "effect"

/** What failover asks, and what it calls. */
export interface Options<E, E2> {
  /** Whether the next candidate may be asked after a failure. If not, that failure ends the search. Default: it may. */
  readonly mayFailOver?: ((error: E) => boolean) | undefined
  /** Run before the next candidate is asked. A defect in it ends nothing. */
  readonly onFailover?: ((error: E, from: number, to: number) => Effect.Effect<void>) | undefined
  /** The failure when no candidate has answered, from all their errors in order. */
  readonly onExhausted: (errors: ReadonlyArray<E>) => E2
}

const proceed: Effect.Effect<void> = Effect.void

/**
 * The first success of the candidates, asked in order, one at a time. The errors of all are kept. Defects and
 * interruption end the search at once.
 *
 * Runs on `Effect.firstSuccessOf`, which keeps the last error only: each candidate notes its own, and a failure that
 * must not fail over becomes a success that holds it, to end the search.
 */
export const failover = <A, E, R, E2>(
  candidates: ReadonlyArray<Effect.Effect<A, E, R>>,
  options: Options<E, E2>
): Effect.Effect<A, E | E2, R> =>
  Effect.suspend(() => {
    const { mayFailOver, onFailover, onExhausted } = options
    const [first, ...rest] = candidates
    if (first === undefined) return Effect.fail(onExhausted([]))
    const errors: Array<E> = []
    /** Notes an error; tells whether the search goes on. */
    const goesOn = (error: E): boolean => {
      errors.push(error)
      return mayFailOver === undefined || mayFailOver(error)
    }
    const announce = (error: E) =>
      onFailover === undefined || errors.length >= candidates.length
        ? proceed
        : Effect.asVoid(Effect.exit(Effect.suspend(() => onFailover(error, errors.length - 1, errors.length))))
    const searching = (candidate: Effect.Effect<A, E, R>): Effect.Effect<Effect.Effect<A, E>, E, R> =>
      Effect.matchEffect(candidate, {
        onSuccess: (answer) => Effect.succeed(Effect.succeed(answer)),
        onFailure: (error) =>
          goesOn(error) ? Effect.zipRight(announce(error), Effect.fail(error)) : Effect.succeed(Effect.fail(error))
      })
    const exhausted = Effect.suspend(() => Effect.fail(onExhausted(errors)))
    return Effect.catchAll(first, (error): Effect.Effect<A, E | E2, R> => {
      if (!goesOn(error)) return Effect.fail(error)
      if (rest.length === 0) return exhausted
      const others = Effect.firstSuccessOf(rest.map(searching))
      return Effect.zipRight(
        announce(error),
        Effect.flatten(Effect.catchAll(others, () => Effect.succeed<Effect.Effect<A, E | E2>>(exhausted)))
      )
    })
  })
