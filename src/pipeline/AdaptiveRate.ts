/** Finds the rate that a provider takes: cuts it when throttled, raises it slowly while it is used. */
import { Cause, type ConfigError, Duration, Effect, Either, Option, Ref } from "effect"
import type { ThrottledError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as AdaptiveRateState from "./AdaptiveRateState.ts"
import * as Limiter from "./Limiter.ts"
import * as Monotonic from "./Monotonic.ts"

export type { Change } from "./AdaptiveRateState.ts"

/** How the rate moves. Rates are calls per interval. */
export interface Options {
  /** The rate to begin with; above 0. Default: the ceiling; without one no limit at all, until the first throttling. */
  readonly initial?: number | undefined
  /** Never lower than this; above 0. Default: 1. */
  readonly floor?: number | undefined
  /** Never higher than this; above 0. Default: none. */
  readonly ceiling?: number | undefined
  /**
   * What a cut leaves of the rate; 0.5 to 0.9. Default: 0.85: the rate then keeps within 10 % of the limit, where 0.5
   * (TCP Reno) or 0.7 (TCP CUBIC, adaptive mode of the AWS SDKs) leave a quarter or a seventh of it unused.
   */
  readonly decrease?: number | undefined
  /**
   * By what share of the rate at the last cut it rises in an interval of use; above 0, at most 1. Default: 0.05: one cut
   * in three intervals, so one throttled call in about 90 where 30 are allowed a minute.
   */
  readonly increase?: number | undefined
  /** What the rates are per; above zero. Default: 1 minute. */
  readonly interval?: Duration.DurationInput | undefined
  /** How many calls may go at once after a pause; a whole number from 1. Default: 1. */
  readonly burst?: number | undefined
  /** The longest wait for a turn. One that would take longer is refused at once. Default: 1 second. */
  readonly maxWait?: Duration.DurationInput | undefined
}

/** What a failure that means throttling says; `retryAfter` is how long to leave the provider alone. */
export interface Throttling {
  readonly retryAfter?: Duration.DurationInput | undefined
}

/** What an adaptive rate asks and calls, and what it steers. */
export interface Hooks<E> {
  /** Whether a failure means throttling. Other failures change nothing. */
  readonly classify: (error: E) => Throttling | undefined
  /** Stands in `ThrottledError.provider`. Default: `"adaptive"`. */
  readonly name?: string | undefined
  /** The limiter to steer, instead of one of its own. */
  readonly limiter?: Limiter.Limiter | undefined
  /** Run after a cut has been made. A defect in it ends nothing. */
  readonly onLowered?: ((change: AdaptiveRateState.Change) => Effect.Effect<void>) | undefined
  /** Run after each rise, which is at every success in use. A defect in it ends nothing. */
  readonly onRaised?: ((change: AdaptiveRateState.Change) => Effect.Effect<void>) | undefined
}

/** A rate that adapts to failures of type `E`. */
export interface AdaptiveRate<in E> {
  /** Runs an effect when it is its turn, and learns from how it ends. Fails with `ThrottledError` as a limiter does. */
  readonly run: <A, E1 extends E, R>(effect: Effect.Effect<A, E1, R>) => Effect.Effect<A, E1 | ThrottledError, R>
  /**
   * A call that began then (`Monotonic.millis`) was throttled. Blocks for the hint, and cuts the rate, once for all calls
   * that began before. Without a hint it pauses for a second, twice as long each time until a call succeeds, at most an
   * interval.
   */
  readonly onThrottled: (startedAtMillis: number, hintMillis?: number) => Effect.Effect<void>
  /** A call that began then succeeded. */
  readonly onSuccess: (startedAtMillis: number) => Effect.Effect<void>
  /** Calls per interval; `undefined` while no limit is known. */
  readonly rate: Effect.Effect<number | undefined>
  /** What it steers. */
  readonly limiter: Limiter.Limiter
}

const optionNames = ["initial", "floor", "ceiling", "decrease", "increase", "interval", "burst", "maxWait"]

const check = (options: Options, path: string) =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, optionNames)
    const { floor = 1, decrease = 0.85, increase = 0.05, interval = 60_000 } = options
    const lowest = yield* OptionCheck.positive(`${path}.floor`, floor)
    const ceiling = yield* rateWithin(`${path}.ceiling`, options.ceiling, lowest, Number.POSITIVE_INFINITY)
    const highest = ceiling ?? Number.POSITIVE_INFINITY
    const rules: AdaptiveRateState.Rules = {
      intervalMillis: yield* OptionCheck.durationMillis(`${path}.interval`, interval, "above-zero"),
      floor: lowest,
      ceiling: highest,
      decrease: yield* OptionCheck.number(`${path}.decrease`, decrease, 0.5, 0.9),
      increase: yield* OptionCheck.positive(`${path}.increase`, increase)
    }
    yield* OptionCheck.number(`${path}.increase`, increase, 0, 1)
    if (options.burst !== undefined) yield* OptionCheck.wholeNumber(`${path}.burst`, options.burst, 1)
    return { rules, initial: (yield* rateWithin(`${path}.initial`, options.initial, lowest, highest)) ?? ceiling }
  })

const rateWithin = (
  option: string,
  value: number | undefined,
  floor: number,
  ceiling: number
): Either.Either<number | undefined, ConfigError.ConfigError> =>
  value === undefined || (Number.isFinite(value) && value >= floor && value <= ceiling)
    ? Either.right(value)
    : OptionCheck.refuse(option, value, `a number from ${floor}${Number.isFinite(ceiling) ? ` to ${ceiling}` : ""}`)

/** An adaptive rate of its own state. */
export const make = <E>(
  options: Options,
  hooks: Hooks<E>,
  path = "adaptive"
): Effect.Effect<AdaptiveRate<E>, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    const { rules, initial } = yield* check(options, path)
    const { interval, maxWait, burst = 1 } = options
    const requests = initial === undefined ? undefined : { limit: initial, interval, burst }
    const own = yield* Limiter.make({ requests, maxWait }, hooks.name ?? "adaptive", path)
    const limiter = hooks.limiter ?? own
    const ref = yield* Ref.make(AdaptiveRateState.initial(initial, rules, yield* Monotonic.millis))
    const steer = (limit: number) =>
      limiter.setRate({ limit, interval, burst: hooks.limiter === undefined ? burst : options.burst })
    if (hooks.limiter !== undefined && initial !== undefined) yield* steer(initial)
    return fromRef(ref, rules, limiter, steer, hooks)
  })

const fromRef = <E>(
  ref: Ref.Ref<AdaptiveRateState.State>,
  rules: AdaptiveRateState.Rules,
  limiter: Limiter.Limiter,
  steer: (limit: number) => Effect.Effect<void>,
  hooks: Hooks<E>
): AdaptiveRate<E> => {
  const decide = <A>(
    decision: (state: AdaptiveRateState.State, now: number) => readonly [A, AdaptiveRateState.State]
  ) => Effect.flatMap(Monotonic.millis, (now) => Ref.modify(ref, (state) => decision(state, now)))

  /** Takes over the rate as it is by now, which may be a later one than that of this change. */
  const apply = Effect.flatMap(Ref.get(ref), ({ rate }) => (rate === undefined ? Effect.void : steer(rate)))

  const tell = (change: AdaptiveRateState.Change, listener: Hooks<E>["onLowered"]) =>
    listener === undefined ? Effect.void : Effect.exit(Effect.suspend(() => listener(change)))

  const onThrottled: AdaptiveRate<E>["onThrottled"] = (startedAtMillis, hintMillis) =>
    Effect.uninterruptible(
      Effect.flatMap(
        decide((state, now) => AdaptiveRateState.throttled(state, rules, now, startedAtMillis, hintMillis)),
        ({ blockMillis, lowered }) =>
          Effect.zipRight(lowered === undefined ? Effect.void : apply, limiter.blockFor(blockMillis)).pipe(
            Effect.zipRight(lowered === undefined ? Effect.void : tell(lowered, hooks.onLowered)),
            Effect.asVoid
          )
      )
    )

  const onSuccess: AdaptiveRate<E>["onSuccess"] = (startedAtMillis) =>
    Effect.uninterruptible(
      Effect.flatMap(
        decide((state, now) => AdaptiveRateState.succeeded(state, rules, now, startedAtMillis)),
        (raised) =>
          raised === undefined ? Effect.void : Effect.asVoid(Effect.zipRight(apply, tell(raised, hooks.onRaised)))
      )
    )

  const learn = (startedAtMillis: number, cause: Cause.Cause<E>) => {
    const throttling = Option.flatMapNullable(Cause.failureOption(cause), (error) => hooks.classify(error))
    if (Option.isNone(throttling)) return Effect.void
    const { retryAfter } = throttling.value
    return onThrottled(startedAtMillis, retryAfter === undefined ? undefined : Duration.toMillis(retryAfter))
  }

  return {
    run: (effect) =>
      limiter.withRoom({}, () =>
        Effect.flatMap(Monotonic.millis, (startedAtMillis) =>
          Effect.matchCauseEffect(effect, {
            onSuccess: (value) => Effect.as(onSuccess(startedAtMillis), value),
            onFailure: (cause) =>
              Effect.zipRight(
                Effect.suspend(() => learn(startedAtMillis, cause)),
                Effect.failCause(cause)
              )
          })
        )
      ),
    onThrottled,
    onSuccess,
    rate: Effect.map(Ref.get(ref), ({ rate }) => rate),
    limiter
  }
}
