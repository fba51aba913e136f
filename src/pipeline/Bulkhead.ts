/** Bounds the calls in flight, with a bounded line of waiters before it. */
import { type ConfigError, type Duration, Effect, Either } from "effect"
import type { ThrottledError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Limiter from "./Limiter.ts"

/** How many may be in flight and how many may wait. */
export interface Options {
  /** Calls in flight at once; a whole number from 1. */
  readonly concurrency: number
  /** How many may wait; a whole number from 0. Default: 100. */
  readonly maxQueue?: number | undefined
  /** The longest wait; 0 refuses at once. Default: 1 second. */
  readonly maxWait?: Duration.DurationInput | undefined
}

/** A bulkhead. */
export interface Bulkhead {
  /**
   * Runs an effect when there is a place for it; waiters are served in order. Fails with `ThrottledError` (`limit` is
   * `"concurrency"`, `wait` zero) at once if too many wait already, or when `maxWait` is over. The place is given back
   * exactly once, however the effect ends; an interrupted waiter leaves the line at once.
   */
  readonly withPermit: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ThrottledError, R>
  readonly snapshot: Effect.Effect<{ readonly inFlight: number; readonly queued: number }>
}

/** A bulkhead of its own state; `name` stands in `ThrottledError.provider`. */
export const make = (
  options: Options,
  name = "bulkhead",
  path = "bulkhead"
): Effect.Effect<Bulkhead, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    yield* check(options, path)
    const { withRoom, snapshot } = yield* Limiter.make(options, name, path)
    return { withPermit: (effect) => withRoom({}, () => effect), snapshot }
  })

const check = (options: Options, path: string) =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["concurrency", "maxQueue", "maxWait"])
    yield* OptionCheck.wholeNumber(`${path}.concurrency`, options.concurrency, 1)
  })
