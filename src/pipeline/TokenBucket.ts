/** Stays under a rate: a bucket of tokens that refills evenly, with waiters in order. */
import { type ConfigError, Duration, Effect, Either } from "effect"
import type { ThrottledError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Bucket from "./Bucket.ts"
import * as LimiterGate from "./LimiterGate.ts"
import * as Line from "./LimiterLine.ts"
import { Room } from "./LimiterPermit.ts"
import { throttled } from "./LimiterRefusal.ts"

/** How a bucket fills and how long one may wait for it. */
export interface Options {
  /** Tokens per interval; above zero. */
  readonly limit: number
  /** Default: 1 minute. */
  readonly interval?: Duration.DurationInput | undefined
  /** What the bucket holds, and therefore how much may go at once after a pause; a whole number from 1. Default: 5. */
  readonly burst?: number | undefined
  /** The longest wait; one that would take longer is refused at once. Default: 1 second. */
  readonly maxWait?: Duration.DurationInput | undefined
}

/** A token bucket. */
export interface TokenBucket {
  /**
   * Takes tokens, after waiting for them in line if need be, and tells how long that took. Fails at once with
   * `ThrottledError` if the wait is longer than `maxWait`, or if the cost is more than the bucket can hold.
   * Interrupted while waiting, it takes nothing. `atMost` bounds this one wait further than `maxWait` does.
   */
  readonly take: (cost?: number, atMost?: Duration.Duration) => Effect.Effect<Duration.Duration, ThrottledError>
  /** Runs an effect after taking tokens. If it is interrupted before the effect has begun, the tokens are given back. */
  readonly withTokens: (
    cost?: number,
    atMost?: Duration.Duration
  ) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ThrottledError, R>
  /** Tokens that could be taken now; below zero by what is waited for. */
  readonly available: Effect.Effect<number>
}

interface Checked {
  readonly bucket: Bucket.Bucket
  readonly maxWaitMillis: number
}

const check = (options: Options, path: string) =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["limit", "interval", "burst", "maxWait"])
    const { interval = 60_000, burst = 5, maxWait = 1000 } = options
    const limit = yield* OptionCheck.positive(`${path}.limit`, options.limit)
    const intervalMillis = yield* OptionCheck.durationMillis(`${path}.interval`, interval, "above-zero")
    return {
      bucket: Bucket.full(limit, intervalMillis, yield* OptionCheck.wholeNumber(`${path}.burst`, burst, 1)),
      maxWaitMillis: yield* OptionCheck.durationMillis(`${path}.maxWait`, maxWait, "zero")
    }
  })

/** Only the bucket limits; the length of the line is bounded by `maxWait`. */
const rules = { concurrency: Number.POSITIVE_INFINITY, maxQueue: Number.POSITIVE_INFINITY }

/** A bucket of its own state, full at the start; `name` stands in `ThrottledError.provider`. */
export const make = (
  options: Options,
  name = "bucket",
  path = "limits"
): Effect.Effect<TokenBucket, ConfigError.ConfigError> =>
  Effect.flatMap(
    Effect.suspend(() => check(options, path)),
    (checked) => Effect.map(LimiterGate.make(rules, checked.bucket, undefined), (gate) => fromGate(gate, checked, name))
  )

const fromGate = (gate: LimiterGate.Gate, checked: Checked, name: string): TokenBucket => {
  const enter = (cost: number, atMost: Duration.Duration | undefined, restore: LimiterGate.Restore) => {
    const atMostMillis = atMost === undefined ? Number.POSITIVE_INFINITY : Duration.toMillis(atMost)
    const maxWaitMillis = Math.min(checked.maxWaitMillis, atMostMillis)
    return Effect.catchAll(gate.enter(costOf(cost), maxWaitMillis, undefined, restore), ({ waitMillis }) =>
      throttled({ waitMillis, limit: undefined }, name)
    )
  }

  return {
    take: (cost = 1, atMost) => Effect.uninterruptibleMask((restore) => enter(cost, atMost, restore)),
    withTokens:
      (cost = 1, atMost) =>
      (effect) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(enter(cost, atMost, restore), (waited) =>
            new Room(gate, costOf(cost), waited).around(effect, restore)
          )
        ),
    available: Effect.map(gate.state, ({ requests, line }) =>
      Line.all(line).reduce(
        (left, { cost }) => left - cost.requests,
        requests === undefined ? 0 : Bucket.left(requests)
      )
    )
  }
}

const costOf = (requests: number) => ({ requests, tokens: 0, places: 0 })
