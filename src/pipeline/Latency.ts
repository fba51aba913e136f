/** Remembers how long the latest calls took, to tell what is slow. */
import { type ConfigError, Effect, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Monotonic from "./Monotonic.ts"

/** How much is remembered. */
export interface Options {
  /** How many of the latest samples count; a whole number from 1. Default: 128. */
  readonly samples?: number | undefined
  /** With fewer samples there is no percentile; a whole number from 1, at most `samples`. Default: 20. */
  readonly minimumSamples?: number | undefined
}

/**
 * The latest latencies. Only successes belong in it: failures are often quick, and a call that was cancelled because
 * another was faster did not take as long as it would have.
 */
export interface Latency {
  /** Takes in a sample, in place of the oldest; what is no time (negative, NaN, infinite) is left out. Allocates nothing. */
  readonly record: (millis: number) => void
  /**
   * The latency in milliseconds that such a share of the samples, from 0 to 1, does not exceed (nearest rank): 0.95 asks
   * for what 95 % of the calls keep within. `undefined` while there are too few samples, or for another share.
   */
  readonly percentile: (share: number) => number | undefined
  /** Runs an effect and takes in how long it took, if it succeeds. */
  readonly measured: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** The names of the options. */
export const optionNames = ["samples", "minimumSamples"] as const

/** A memory of its own, empty, of constant size. Fails with a `ConfigError` that names a wrong option. */
export const make = (options: Options = {}, path = "latency"): Effect.Effect<Latency, ConfigError.ConfigError> =>
  Effect.suspend(() =>
    Either.gen(function* () {
      yield* OptionCheck.knownKeys(path, options, optionNames)
      const size = yield* OptionCheck.wholeNumber(`${path}.samples`, options.samples ?? 128, 1)
      const minimum = options.minimumSamples ?? Math.min(20, size)
      yield* OptionCheck.wholeNumber(`${path}.minimumSamples`, minimum, 1)
      return ofSize(size, yield* OptionCheck.number(`${path}.minimumSamples`, minimum, 1, size))
    })
  )

const ofSize = (size: number, minimum: number): Latency => {
  /** The samples in order of arrival, as a ring, and in order of length as of the last time that anybody asked. */
  const ring = new Float64Array(size)
  const sorted = new Float64Array(size)
  let isSorted = true
  let count = 0
  let oldest = 0

  const record = (millis: number): void => {
    if (!(millis >= 0 && millis < Number.POSITIVE_INFINITY)) return
    if (count < size) count += 1
    ring[oldest] = millis
    oldest = (oldest + 1) % size
    isSorted = false
  }

  const inOrder = (): Float64Array => {
    const known = sorted.subarray(0, count)
    if (isSorted) return known
    isSorted = true
    known.set(ring.subarray(0, count))
    return known.sort()
  }

  return {
    record,
    percentile: (share) =>
      count >= minimum && share >= 0 && share <= 1
        ? inOrder()[Math.max(0, Math.ceil(share * count - 1e-9) - 1)]
        : undefined,
    measured: (effect) =>
      Effect.clockWith((clock) => {
        const begunMillis = Monotonic.unsafeMillis(clock)
        return Effect.map(effect, (answer) => {
          record(Monotonic.unsafeMillis(clock) - begunMillis)
          return answer
        })
      })
  }
}
