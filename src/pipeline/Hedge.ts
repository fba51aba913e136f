/** Asks the next candidate too when one is slow, and takes the first answer. */
import { Effect, Runtime, RuntimeFlags } from "effect"
import * as HedgeRace from "./HedgeRace.ts"

export type {
  /** What a hedge asks, and what it calls. */
  Options,
  /** What an attempt can do about the race that it is in. */
  Race
} from "./HedgeRace.ts"

/**
 * The first success among candidates. They are asked in order: the next one when the last to start has not answered after
 * `delay`, or at once when one fails. The first success wins; who loses is interrupted, but not waited for. A failure
 * beats nobody who is still in flight, unless it must not fail over: that, or a defect, ends the race. An interrupted
 * caller waits until all in flight have cleaned up.
 *
 * Each start gives one chance to hedge; if it is not taken (`mayHedge`), the next start gives the next. When nobody is in
 * flight, the next candidate is asked without leave, and when there is none, the failure comes at once.
 *
 * After "The Tail at Scale" (Dean and Barroso, 2013) and the hedging of gRPC proposal A6.
 */
export const hedge = <Candidate, A, E, R, E2>(
  candidates: ReadonlyArray<Candidate>,
  ask: (candidate: Candidate, position: number, race: HedgeRace.Race) => Effect.Effect<A, E, R>,
  options: HedgeRace.Options<E, E2>
): Effect.Effect<A, E | E2, R> =>
  Effect.flatMap(Effect.runtime<R>(), (runtime) =>
    Effect.uninterruptibleMask((restore) => {
      const race = HedgeRace.make(
        Runtime.enableRuntimeFlag(runtime, RuntimeFlags.Interruption),
        candidates,
        ask,
        options
      )
      const decided = race.begin()
      return decided ?? Effect.onInterrupt(restore(Effect.async(race.whenDecided)), () => race.abandon)
    })
  )
