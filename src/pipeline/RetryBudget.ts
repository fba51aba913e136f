/** Keeps retries a share of calls, so that an outage is not multiplied by those who suffer it. */
import { type ConfigError, type Duration, Effect, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Monotonic from "./Monotonic.ts"

/** How much may be retried. */
export interface Options {
  /** Retries per call, from 0 to 1. Default: 0.2, one retry for five calls. */
  readonly share?: number | undefined
  /** Retries that come free with each second of the window, so that a quiet client may retry. Default: 3. */
  readonly minimumPerSecond?: number | undefined
  /** How far back calls and retries count, from 1 second; it moves on in tenths. Default: 10 seconds. */
  readonly window?: Duration.DurationInput | undefined
}

/** Where a budget stands. */
export interface Snapshot {
  /** Calls within the window. */
  readonly calls: number
  /** Retries within the window. */
  readonly retries: number
  /** Retries that could be made now; a whole number. */
  readonly available: number
}

/**
 * A budget for all that repeats a call, retries and hedges together: within the window there are never more of them than
 * `share` x calls + `minimumPerSecond` x seconds. It has state but no name: two providers with a budget each do not drain
 * one another's. Times are monotonic milliseconds; one that is earlier than a time before it changes nothing in the past
 * and counts as the latest.
 */
export interface RetryBudget {
  /** Counts a call: once, however often the call is tried. Takes some nanoseconds and allocates nothing. */
  readonly deposit: (nowMillis: number) => void
  /** `deposit` at the time of the clock. */
  readonly depositing: Effect.Effect<void>
  /** Takes one retry, if there is one: decision and change are one step. */
  readonly withdraw: (nowMillis: number) => boolean
  /** `withdraw` at the time of the clock. */
  readonly withdrawal: Effect.Effect<boolean>
  /** The budget at the time of the clock. */
  readonly snapshot: Effect.Effect<Snapshot>
}

interface Rules {
  readonly share: number
  /** Retries that the window allows without any call. */
  readonly minimum: number
  readonly bucketMillis: number
}

/** The window in this many buckets of time, which expire one by one. */
const bucketCount = 10

/** What a product of share and calls may lack of the whole number that it should be. */
const rounding = 1e-9

/** The names of the options. */
export const optionNames = ["share", "minimumPerSecond", "window"] as const

const checkedRules = (options: Options, path: string): Either.Either<Rules, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, optionNames)
    const share = yield* OptionCheck.number(`${path}.share`, options.share ?? 0.2, 0, 1)
    const perSecond = yield* OptionCheck.number(
      `${path}.minimumPerSecond`,
      options.minimumPerSecond ?? 3,
      0,
      Number.MAX_SAFE_INTEGER
    )
    const window = options.window ?? 10_000
    const windowMillis = yield* OptionCheck.durationMillis(`${path}.window`, window, "above-zero")
    if (windowMillis < 1000) return yield* OptionCheck.refuse(`${path}.window`, window, "a duration from 1 second")
    return { share, minimum: (perSecond * windowMillis) / 1000, bucketMillis: windowMillis / bucketCount }
  })

/**
 * A budget of its own state, in constant memory. Fails with a `ConfigError` that names a wrong option.
 *
 * The rule is that of Finagle's `RetryBudget` (a share of recent requests and a reserve per second). Calls and retries
 * are counted apart, in a ring of buckets with running totals: a retry spends from the window in which it is made, and a
 * silence as long as the window forgets everything.
 */
export const make = (
  options: Options = {},
  path = "retry.budget"
): Effect.Effect<RetryBudget, ConfigError.ConfigError> =>
  Effect.suspend(() => Either.map(checkedRules(options, path), fromRules))

const fromRules = ({ share, minimum, bucketMillis }: Rules): RetryBudget => {
  const calls = new Array<number>(bucketCount).fill(0)
  const retries = new Array<number>(bucketCount).fill(0)
  let totalCalls = 0
  let totalRetries = 0
  /** The number of the newest bucket since time zero, and its place in the ring. */
  let newest = Number.NEGATIVE_INFINITY
  let place = 0

  const moveTo = (nowMillis: number): void => {
    const bucket = Math.floor(nowMillis / bucketMillis)
    if (!(bucket > newest)) return
    for (let passed = Math.min(bucket - newest, bucketCount); passed > 0; passed--) {
      place = (place + 1) % bucketCount
      totalCalls -= calls[place] ?? 0
      totalRetries -= retries[place] ?? 0
      calls[place] = 0
      retries[place] = 0
    }
    newest = bucket
  }

  const available = (): number => share * totalCalls + minimum - totalRetries + rounding

  const deposit = (nowMillis: number): void => {
    moveTo(nowMillis)
    calls[place] = (calls[place] ?? 0) + 1
    totalCalls += 1
  }

  const withdraw = (nowMillis: number): boolean => {
    moveTo(nowMillis)
    if (available() < 1) return false
    retries[place] = (retries[place] ?? 0) + 1
    totalRetries += 1
    return true
  }

  return {
    deposit,
    depositing: Effect.map(Monotonic.millis, deposit),
    withdraw,
    withdrawal: Effect.map(Monotonic.millis, withdraw),
    snapshot: Effect.map(Monotonic.millis, (nowMillis) => {
      moveTo(nowMillis)
      return { calls: totalCalls, retries: totalRetries, available: Math.max(0, Math.floor(available())) }
    })
  }
}
