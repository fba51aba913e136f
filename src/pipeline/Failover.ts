/** Asks one candidate after the other until one answers. */
import { Effect } from "effect"
import type { LazyArg } from "effect/Function"

/** What failover asks, and what it calls. */
export interface Options<E, E2> {
  /** Whether the next candidate may be asked after a failure. If not, that failure ends the search. Default: it may. */
  readonly mayFailOver?: ((error: E) => boolean) | undefined
  /** Told of every failure, with the position of the candidate, before anything else is done about it. */
  readonly onFailure?: ((error: E, position: number) => void) | undefined
  /** Run before the next candidate is asked, with the positions of both. A defect in it ends nothing. */
  readonly onFailover?: ((error: E, from: number, to: number) => Effect.Effect<void>) | undefined
  /** The failure when no candidate has answered, from all their errors in order. */
  readonly onExhausted: (errors: ReadonlyArray<E>) => E2
}

/**
 * The first success among candidates that are asked in order, one at a time. The errors of all are kept. Defects and
 * interruption end the search at once. A success of the first pays nothing: the rest, and the options where they are a
 * function that makes them, are looked at after its failure.
 *
 * The rest runs on `Effect.firstSuccessOf`, which keeps the last error only: each candidate notes its own, and a failure
 * that must not fail over becomes a success that holds it, to end the search.
 */
export const failover = <Candidate, A, E, R, E2>(
  candidates: ReadonlyArray<Candidate>,
  ask: (candidate: Candidate, position: number) => Effect.Effect<A, E, R>,
  options: Options<E, E2> | LazyArg<Options<E, E2>>
): Effect.Effect<A, E | E2, R> => {
  const made = () => (typeof options === "function" ? options() : options)
  const [first] = candidates
  return first === undefined
    ? Effect.suspend(() => Effect.fail(made().onExhausted([])))
    : Effect.catchAll(
        Effect.suspend(() => ask(first, 0)),
        (error) => afterFirst(candidates, ask, made(), error)
      )
}

const afterFirst = <Candidate, A, E, R, E2>(
  candidates: ReadonlyArray<Candidate>,
  ask: (candidate: Candidate, position: number) => Effect.Effect<A, E, R>,
  { mayFailOver = () => true, onFailure = () => undefined, onFailover, onExhausted }: Options<E, E2>,
  firstError: E
): Effect.Effect<A, E | E2, R> => {
  const errors = [firstError]
  onFailure(firstError, 0)
  if (!mayFailOver(firstError)) return Effect.fail(firstError)
  const exhausted = Effect.suspend(() => Effect.fail(onExhausted(errors)))
  if (candidates.length === 1) return exhausted

  const announced = (error: E): Effect.Effect<void> =>
    onFailover === undefined || errors.length === candidates.length
      ? Effect.void
      : Effect.asVoid(Effect.exit(Effect.suspend(() => onFailover(error, errors.length - 1, errors.length))))

  const searching = candidates.slice(1).map((candidate, index) =>
    Effect.matchEffect(
      Effect.suspend(() => ask(candidate, index + 1)),
      {
        onSuccess: (answer): Effect.Effect<Effect.Effect<A, E>, E> => Effect.succeed(Effect.succeed(answer)),
        onFailure: (error): Effect.Effect<Effect.Effect<A, E>, E> => {
          errors.push(error)
          onFailure(error, index + 1)
          return mayFailOver(error)
            ? Effect.zipRight(announced(error), Effect.fail(error))
            : Effect.succeed(Effect.fail(error))
        }
      }
    )
  )
  return Effect.zipRight(
    announced(firstError),
    Effect.flatten(
      Effect.catchAll(Effect.firstSuccessOf(searching), () => Effect.succeed<Effect.Effect<A, E | E2>>(exhausted))
    )
  )
}
