/** How often to try again, and how long to wait before it. */
import { type ConfigError, type Duration, Effect, Either, Schedule } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"

/** Options of a retry policy. */
export interface Options {
  /** Attempts in all, the first included; a whole number from 1. Default: 3. */
  readonly maxAttempts?: number | undefined
  /** The ceiling of the first wait. Default: 500 ms. */
  readonly baseDelay?: Duration.DurationInput | undefined
  /** By how much the ceiling grows from wait to wait, from 1. Default: 2. */
  readonly multiplier?: number | undefined
  /** The highest ceiling; a hint that asks for more ends the retries. Default: 10 seconds. */
  readonly maxDelay?: Duration.DurationInput | undefined
  /** `"full"`: a wait is random between zero and its ceiling; `"none"`: it is the ceiling. Default: `"full"`. */
  readonly jitter?: "full" | "none" | undefined
}

/** A checked retry policy; made by `make`. */
export interface RetryPolicy {
  readonly maxAttempts: number
  readonly baseDelayMillis: number
  readonly multiplier: number
  readonly maxDelayMillis: number
  readonly jitter: "full" | "none"
  /**
   * The waits as a schedule: recurs `maxAttempts - 1` times, delays grow exponentially to the cap and are jittered
   * after it, so that they do not pile up there ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
   */
  readonly schedule: Schedule.Schedule<number>
}

/**
 * The ceiling in milliseconds of the wait after failure number `failures`, from 1:
 * min(maxDelay, baseDelay x multiplier^(failures - 1)). Finite and not negative for any number.
 */
export const ceilingMillis = (
  policy: Pick<RetryPolicy, "baseDelayMillis" | "multiplier" | "maxDelayMillis">,
  failures: number
): number =>
  policy.baseDelayMillis === 0
    ? 0
    : Math.min(policy.maxDelayMillis, policy.baseDelayMillis * policy.multiplier ** (failures - 1))

const fromNumbers = (numbers: Omit<RetryPolicy, "schedule">): RetryPolicy => {
  const exponential = Schedule.recurs(numbers.maxAttempts - 1).pipe(
    Schedule.addDelay((retries) => ceilingMillis(numbers, retries + 1))
  )
  return {
    ...numbers,
    schedule: numbers.jitter === "full" ? Schedule.jitteredWith(exponential, { min: 0, max: 1 }) : exponential
  }
}

/** The names of the options. */
export const optionNames = ["maxAttempts", "baseDelay", "multiplier", "maxDelay", "jitter"] as const

/** A policy from options, with defaults for what is not set; the left side names the first wrong option. */
export const check = (options: Options, path: string): Either.Either<RetryPolicy, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, optionNames)
    return fromNumbers({
      maxAttempts: yield* OptionCheck.wholeNumber(`${path}.maxAttempts`, options.maxAttempts ?? 3, 1),
      baseDelayMillis: yield* OptionCheck.durationMillis(`${path}.baseDelay`, options.baseDelay ?? 500, "zero"),
      multiplier: yield* OptionCheck.number(`${path}.multiplier`, options.multiplier ?? 2, 1, Number.MAX_SAFE_INTEGER),
      maxDelayMillis: yield* OptionCheck.durationMillis(`${path}.maxDelay`, options.maxDelay ?? 10_000, "zero"),
      jitter: yield* OptionCheck.oneOf(`${path}.jitter`, options.jitter ?? "full", ["full", "none"])
    })
  })

/** The same as an effect. Fails with a `ConfigError` that names a wrong option. */
export const make = (options: Options = {}, path = "retry"): Effect.Effect<RetryPolicy, ConfigError.ConfigError> =>
  Effect.suspend(() => check(options, path))

const standard = fromNumbers({
  maxAttempts: 3,
  baseDelayMillis: 500,
  multiplier: 2,
  maxDelayMillis: 10_000,
  jitter: "full"
})

export {
  /** Three attempts, waits below 500 ms and 1 s. */
  standard as default
}
