/** The options of a limiter, and the check of them. */
import { type ConfigError, type Duration, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Bucket from "./Bucket.ts"
import type { Rules } from "./LimiterDecision.ts"

/** A limit over time. */
export interface Rate {
  /** Requests or tokens per interval; above zero. */
  readonly limit: number
  /** Above zero. Default: 1 minute. */
  readonly interval?: Duration.DurationInput | undefined
  /** How much may go at once after a pause; a whole number from 1. Default: 5 requests; the tokens of a whole interval. */
  readonly burst?: number | undefined
}

/** What a limiter limits. What is not given is not limited. */
export interface Options {
  readonly requests?: Rate | undefined
  /** A call that costs more tokens than `burst` is refused. */
  readonly tokens?: Rate | undefined
  /** Calls in flight at once; a whole number from 1. */
  readonly concurrency?: number | undefined
  /** How many may wait while there is no place in flight, of each key; a whole number from 0. Default: 100. */
  readonly maxQueue?: number | undefined
  /** The longest wait. One that is known to take longer is refused at once. Default: 1 second. */
  readonly maxWait?: Duration.DurationInput | undefined
}

/** Options that passed their check. */
export interface Checked {
  readonly rules: Rules
  readonly requests: Bucket.Bucket | undefined
  readonly tokens: Bucket.Bucket | undefined
  readonly maxWaitMillis: number
}

/** Checks a rate; the bucket is full. */
export const checkRate = (
  rate: Rate,
  path: string,
  defaultBurst: number | "interval"
): Either.Either<Bucket.Bucket, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, rate, ["limit", "interval", "burst"])
    const limit = yield* OptionCheck.positive(`${path}.limit`, rate.limit)
    const interval = yield* OptionCheck.durationMillis(`${path}.interval`, rate.interval ?? 60_000, "above-zero")
    const burst =
      rate.burst === undefined && defaultBurst === "interval"
        ? Math.max(1, limit)
        : yield* OptionCheck.wholeNumber(`${path}.burst`, rate.burst ?? defaultBurst, 1)
    return Bucket.full(limit, interval, burst)
  })

/** Checks the options of a limiter. */
export const check = (options: Options, path: string): Either.Either<Checked, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["requests", "tokens", "concurrency", "maxQueue", "maxWait"])
    const { requests, tokens, concurrency, maxQueue = 100, maxWait = 1000 } = options
    return {
      rules: {
        concurrency:
          concurrency === undefined
            ? Number.POSITIVE_INFINITY
            : yield* OptionCheck.wholeNumber(`${path}.concurrency`, concurrency, 1),
        maxQueue: yield* OptionCheck.wholeNumber(`${path}.maxQueue`, maxQueue, 0)
      },
      requests: requests === undefined ? undefined : yield* checkRate(requests, `${path}.requests`, 5),
      tokens: tokens === undefined ? undefined : yield* checkRate(tokens, `${path}.tokens`, "interval"),
      maxWaitMillis: yield* OptionCheck.durationMillis(`${path}.maxWait`, maxWait, "zero")
    }
  })
