/** One timer for many waits of the same length: starting and stopping one costs next to nothing. */
import { type Clock, Duration, Effect, Fiber } from "effect"
import * as Monotonic from "./Monotonic.ts"

/** Starts a wait; `onExpire` runs when it is over. What it gives back stops it. */
export type Start = (clock: Clock.Clock, onExpire: () => void) => () => void

/** A watch over waits that all take the same time. */
export interface Watch {
  readonly start: Start
  /** Ends the watch with all its waits. */
  readonly stop: Effect.Effect<void>
}

/** A wait in the line. As all take the same time, the line is in order of expiry. */
interface Entry {
  readonly atMillis: number
  readonly onExpire: () => void
  previous: Entry
  next: Entry
}

/** The watch looks up at least this often, so that it ends soon after the last wait has been stopped. */
const lookUpMillis = 1000

/**
 * A watch over waits of `millis`. A fiber sleeps until the first of them expires, while there are any; none is made for
 * a single wait.
 */
export const make = (millis: number): Watch => {
  const line = {} as Entry
  line.previous = line
  line.next = line
  let watching: Fiber.RuntimeFiber<void> | undefined

  const remove = (entry: Entry) => {
    entry.previous.next = entry.next
    entry.next.previous = entry.previous
    entry.next = entry
    entry.previous = entry
  }

  const watch = (clock: Clock.Clock): Effect.Effect<void> =>
    Effect.suspend(() => {
      const now = Monotonic.unsafeMillis(clock)
      while (line.next !== line && line.next.atMillis <= now) {
        const expired = line.next
        remove(expired)
        expired.onExpire()
      }
      if (line.next === line) {
        watching = undefined
        return Effect.void
      }
      const sleepMillis = Math.min(Math.ceil(line.next.atMillis - now), lookUpMillis)
      return Effect.zipRight(clock.sleep(Duration.millis(sleepMillis)), watch(clock))
    })

  return {
    start: (clock, onExpire) => {
      const entry = { atMillis: Monotonic.unsafeMillis(clock) + millis, onExpire } as Entry
      entry.previous = line.previous
      entry.next = line
      line.previous.next = entry
      line.previous = entry
      watching ??= Effect.runFork(watch(clock))
      return () => remove(entry)
    },
    stop: Effect.suspend(() => (watching === undefined ? Effect.void : Fiber.interruptFork(watching)))
  }
}
