/** A short queue from the one who makes something to the one who takes it. */
import { Effect, type Exit } from "effect"

/** A queue of at most so many things, between one who gives and one who takes. */
export interface Handover<A, E> {
  /** Gives if there is room; tells whether there was. After the end, what is given is dropped. */
  readonly offerNow: (given: A) => boolean
  /** Gives when there is room. */
  readonly offer: (given: A) => Effect.Effect<void>
  /** What the taker gets when all that was given is taken. The first end counts. */
  readonly end: (exit: Exit.Exit<never, E>) => Effect.Effect<void>
  /** All that has been given, at least one; waits for it. */
  readonly takeAll: Effect.Effect<ReadonlyArray<A>, E>
}

/**
 * An empty queue. Who finds nothing to do looks once more in the step in which he begins to wait, so that nobody misses
 * what came while his fiber was stopped in between. (`Mailbox` and `Queue` do not: a taker may then wait for ever.)
 */
export const make = <A, E>(capacity: number): Handover<A, E> => {
  let waiting: Array<A> = []
  let ended: Exit.Exit<never, E> | undefined
  let wakeTaker = () => {}
  let wakeGiver = () => {}

  const isRoom = () => ended !== undefined || waiting.length < capacity
  const isNews = () => ended !== undefined || waiting.length > 0

  const offerNow = (given: A): boolean => {
    if (!isRoom()) return false
    if (ended === undefined) waiting.push(given)
    wakeTaker()
    return true
  }

  const room = Effect.async<void>((resume) => {
    wakeGiver = () => resume(Effect.void)
    if (isRoom()) wakeGiver()
  })

  const news = Effect.async<void>((resume) => {
    wakeTaker = () => resume(Effect.void)
    if (isNews()) wakeTaker()
  })

  const offer = (given: A): Effect.Effect<void> =>
    Effect.suspend(() => (offerNow(given) ? Effect.void : Effect.zipRight(room, offer(given))))

  const takeAll: Effect.Effect<ReadonlyArray<A>, E> = Effect.suspend(() => {
    if (waiting.length === 0) return ended ?? Effect.zipRight(news, takeAll)
    const taken = waiting
    waiting = []
    wakeGiver()
    return Effect.succeed(taken)
  })

  return {
    offerNow,
    offer,
    end: (exit) =>
      Effect.sync(() => {
        ended ??= exit
        wakeTaker()
      }),
    takeAll
  }
}
