/** Time that never steps back, for everything that is measured or waited for. */
import { type Clock, Effect } from "effect"

/** Milliseconds, with fractions, since a moment that stays the same for the life of the process. */
export const unsafeMillis = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos()) / 1e6

/** The monotonic time in milliseconds. The wall clock (`Clock.currentTimeMillis`) can be set back; this cannot. */
export const millis: Effect.Effect<number> = Effect.clockWith((clock) => Effect.succeed(unsafeMillis(clock)))
