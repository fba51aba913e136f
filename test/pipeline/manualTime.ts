/**
 * Time that a test moves by hand, step by step, with the scheduling of the fibers that live by it: no promise, no timer.
 * `TestClock` takes some milliseconds of real time for every sleeper that it wakes, this takes microseconds. Everything
 * that can run has run when a method returns.
 */
import { Clock, Duration, Effect, type Fiber, type Scheduler } from "effect"

interface Sleep {
  atMillis: number
  readonly resume: () => void
}

/** A clock that is moved by hand, and the scheduler of the fibers that live by it. */
export class ManualTime implements Scheduler.Scheduler {
  nowMillis = 0
  #tasks: Array<() => void> = []
  #sleeps: Array<Sleep> = []

  readonly #clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => this.nowMillis,
    unsafeCurrentTimeNanos: () => BigInt(Math.round(this.nowMillis * 1e6)),
    currentTimeMillis: Effect.sync(() => this.nowMillis),
    currentTimeNanos: Effect.sync(() => BigInt(Math.round(this.nowMillis * 1e6))),
    sleep: (duration) =>
      Effect.async<void>((resume) => {
        const sleep = { atMillis: this.nowMillis + Duration.toMillis(duration), resume: () => resume(Effect.void) }
        this.#sleeps.push(sleep)
        return Effect.sync(() => {
          this.#sleeps = this.#sleeps.filter((other) => other !== sleep)
        })
      })
  }

  scheduleTask(task: () => void): void {
    this.#tasks.push(task)
  }

  shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>): number | false {
    return fiber.currentOpCount > 2048 ? 0 : false
  }

  /** Timers that have been set and not been stopped. */
  get timers(): number {
    return this.#sleeps.length
  }

  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> {
    const fiber = Effect.runFork(Effect.withClock(effect, this.#clock), { scheduler: this })
    this.settle()
    return fiber
  }

  /** Runs an effect that does not wait. */
  run<A, E>(effect: Effect.Effect<A, E>): A {
    const exit = this.fork(effect).unsafePoll()
    if (exit?._tag !== "Success") throw new Error(`not a success at once: ${exit}`)
    return exit.value
  }

  settle(): void {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) task()
  }

  /** Lets time pass, from timer to timer. */
  advance(millis: number): void {
    const end = this.nowMillis + millis
    for (;;) {
      const next = this.#sleeps.reduce<Sleep | undefined>(
        (first, sleep) => (first === undefined || sleep.atMillis < first.atMillis ? sleep : first),
        undefined
      )
      if (next === undefined || next.atMillis > end) break
      this.#sleeps = this.#sleeps.filter((other) => other !== next)
      this.nowMillis = Math.max(this.nowMillis, next.atMillis)
      next.resume()
      this.settle()
    }
    this.nowMillis = end
    this.settle()
  }

  /** Sets the clock without any time passing: timers keep what they have left. */
  jump(millis: number): void {
    this.nowMillis += millis
    for (const sleep of this.#sleeps) sleep.atMillis += millis
  }
}
