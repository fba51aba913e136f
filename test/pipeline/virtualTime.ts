/**
 * Runs an effect in virtual time, to its end, in one synchronous step. For long simulations and many runs: `TestClock`
 * takes some milliseconds of real time for every sleeper that it wakes, this takes microseconds.
 */
import { Clock, Duration, Effect, type Exit, type Fiber, type Scheduler } from "effect"

interface Sleeper {
  readonly atMillis: number
  readonly wake: () => void
}

/** Runs whatever is ready when it is told to, in order of arrival. */
class SteppedScheduler implements Scheduler.Scheduler {
  readonly #tasks: Array<() => void> = []

  scheduleTask(task: () => void) {
    this.#tasks.push(task)
  }

  shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>) {
    return fiber.currentOpCount > 2048 ? 0 : (false as const)
  }

  runReady() {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) task()
  }
}

/** How an effect ended, and what it left behind. */
export interface Run<A, E> {
  /** `undefined`: it never ends. */
  readonly exit: Exit.Exit<A, E> | undefined
  readonly endedAtMillis: number
  /** Timers that were still running when the effect ended. */
  readonly timersLeft: number
}

/** Runs an effect from time 0. Sleepers that wake at the same moment wake in the order in which they went to sleep. */
export const runVirtually = <A, E>(effect: Effect.Effect<A, E>): Run<A, E> => {
  const scheduler = new SteppedScheduler()
  const sleepers: Array<Sleeper> = []
  let nowMillis = 0

  const nowNanos = () => BigInt(Math.round(nowMillis * 1e6))
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => nowMillis,
    unsafeCurrentTimeNanos: nowNanos,
    currentTimeMillis: Effect.sync(() => nowMillis),
    currentTimeNanos: Effect.sync(nowNanos),
    sleep: (duration) =>
      Effect.async((resume) => {
        const sleeper = { atMillis: nowMillis + Duration.toMillis(duration), wake: () => resume(Effect.void) }
        const behind = sleepers.findIndex(({ atMillis }) => atMillis > sleeper.atMillis)
        sleepers.splice(behind === -1 ? sleepers.length : behind, 0, sleeper)
        return Effect.sync(() => {
          const place = sleepers.indexOf(sleeper)
          if (place !== -1) sleepers.splice(place, 1)
        })
      })
  }

  const fiber = Effect.runFork(Effect.withClock(effect, clock), { scheduler })
  scheduler.runReady()
  while (fiber.unsafePoll() === null) {
    const next = sleepers.shift()
    if (next === undefined) break
    nowMillis = next.atMillis
    next.wake()
    scheduler.runReady()
  }
  return { exit: fiber.unsafePoll() ?? undefined, endedAtMillis: nowMillis, timersLeft: sleepers.length }
}
