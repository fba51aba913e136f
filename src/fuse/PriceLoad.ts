/** The loading of prices, which harms no call. */
import { Duration, Effect, Fiber } from "effect"
import * as Deadline from "../pipeline/Deadline.ts"
import type { Call } from "./Call.ts"
import type { Answering } from "./Conversation.ts"

/** The longest that a call waits for prices; half of what its deadline leaves, if that is less. */
const maxWait = Duration.seconds(10)

/** Puts the loading of prices before the answer to a call. */
export type PriceLoad = <A>(call: Pick<Call, "deadline" | "maxCost">, running: Answering<A>) => Answering<A>

/**
 * Prices are loaded with the first call: while its provider works, or before it is asked where they may stop it. Without
 * them a call goes on as without a price. What failed is loaded again with the next call.
 */
export const make = (load: Effect.Effect<void>): PriceLoad => {
  let isOver = false
  let last: Fiber.RuntimeFiber<void> | undefined

  // In nobody's time: the deadline of the call that begins it is not that of the others.
  const loading = Effect.matchCause(Effect.locally(load, Deadline.current, undefined), {
    onFailure: () => undefined,
    onSuccess: () => {
      isOver = true
    }
  })

  /** Nobody's own: a caller who leaves does not end it for the others. */
  const begun = Effect.suspend(() =>
    last !== undefined && last.unsafePoll() === null
      ? Effect.succeed(last)
      : Effect.tap(Effect.forkDaemon(loading), (fiber) => {
          last = fiber
        })
  )

  return ({ deadline, maxCost }, running) => {
    if (isOver) return running
    if (maxCost === undefined) return Effect.zipRight(begun, running)
    const loaded = Effect.flatMap(Deadline.share(deadline, Effect.succeed(1)), (share) =>
      Effect.flatMap(begun, (fiber) => Effect.timeoutOption(Fiber.await(fiber), Duration.min(share, maxWait)))
    )
    return Effect.zipRight(loaded, running)
  }
}
