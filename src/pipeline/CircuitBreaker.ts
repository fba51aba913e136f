/** Stops calling what is broken, and finds out when it works again. */
import { Cause, type ConfigError, DateTime, Duration, Effect, Either, Option, Ref } from "effect"
import { CircuitOpenError, failWithoutStackTrace } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as CircuitState from "./CircuitState.ts"
import * as Monotonic from "./Monotonic.ts"

/** How a circuit breaker counts. */
export interface Options {
  /** Consecutive failures that open the circuit; a whole number from 1. Default: 5. */
  readonly failureThreshold?: number | undefined
  /** How long it stays open before a probe is let through; above zero. Default: 30 seconds. */
  readonly resetTimeout?: Duration.DurationInput | undefined
  /** Probes let through while half-open; that many successes close it. A whole number from 1. Default: 1. */
  readonly halfOpenCalls?: number | undefined
}

/** The names of the options. */
export const optionNames = ["failureThreshold", "resetTimeout", "halfOpenCalls"] as const

/** What `onOpen` is told. */
export interface Opened {
  /** The failure that opened the circuit. */
  readonly error: unknown
  readonly openUntil: DateTime.Utc
}

/** What a circuit breaker calls, and what it asks. */
export interface Hooks<E> {
  /** Names the circuit in `CircuitOpenError.provider`. Default: `"circuit"`. */
  readonly name?: string | undefined
  /** What a typed failure means for the circuit. Default: it counts as a failure. */
  readonly classify?: ((error: E) => CircuitState.Outcome) | undefined
  /** Run after the circuit has opened. A defect in it ends nothing. */
  readonly onOpen?: ((opened: Opened) => Effect.Effect<void>) | undefined
  /** Run after the circuit has turned half-open. A defect in it ends nothing. */
  readonly onHalfOpen?: Effect.Effect<void> | undefined
  /** Run after the circuit has closed. A defect in it ends nothing. */
  readonly onClose?: Effect.Effect<void> | undefined
}

/** A circuit breaker, for failures of type `E`. */
export interface CircuitBreaker<in E> {
  /** Where the circuit stands. To look changes nothing: an open circuit turns half-open with the call that probes it. */
  readonly state: Effect.Effect<CircuitState.CircuitState>
  /** Runs an effect if the circuit lets it through; fails with `CircuitOpenError` if not. */
  readonly protect: <A, E1 extends E, R>(effect: Effect.Effect<A, E1, R>) => Effect.Effect<A, E1 | CircuitOpenError, R>
  /** The same, for an effect that wants to know its permit. */
  readonly withPermit: <A, E1 extends E, R>(
    use: (permit: CircuitState.Permit) => Effect.Effect<A, E1, R>
  ) => Effect.Effect<A, E1 | CircuitOpenError, R>
  /** Whether the circuit is still as it was when the permit was given. */
  readonly isCurrent: (permit: CircuitState.Permit) => Effect.Effect<boolean>
}

const checkedRules = (options: Options, path: string) =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, optionNames)
    return {
      failureThreshold: yield* OptionCheck.wholeNumber(`${path}.failureThreshold`, options.failureThreshold ?? 5, 1),
      resetTimeoutMillis: yield* OptionCheck.durationMillis(
        `${path}.resetTimeout`,
        options.resetTimeout ?? 30_000,
        "above-zero"
      ),
      halfOpenCalls: yield* OptionCheck.wholeNumber(`${path}.halfOpenCalls`, options.halfOpenCalls ?? 1, 1)
    }
  })

/**
 * A circuit breaker of its own state. Closed, it lets everything through and counts consecutive failures; open, it
 * rejects; when the reset timeout is over the next call turns it half-open and probes. Exactly `halfOpenCalls` probes
 * are let through among any number of concurrent callers. A failed probe opens it again, an interrupted or defective
 * one gives its place back. What was admitted before a transition changes nothing after it.
 */
export const make = <E = unknown>(
  options: Options = {},
  hooks: Hooks<E> = {},
  path = "breaker"
): Effect.Effect<CircuitBreaker<E>, ConfigError.ConfigError> =>
  Effect.flatMap(
    Effect.suspend(() => checkedRules(options, path)),
    (rules) => Effect.map(Ref.make(CircuitState.initial), (ref) => fromRef(ref, rules, hooks))
  )

const fromRef = <E>(
  ref: Ref.Ref<CircuitState.State>,
  rules: CircuitState.Rules,
  hooks: Hooks<E>
): CircuitBreaker<E> => {
  const { name = "circuit", classify = () => "failure" as const, onOpen, onHalfOpen, onClose } = hooks

  const notify = (before: CircuitState.State, after: CircuitState.State, now: number): Effect.Effect<void> => {
    if (before._tag === after._tag) return Effect.void
    const told =
      after._tag === "Closed"
        ? onClose
        : after._tag === "HalfOpen"
          ? onHalfOpen
          : onOpen === undefined
            ? undefined
            : Effect.flatMap(wallTimeIn(after.untilMillis - now), (openUntil) =>
                onOpen({ error: after.openedBy, openUntil })
              )
    return told === undefined ? Effect.void : Effect.exit(told)
  }

  /** One step: decide on the state and the time, commit, then tell. */
  const decide = <A>(decision: (state: CircuitState.State, now: number) => readonly [A, CircuitState.State]) =>
    Effect.flatMap(Monotonic.millis, (now) =>
      Effect.flatMap(
        Ref.modify(ref, (before) => {
          const [result, after] = decision(before, now)
          return [{ result, before, after }, after]
        }),
        ({ result, before, after }) => Effect.as(notify(before, after, now), result)
      )
    )

  const reject = (rejected: CircuitState.Rejected) =>
    Effect.flatMap(wallTimeIn(rejected.waitMillis), (openUntil) =>
      failWithoutStackTrace(
        () =>
          new CircuitOpenError({
            provider: name,
            message: `${name}: circuit open${because(rejected.openedBy)}`,
            openUntil,
            retryAfter: Duration.millis(rejected.waitMillis),
            openedBy: rejected.openedBy
          })
      )
    )

  const acquire = Effect.flatMap(
    decide((state, now) => CircuitState.admit(state, rules, now)),
    (admitted) => ("_tag" in admitted ? reject(admitted) : Effect.succeed(admitted))
  )

  const settle = (permit: CircuitState.Permit, outcome: CircuitState.Outcome, error: unknown) =>
    decide((state, now) => [undefined, CircuitState.settle(state, permit, outcome, rules, now, error)])

  const settleSuccess = <A>(permit: CircuitState.Permit, value: A): Effect.Effect<A> =>
    Effect.flatMap(Ref.get(ref), (state) =>
      state._tag === "Closed" && state.failures === 0
        ? Effect.succeed(value)
        : Effect.as(settle(permit, "success", undefined), value)
    )

  const settleFailure = (permit: CircuitState.Permit, cause: Cause.Cause<E>) => {
    const error = Cause.failureOption(cause)
    if (Option.isNone(error)) return settle(permit, "ignored", undefined)
    return Effect.matchCauseEffect(
      Effect.sync(() => classify(error.value)),
      {
        onSuccess: (outcome) => settle(permit, outcome, error.value),
        // A classification that throws is a bug of the caller's. It reaches the caller, but not at the cost of a probe.
        onFailure: (defect) => Effect.zipRight(settle(permit, "ignored", undefined), Effect.failCause(defect))
      }
    )
  }

  const settled = <A, E1 extends E, R>(permit: CircuitState.Permit, effect: Effect.Effect<A, E1, R>) =>
    Effect.matchCauseEffect(effect, {
      onSuccess: (value) => settleSuccess(permit, value),
      onFailure: (cause) =>
        Effect.uninterruptible(Effect.zipRight(settleFailure(permit, cause), Effect.failCause(cause)))
    })

  // Closed is the state that nearly all calls meet: they take nothing, so an interruption has nothing to give back.
  // A probe takes a place, which nothing may keep.
  const withPermit: CircuitBreaker<E>["withPermit"] = (use) =>
    Effect.flatMap(Ref.get(ref), (state) =>
      state._tag === "Closed"
        ? settled(state.permit, use(state.permit))
        : Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(acquire, (permit) => settled(permit, restore(Effect.suspend(() => use(permit)))))
          )
    )

  return {
    state: Effect.map(Ref.get(ref), (state) => state._tag),
    protect: (effect) => withPermit(() => effect),
    withPermit,
    isCurrent: (permit) => Effect.map(Ref.get(ref), (state) => CircuitState.generationOf(state) === permit.generation)
  }
}

/** The cause is told with the rejection, so that it is never hidden behind it. */
const because = (openedBy: unknown): string => (openedBy instanceof Error ? `, opened by: ${openedBy.message}` : "")

const wallTimeIn = (millis: number): Effect.Effect<DateTime.Utc> =>
  Effect.map(DateTime.now, (now) => DateTime.add(now, { millis }))
