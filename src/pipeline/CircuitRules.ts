/** When a circuit opens and how it comes back: the options of a circuit breaker, and their check. */
import { type ConfigError, Duration, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import type * as FailureWindow from "./FailureWindow.ts"

/** Opens the circuit by the share of bad calls in a window of time. */
export interface RateOptions {
  /** The share from which the circuit opens; above 0, to 1. Default: 0.5. */
  readonly threshold?: number | undefined
  /** How far back calls count; above zero. Default: 1 minute. */
  readonly window?: Duration.DurationInput | undefined
  /** Into how many parts the window is cut: it moves on by one part at a time. A whole number from 1. Default: 10. */
  readonly buckets?: number | undefined
  /** With fewer calls in the window the share says nothing. A whole number from 1. Default: 10. */
  readonly minimumCalls?: number | undefined
}

/** Opens the circuit by the share of slow calls in a window of time. */
export interface SlowCallOptions extends RateOptions {
  /** A call that takes longer is slow, whatever it ends with; above zero. Of a stream, what counts is its first content. */
  readonly slowerThan: Duration.DurationInput
}

/** Lets the open time grow when the circuit opens again and again without having closed. */
export interface ReopeningOptions {
  /** By how much the open time grows each time; from 1. Default: 2. */
  readonly multiplier?: number | undefined
  /** The longest open time; above zero. Default: 5 minutes. */
  readonly maxTimeout?: Duration.DurationInput | undefined
  /** Up to which share of itself the open time is lengthened at random; from 0 to 1. Default: 0. */
  readonly jitter?: number | undefined
}

/** Lets a recovered callee have its calls back little by little; the others are rejected, and go elsewhere. */
export interface RampUpOptions {
  /** How long it takes until all calls are let through again; above zero. */
  readonly duration: Duration.DurationInput
  /** The share that is let through at first, growing evenly; above 0, to 1. Default: 0.1. */
  readonly initialShare?: number | undefined
}

/** How a circuit breaker counts. */
export interface Options {
  /** Consecutive failures that open the circuit; a whole number from 1. Default: 5. */
  readonly failureThreshold?: number | undefined
  /** Opens it by the share of failures too. Default: off. */
  readonly failureRate?: RateOptions | undefined
  /** Opens it by the share of slow calls too. Default: off. */
  readonly slowCall?: SlowCallOptions | undefined
  /** How long it stays open before a probe is let through; above zero. Default: 30 seconds. */
  readonly resetTimeout?: Duration.DurationInput | undefined
  /** Lets `resetTimeout` grow from one opening to the next without a closing between them. Default: off. */
  readonly reopening?: ReopeningOptions | undefined
  /** Probes let through while half-open; that many successes close it. A whole number from 1. Default: 1. */
  readonly halfOpenCalls?: number | undefined
  /** After this time without a report a probe is given up, and another let through; above zero. Default: 1 minute. */
  readonly halfOpenTimeout?: Duration.DurationInput | undefined
  /** Gives a recovered callee its calls back little by little. Default: off, all at once. */
  readonly rampUp?: RampUpOptions | undefined
}

/** A share of bad calls that opens the circuit. */
export interface RateRule {
  readonly threshold: number
  readonly minimumCalls: number
  readonly window: FailureWindow.Rules
}

/** The options with all defaults in place. */
export interface Rules {
  readonly failureThreshold: number
  readonly failureRate: RateRule | undefined
  readonly slowCall: (RateRule & { readonly slowerThanMillis: number }) | undefined
  readonly resetTimeoutMillis: number
  readonly reopening:
    | { readonly multiplier: number; readonly maxTimeoutMillis: number; readonly jitter: number }
    | undefined
  readonly halfOpenCalls: number
  readonly halfOpenTimeoutMillis: number
  readonly rampUp: { readonly durationMillis: number; readonly initialShare: number } | undefined
}

type Checked<A> = Either.Either<A, ConfigError.ConfigError>

const rateNames = ["threshold", "window", "buckets", "minimumCalls"]

const share = (option: string, value: unknown): Checked<number> =>
  typeof value === "number" && value > 0 && value <= 1
    ? Either.right(value)
    : OptionCheck.refuse(option, value, "a number above 0 to 1")

const checkedRate = (options: RateOptions, path: string, names = rateNames): Checked<RateRule> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, names)
    const windowMillis = yield* OptionCheck.durationMillis(`${path}.window`, options.window ?? 60_000, "above-zero")
    const buckets = yield* OptionCheck.wholeNumber(`${path}.buckets`, options.buckets ?? 10, 1, 10_000)
    return {
      threshold: yield* share(`${path}.threshold`, options.threshold ?? 0.5),
      minimumCalls: yield* OptionCheck.wholeNumber(`${path}.minimumCalls`, options.minimumCalls ?? 10, 1),
      window: { buckets, bucketMillis: windowMillis / buckets }
    }
  })

const checkedSlowCall = (options: SlowCallOptions, path: string): Checked<NonNullable<Rules["slowCall"]>> =>
  Either.gen(function* () {
    const rate = yield* checkedRate(options, path, ["slowerThan", ...rateNames])
    const slowerThan = `${path}.slowerThan`
    return {
      ...rate,
      slowerThanMillis: yield* OptionCheck.durationMillis(slowerThan, options.slowerThan, "above-zero")
    }
  })

const checkedReopening = (options: ReopeningOptions, path: string): Checked<NonNullable<Rules["reopening"]>> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["multiplier", "maxTimeout", "jitter"])
    const maxTimeout = options.maxTimeout ?? Duration.minutes(5)
    return {
      multiplier: yield* OptionCheck.number(`${path}.multiplier`, options.multiplier ?? 2, 1, Number.MAX_SAFE_INTEGER),
      maxTimeoutMillis: yield* OptionCheck.durationMillis(`${path}.maxTimeout`, maxTimeout, "above-zero"),
      jitter: yield* OptionCheck.number(`${path}.jitter`, options.jitter ?? 0, 0, 1)
    }
  })

const checkedRampUp = (options: RampUpOptions, path: string): Checked<NonNullable<Rules["rampUp"]>> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["duration", "initialShare"])
    return {
      durationMillis: yield* OptionCheck.durationMillis(`${path}.duration`, options.duration, "above-zero"),
      initialShare: yield* share(`${path}.initialShare`, options.initialShare ?? 0.1)
    }
  })

const where = <A, B>(options: A | undefined, check: (options: A) => Checked<B>): Checked<B | undefined> =>
  options === undefined ? Either.right(undefined) : check(options)

/** The names of the options. */
export const optionNames: ReadonlyArray<keyof Options> = [
  "failureThreshold",
  "failureRate",
  "slowCall",
  "resetTimeout",
  "reopening",
  "halfOpenCalls",
  "halfOpenTimeout",
  "rampUp"
]

/** Puts the defaults in place. Fails with a `ConfigError` that names the first wrong option, its value and the rule. */
export const resolve = (options: Options, path: string): Checked<Rules> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, optionNames)
    const millis = (name: "resetTimeout" | "halfOpenTimeout", fallback: number) =>
      OptionCheck.durationMillis(`${path}.${name}`, options[name] ?? fallback, "above-zero")
    return {
      failureThreshold: yield* OptionCheck.wholeNumber(`${path}.failureThreshold`, options.failureThreshold ?? 5, 1),
      failureRate: yield* where(options.failureRate, (rate) => checkedRate(rate, `${path}.failureRate`)),
      slowCall: yield* where(options.slowCall, (slow) => checkedSlowCall(slow, `${path}.slowCall`)),
      resetTimeoutMillis: yield* millis("resetTimeout", 30_000),
      reopening: yield* where(options.reopening, (reopening) => checkedReopening(reopening, `${path}.reopening`)),
      halfOpenCalls: yield* OptionCheck.wholeNumber(`${path}.halfOpenCalls`, options.halfOpenCalls ?? 1, 1),
      halfOpenTimeoutMillis: yield* millis("halfOpenTimeout", 60_000),
      rampUp: yield* where(options.rampUp, (rampUp) => checkedRampUp(rampUp, `${path}.rampUp`))
    }
  })
