/** Stays under a rate: a bucket of tokens that refills evenly, with waiters in order. */
import { Clock, type ConfigError, Deferred, Duration, Effect, Either, FiberId, Ref } from "effect"
import { failWithoutStackTrace, ThrottledError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import { attemptTimeout } from "./AttemptTimeout.ts"

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

/**
 * Time is counted in whole microseconds and tokens in units of 1/interval, so that a refill is a whole number of units
 * and nothing is rounded away however often the bucket is asked.
 */
interface Rules {
  /** Units that come in per microsecond. */
  readonly unitsPerMicro: number
  /** Units of one token. */
  readonly unitsPerToken: number
  readonly capacity: number
  readonly maxWaitMillis: number
}

interface Waiter {
  readonly units: number
  /** Done when somebody further ahead gave up, so that the wait has become shorter. */
  readonly moved: Deferred.Deferred<void>
}

interface State {
  readonly units: number
  readonly atMicros: number
  readonly line: ReadonlyArray<Waiter>
}

type Decision =
  | { readonly _tag: "Taken" }
  | { readonly _tag: "Wait"; readonly waiter: Waiter; readonly millis: number }
  | { readonly _tag: "Refused"; readonly millis: number }

const taken: Decision = { _tag: "Taken" }

const refill = (state: State, rules: Rules, now: number): State =>
  now <= state.atMicros
    ? state
    : {
        ...state,
        units: Math.min(rules.capacity, state.units + (now - state.atMicros) * rules.unitsPerMicro),
        atMicros: now
      }

/** Whole milliseconds until so many units more are there. */
const millisFor = (missing: number, rules: Rules): number =>
  missing <= 0 ? 0 : Math.ceil(missing / rules.unitsPerMicro / 1000)

const sum = (line: ReadonlyArray<Waiter>): number => line.reduce((total, waiter) => total + waiter.units, 0)

/** A newcomer takes at once only if nobody waits; else it joins the line, or is refused before it does. */
const arrive = (
  state: State,
  rules: Rules,
  now: number,
  waiter: Waiter,
  maxWaitMillis: number
): readonly [Decision, State] => {
  const filled = refill(state, rules, now)
  if (filled.line.length === 0 && filled.units >= waiter.units) {
    return [taken, { ...filled, units: filled.units - waiter.units }]
  }
  const millis =
    waiter.units > rules.capacity ? Infinity : millisFor(sum(filled.line) + waiter.units - filled.units, rules)
  return millis > maxWaitMillis
    ? [{ _tag: "Refused", millis }, filled]
    : [
        { _tag: "Wait", waiter, millis },
        { ...filled, line: [...filled.line, waiter] }
      ]
}

/** A waiter whose time has come takes its tokens; one that woke too early gets the rest of its wait. */
const wake = (state: State, rules: Rules, now: number, waiter: Waiter, next: Waiter): readonly [Decision, State] => {
  const filled = refill(state, rules, now)
  const index = filled.line.indexOf(waiter)
  const missing = sum(filled.line.slice(0, index + 1)) - filled.units
  return missing <= 0
    ? [taken, { ...filled, units: filled.units - waiter.units, line: filled.line.toSpliced(index, 1) }]
    : [
        { _tag: "Wait", waiter: next, millis: millisFor(missing, rules) },
        { ...filled, line: filled.line.with(index, next) }
      ]
}

/** A waiter that gives up leaves the line; those behind it have less to wait. */
const leave = (state: State, waiter: Waiter): readonly [ReadonlyArray<Waiter>, State] => {
  const index = state.line.indexOf(waiter)
  return [state.line.slice(index + 1), { ...state, line: state.line.toSpliced(index, 1) }]
}

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const nowMicros = Effect.map(Clock.currentTimeNanos, (nanos) => Number(nanos / 1000n))

const makeWaiter = (units: number): Waiter => ({ units, moved: Deferred.unsafeMake(FiberId.none) })

const checkedRules = (options: Options, path: string) =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, ["limit", "interval", "burst", "maxWait"])
    const limit = yield* OptionCheck.positive(`${path}.limit`, options.limit)
    const intervalMillis = yield* OptionCheck.durationMillis(
      `${path}.interval`,
      options.interval ?? 60_000,
      "above-zero"
    )
    const burst = yield* OptionCheck.wholeNumber(`${path}.burst`, options.burst ?? 5, 1)
    const unitsPerToken = intervalMillis * 1000
    return {
      unitsPerMicro: limit,
      unitsPerToken,
      capacity: burst * unitsPerToken,
      maxWaitMillis: yield* OptionCheck.durationMillis(`${path}.maxWait`, options.maxWait ?? 1000, "zero")
    }
  })

/** A bucket of its own state, full at the start; `name` stands in `ThrottledError.provider`. */
export const make = (
  options: Options,
  name = "bucket",
  path = "limits"
): Effect.Effect<TokenBucket, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    const rules = yield* checkedRules(options, path)
    const ref = yield* Ref.make<State>({ units: rules.capacity, atMicros: yield* nowMicros, line: [] })
    return fromRef(ref, rules, name)
  })

const fromRef = (ref: Ref.Ref<State>, rules: Rules, name: string): TokenBucket => {
  const decide = (decision: (state: State, now: number) => readonly [Decision, State]) =>
    Effect.flatMap(nowMicros, (now) => Ref.modify(ref, (state) => decision(state, now)))

  const giveUp = (waiter: Waiter) =>
    Effect.flatMap(
      Ref.modify(ref, (state) => leave(state, waiter)),
      (behind) => Effect.forEach(behind, ({ moved }) => Deferred.succeed(moved, undefined), { discard: true })
    )

  const giveBack = (units: number) =>
    Effect.flatMap(
      Ref.modify(ref, (state) => [state.line, { ...state, units: Math.min(rules.capacity, state.units + units) }]),
      (line) => Effect.forEach(line, ({ moved }) => Deferred.succeed(moved, undefined), { discard: true })
    )

  const refuse = (millis: number) =>
    failWithoutStackTrace(() => {
      const wait = Duration.millis(millis)
      const why = millis === Infinity ? "asks for more than the bucket holds" : `room only in ${Duration.format(wait)}`
      return new ThrottledError({ provider: name, wait, message: `${name}: throttled by our own limit: ${why}` })
    })

  const line = (decision: Decision, restore: Restore): Effect.Effect<void, ThrottledError> => {
    if (decision._tag === "Taken") return Effect.void
    if (decision._tag === "Refused") return refuse(decision.millis)
    const { waiter, millis } = decision
    const wait = Effect.ignore(attemptTimeout(millis, () => undefined)(Deferred.await(waiter.moved)))
    return Effect.onInterrupt(restore(wait), () => giveUp(waiter)).pipe(
      Effect.zipRight(decide((state, now) => wake(state, rules, now, waiter, makeWaiter(waiter.units)))),
      Effect.flatMap((next) => line(next, restore))
    )
  }

  const takeUnits = (
    units: number,
    atMost: Duration.Duration | undefined,
    restore: Restore
  ): Effect.Effect<Duration.Duration, ThrottledError> =>
    Effect.flatMap(
      decide((state, now) => {
        const maxWaitMillis = Math.min(rules.maxWaitMillis, atMost === undefined ? Infinity : Duration.toMillis(atMost))
        return arrive(state, rules, now, makeWaiter(units), maxWaitMillis)
      }),
      (decision) =>
        decision._tag === "Taken"
          ? Effect.succeed(Duration.zero)
          : Effect.map(Effect.timed(line(decision, restore)), ([waited]) => waited)
    )

  const unitsOf = (cost: number) => (cost >= 0 ? cost * rules.unitsPerToken : Infinity)

  return {
    take: (cost = 1, atMost) => Effect.uninterruptibleMask((restore) => takeUnits(unitsOf(cost), atMost, restore)),
    withTokens:
      (cost = 1, atMost) =>
      (effect) =>
        Effect.uninterruptibleMask((restore) => {
          const units = unitsOf(cost)
          let hasBegun = false
          const begun = Effect.suspend(() => {
            hasBegun = true
            return effect
          })
          return Effect.zipRight(
            takeUnits(units, atMost, restore),
            Effect.onExit(restore(begun), () => (hasBegun ? Effect.void : giveBack(units)))
          )
        }),
    available: Effect.zipWith(Ref.get(ref), nowMicros, (state, now) => {
      const filled = refill(state, rules, now)
      return (filled.units - sum(filled.line)) / rules.unitsPerToken
    })
  }
}
