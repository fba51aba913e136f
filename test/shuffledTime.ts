/**
 * Virtual time in which fibers also stop between any two of their operations, as a seed says, so that those which run at
 * the same time get in one another's way as they never do by themselves.
 */
import { Clock, Duration, Effect, type Fiber, type Scheduler } from "effect"

interface Sleep {
  readonly atMillis: number
  readonly wake: () => void
}

/** A clock that is moved by hand, and the scheduler of the fibers that live by it. */
export class ShuffledTime implements Scheduler.Scheduler {
  nowMillis = 0
  /** How far the wall clock is off. */
  wallMillis = 0
  /** Whether fibers stop where they need not. */
  shuffles: boolean
  #seed: number
  #tasks: Array<() => void> = []
  #sleeps: Array<Sleep> = []

  /** Without a seed, fibers run as long as they can. */
  constructor(seed?: number) {
    this.#seed = seed ?? 0
    this.shuffles = seed !== undefined
  }

  readonly clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => this.nowMillis + this.wallMillis,
    unsafeCurrentTimeNanos: () => BigInt(Math.round(this.nowMillis * 1e6)),
    currentTimeMillis: Effect.sync(() => this.nowMillis + this.wallMillis),
    currentTimeNanos: Effect.sync(() => BigInt(Math.round(this.nowMillis * 1e6))),
    // `Effect.async` sets the timer before it can be interrupted: stopped in between, the timer would stay.
    sleep: (duration) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          let isOver = false
          let resume = () => {
            isOver = true
          }
          const sleep = { atMillis: this.nowMillis + Duration.toMillis(duration), wake: () => resume() }
          this.#sleeps.push(sleep)
          const over = Effect.async<void>((done) => {
            resume = () => done(Effect.void)
            if (isOver) resume()
          })
          return Effect.ensuring(
            restore(over),
            Effect.sync(() => {
              this.#sleeps = this.#sleeps.filter((other) => other !== sleep)
            })
          )
        })
      )
  }

  scheduleTask(task: () => void): void {
    this.#tasks.push(task)
  }

  shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>): number | false {
    return (this.shuffles && this.#random() < 0.03) || fiber.currentOpCount > 2048 ? 0 : false
  }

  /** Timers that have been set and not been stopped. */
  get timers(): number {
    return this.#sleeps.length
  }

  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> {
    return Effect.runFork(Effect.withClock(effect, this.clock), { scheduler: this })
  }

  /** Runs all that can run. Shared timers live in fibers of the machine's own scheduler, which takes microtasks. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < 4; idle++) {
      for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) {
        task()
        idle = 0
      }
      await Promise.resolve()
    }
  }

  /** Lets time pass, from timer to timer, while `until` is not reached. */
  async advance(millis: number, until: () => boolean = () => false): Promise<void> {
    const end = this.nowMillis + millis
    await this.settle()
    while (!until()) {
      const next = this.#sleeps.reduce<Sleep | undefined>(
        (first, sleep) => (first === undefined || sleep.atMillis < first.atMillis ? sleep : first),
        undefined
      )
      if (next === undefined || next.atMillis > end) {
        this.nowMillis = end
        return
      }
      this.nowMillis = Math.max(this.nowMillis, next.atMillis)
      // All who wake now are awake together, so that any of them may be the first to go on.
      const due = this.#sleeps.filter(({ atMillis }) => atMillis <= this.nowMillis)
      this.#sleeps = this.#sleeps.filter((sleep) => !due.includes(sleep))
      for (const { wake } of this.shuffles && this.#random() < 0.5 ? due.reverse() : due) wake()
      await this.settle()
    }
  }

  /** A number from 0 to below 1 (mulberry32). */
  #random(): number {
    this.#seed = (this.#seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
