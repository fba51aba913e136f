/** Runs what many ask for at the same time once, for all of them. */
import { Deferred, Effect, Exit, Fiber, FiberId } from "effect"

/** What a run knows of its flight. */
export interface Flight<A> {
  /** Hands out the answer before the run has ended; what is left of the run is then never interrupted. */
  readonly land: (answer: A) => void
  /** Whether newcomers still join it: nobody has said `forget`, and somebody waits for it. */
  readonly isCurrent: () => boolean
}

/** An answer, and whether it was one's own run that brought it. */
export interface Joined<A> {
  readonly answer: A
  readonly isFirst: boolean
}

/** Flights by key. */
export interface SingleFlight<A, E> {
  /**
   * Waits for the flight of a key, and begins it if there is none. The run is nobody's child: it ends when it is done, or
   * when the last who waits is interrupted, who then waits until it has cleaned up. Who comes in that time begins
   * another. How it ends is told to all who wait: an answer, a failure, a defect. It sees what is in the context of
   * the one who began it, but neither its interruption nor a time limit around it.
   */
  readonly join: <R>(key: string, run: (flight: Flight<A>) => Effect.Effect<A, E, R>) => Effect.Effect<Joined<A>, E, R>
  /** Lets nobody else join the flights of such keys. Ends when what landed ones still do is done. */
  readonly forget: (isMeant: (key: string) => boolean) => Effect.Effect<void>
  /** How many flights could be joined now. */
  readonly size: () => number
}

interface State<A, E> {
  readonly landed: Deferred.Deferred<A, E>
  waiters: number
  hasLanded: boolean
  fiber: Fiber.RuntimeFiber<Exit.Exit<A, E>> | undefined
}

/** Flights of its own. */
export const make = <A, E>(): SingleFlight<A, E> => {
  const flights = new Map<string, State<A, E>>()

  const isCurrent = (key: string, state: State<A, E>) => flights.get(key) === state

  const release = (key: string, state: State<A, E>) => {
    if (isCurrent(key, state)) flights.delete(key)
  }

  const land = (state: State<A, E>, exit: Exit.Exit<A, E>) => {
    if (state.hasLanded) return
    state.hasLanded = true
    Deferred.unsafeDone(state.landed, exit)
  }

  const leave = (key: string, state: State<A, E>) =>
    Effect.suspend(() => {
      state.waiters -= 1
      if (state.waiters > 0 || state.hasLanded || state.fiber === undefined) return Effect.void
      release(key, state)
      return Effect.asVoid(Fiber.interrupt(state.fiber))
    })

  /** Forked and not run on a runtime of the caller's, so that an interruption that waits for the caller stays behind. */
  const begin = <R>(key: string, state: State<A, E>, run: (flight: Flight<A>) => Effect.Effect<A, E, R>) => {
    const flight: Flight<A> = {
      land: (answer) => land(state, Exit.succeed(answer)),
      isCurrent: () => isCurrent(key, state)
    }
    const running = Effect.interruptible(Effect.exit(Effect.suspend(() => run(flight))))
    return Effect.map(Effect.forkDaemon(running), (fiber) => {
      state.fiber = fiber
      fiber.addObserver((exit) => {
        release(key, state)
        land(state, Exit.flatten(exit))
      })
    })
  }

  const finished = (state: State<A, E>): Effect.Effect<void> =>
    state.hasLanded && state.fiber !== undefined ? Effect.asVoid(state.fiber.await) : Effect.void

  const forget = (isMeant: (key: string) => boolean) =>
    Effect.suspend(() => {
      const meant = [...flights].filter(([key]) => isMeant(key))
      for (const [key] of meant) flights.delete(key)
      return Effect.forEach(meant, ([, state]) => finished(state), { discard: true })
    })

  return {
    join: (key, run) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          const known = flights.get(key)
          const state = known ?? {
            landed: Deferred.unsafeMake(FiberId.none),
            waiters: 0,
            hasLanded: false,
            fiber: undefined
          }
          state.waiters += 1
          const waiting = Effect.onExit(restore(Deferred.await(state.landed)), () => leave(key, state))
          const joined = Effect.map(waiting, (answer) => ({ answer, isFirst: known === undefined }))
          if (known !== undefined) return joined
          flights.set(key, state)
          return Effect.zipRight(begin(key, state, run), joined)
        })
      ),
    forget,
    size: () => flights.size
  }
}
