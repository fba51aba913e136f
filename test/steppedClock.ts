/** A clock that moves only when told to, for tests of thousands of histories. */
import { Clock, Duration, Effect } from "effect"

/** Lets every fiber run until it waits for something that is not its turn. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Does what `TestClock` does, without a timer of the machine for every step; and its wall time can be set apart. */
export class SteppedClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  readonly currentTimeMillis = Effect.sync(() => this.unsafeCurrentTimeMillis())
  readonly currentTimeNanos = Effect.sync(() => this.unsafeCurrentTimeNanos())
  /** How far the wall clock is off. */
  wallMillis = 0
  #now = 0
  #sleepers: ReadonlyArray<{ readonly at: number; readonly wake: () => void }> = []

  unsafeCurrentTimeMillis(): number {
    return this.#now + this.wallMillis
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(this.#now) * 1_000_000n
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async((resume) => {
      const sleeper = { at: this.#now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
      this.#sleepers = [...this.#sleepers, sleeper].sort((one, other) => one.at - other.at)
      return Effect.sync(() => {
        this.#sleepers = this.#sleepers.filter((it) => it !== sleeper)
      })
    })
  }

  /** Wakes one sleeper after the other, each in its own time, and lets it run until it waits. */
  async advance(millis: number): Promise<void> {
    const target = this.#now + millis
    for (let next = this.#sleepers[0]; next !== undefined && next.at <= target; next = this.#sleepers[0]) {
      this.#sleepers = this.#sleepers.slice(1)
      this.#now = next.at
      next.wake()
      await settle()
    }
    this.#now = target
  }
}
