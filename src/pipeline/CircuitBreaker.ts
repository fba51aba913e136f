/** Stops calling what is broken, and finds out when it works again. */
import { Cause, type ConfigError, type DateTime, Duration, Effect, Option, Random, Ref, Runtime } from "effect"
import { CircuitOpenError, failWithoutStackTrace } from "../model/LlmError.ts"
import * as CircuitRules from "./CircuitRules.ts"
import { type CircuitSnapshot, snapshotOf, wallTimeIn } from "./CircuitSnapshot.ts"
import * as CircuitState from "./CircuitState.ts"
import * as Monotonic from "./Monotonic.ts"

export type { Options, RampUpOptions, RateOptions, ReopeningOptions, SlowCallOptions } from "./CircuitRules.ts"
export type { CircuitSnapshot } from "./CircuitSnapshot.ts"

/** What `onOpen` is told. */
export interface Opened {
  /** The failure that opened the circuit; undefined where slow calls did. */
  readonly error: unknown
  readonly openUntil: DateTime.Utc
  readonly reason: CircuitState.Reason
}

/** What a circuit breaker calls, and what it asks. A listener is not waited for, and what goes wrong in it is lost. */
export interface Hooks<E> {
  /** Names the circuit in `CircuitOpenError.provider`. Default: `"circuit"`. */
  readonly name?: string | undefined
  /** What a typed failure means for the circuit. Default: it counts as a failure. */
  readonly classify?: ((error: E) => CircuitState.Outcome) | undefined
  /** Run after the circuit has opened. */
  readonly onOpen?: ((opened: Opened) => Effect.Effect<void>) | undefined
  /** Run after the circuit has turned half-open. */
  readonly onHalfOpen?: Effect.Effect<void> | undefined
  /** Run after the circuit has closed. */
  readonly onClose?: Effect.Effect<void> | undefined
  /** Run after the circuit has been isolated. */
  readonly onIsolate?: Effect.Effect<void> | undefined
}

/** A circuit breaker, for failures of type `E`. */
export interface CircuitBreaker<in E> {
  /** Where the circuit stands. To look changes nothing: an open circuit turns half-open with the call that probes it. */
  readonly state: Effect.Effect<CircuitState.CircuitState>
  /** Where it stands, since when, and what it has counted. To look changes nothing. */
  readonly snapshot: Effect.Effect<CircuitSnapshot>
  /** Runs an effect if the circuit lets it through; fails with `CircuitOpenError` if not. */
  readonly protect: <A, E1 extends E, R>(effect: Effect.Effect<A, E1, R>) => Effect.Effect<A, E1 | CircuitOpenError, R>
  /**
   * The same, for an effect that wants to know its permit. `answeredAtMillis` gives the monotonic time at which the
   * callee began to answer, where that and not the end says whether the call was slow.
   */
  readonly withPermit: <A, E1 extends E, R>(
    use: (permit: CircuitState.Permit) => Effect.Effect<A, E1, R>,
    answeredAtMillis?: () => number | undefined
  ) => Effect.Effect<A, E1 | CircuitOpenError, R>
  /** Whether the circuit is still as it was when the permit was given. */
  readonly isCurrent: (permit: CircuitState.Permit) => Effect.Effect<boolean>
  /** Takes the callee out by hand: every call is rejected until `restore`. */
  readonly isolate: Effect.Effect<void>
  /** Closes the circuit by hand, however it stands, and forgets what it has counted. */
  readonly restore: Effect.Effect<void>
}

/**
 * A circuit breaker of its own state. Closed, it lets everything through and counts; it opens after so many failures in
 * a row or by the share of failed or slow calls, and then rejects; when its time is over the next call turns it half-open
 * and probes. Exactly `halfOpenCalls` probes are let through among any number of concurrent callers. A failed probe opens
 * it again, an interrupted or defective one gives its place back, one that never reports is given up. What was admitted
 * before a transition does not count after it.
 */
export const make = <E = unknown>(
  options: CircuitRules.Options = {},
  hooks: Hooks<E> = {},
  path = "breaker"
): Effect.Effect<CircuitBreaker<E>, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    const rules = yield* CircuitRules.resolve(options, path)
    const ref = yield* Ref.make(CircuitState.initial(rules, yield* Monotonic.millis))
    return fromRef(ref, rules, hooks)
  })

const fromRef = <E>(
  ref: Ref.Ref<CircuitState.State>,
  rules: CircuitRules.Rules,
  hooks: Hooks<E>
): CircuitBreaker<E> => {
  const { name = "circuit", classify = () => "failure" as const } = hooks
  const { slowCall } = rules
  const jitters = rules.reopening !== undefined && rules.reopening.jitter > 0

  /** One step: decide on the state and the time, commit, then tell. */
  const decide = <A>(decision: (state: CircuitState.State, now: number) => readonly [A, CircuitState.State]) =>
    Effect.flatMap(Monotonic.millis, (now) =>
      Effect.flatMap(
        Ref.modify(ref, (before) => {
          const [result, after] = decision(before, now)
          return [{ result, before, after }, after]
        }),
        ({ result, before, after }) =>
          before._tag === after._tag
            ? Effect.succeed(result)
            : Effect.as(unwaited(listener(hooks, after, after._tag === "Open" ? after.untilMillis - now : 0)), result)
      )
    )

  const acquire = Effect.flatMap(
    decide((state, now) => CircuitState.admit(state, rules, now)),
    (admitted) => ("_tag" in admitted ? reject(name, admitted) : Effect.succeed(admitted))
  )

  const settle = (permit: CircuitState.Permit, outcome: CircuitState.Outcome, isSlow: boolean, error: unknown) =>
    Effect.flatMap(jitters ? Random.next : Effect.succeed(0), (random) =>
      decide((state, now) => [
        undefined,
        CircuitState.settle(state, permit, { outcome, isSlow, error, random }, rules, now)
      ])
    )

  const settleSuccess = <A>(permit: CircuitState.Permit, isSlow: boolean, value: A): Effect.Effect<A> =>
    Effect.flatMap(Ref.get(ref), (state) =>
      CircuitState.isUnchangedBySuccess(state)
        ? Effect.succeed(value)
        : Effect.as(settle(permit, "success", isSlow, undefined), value)
    )

  const settleFailure = (permit: CircuitState.Permit, isSlow: boolean, cause: Cause.Cause<E>) => {
    const error = Cause.failureOption(cause)
    if (Option.isNone(error)) return settle(permit, "ignored", false, undefined)
    return Effect.matchCauseEffect(
      Effect.sync(() => classify(error.value)),
      {
        onSuccess: (outcome) => settle(permit, outcome, isSlow, error.value),
        // A classification that throws is a bug of the caller's. It reaches the caller, but not at the cost of a probe.
        onFailure: (defect) => Effect.zipRight(settle(permit, "ignored", false, undefined), Effect.failCause(defect))
      }
    )
  }

  const settled = <A, E1 extends E, R>(
    permit: CircuitState.Permit,
    effect: Effect.Effect<A, E1, R>,
    isSlow: () => boolean
  ) =>
    Effect.matchCauseEffect(effect, {
      onSuccess: (value) => settleSuccess(permit, isSlow(), value),
      onFailure: (cause) =>
        Effect.uninterruptible(Effect.zipRight(settleFailure(permit, isSlow(), cause), Effect.failCause(cause)))
    })

  // Closed is the state that nearly all calls meet: they take nothing, so an interruption has nothing to give back.
  // A probe takes a place, which nothing may keep.
  const untimed = <A, E1 extends E, R>(
    use: (permit: CircuitState.Permit) => Effect.Effect<A, E1, R>,
    isSlow: () => boolean
  ) =>
    Effect.flatMap(Ref.get(ref), (state) =>
      state._tag === "Closed" && state.credit === undefined
        ? settled(state.permit, use(state.permit), isSlow)
        : Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(acquire, (permit) => settled(permit, restore(Effect.suspend(() => use(permit))), isSlow))
          )
    )

  const withPermit: CircuitBreaker<E>["withPermit"] =
    slowCall === undefined
      ? (use) => untimed(use, never)
      : (use, answeredAtMillis) =>
          Effect.clockWith((clock) => {
            const startMillis = Monotonic.unsafeMillis(clock)
            return untimed(use, () => {
              const endMillis = answeredAtMillis?.() ?? Monotonic.unsafeMillis(clock)
              return endMillis - startMillis > slowCall.slowerThanMillis
            })
          })

  return {
    state: Effect.map(Ref.get(ref), (state) => state._tag),
    snapshot: Effect.flatMap(Ref.get(ref), (state) => snapshotOf(state, rules)),
    protect: (effect) => withPermit(() => effect),
    withPermit,
    isCurrent: (permit) => Effect.map(Ref.get(ref), (state) => CircuitState.generationOf(state) === permit.generation),
    isolate: decide((state, now) => [undefined, CircuitState.isolate(state, now)]),
    restore: decide((state, now) => [undefined, CircuitState.restore(state, rules, now)])
  }
}

const never = () => false

const listener = <E>(hooks: Hooks<E>, after: CircuitState.State, openMillis: number) => {
  switch (after._tag) {
    case "Closed":
      return hooks.onClose
    case "HalfOpen":
      return hooks.onHalfOpen
    case "Isolated":
      return hooks.onIsolate
    case "Open": {
      const { onOpen } = hooks
      const { openedBy: error, reason } = after
      return onOpen && Effect.flatMap(wallTimeIn(openMillis), (openUntil) => onOpen({ error, openUntil, reason }))
    }
  }
}

/** Runs a listener in a fiber of its own, at once as far as it does not wait, so that it cannot hold up its caller. */
const unwaited = (told: Effect.Effect<void> | undefined): Effect.Effect<void> =>
  told === undefined
    ? Effect.void
    : Effect.map(Effect.runtime<never>(), (runtime) => {
        Runtime.runFork(runtime, Effect.exit(told))
      })

const reject = (name: string, { why, waitMillis, openedBy }: CircuitState.Rejected) =>
  Effect.flatMap(wallTimeIn(waitMillis ?? 0), (openUntil) =>
    failWithoutStackTrace(() => {
      const said = why === "open" ? `circuit open${because(openedBy)}` : rejections[why]
      return new CircuitOpenError({
        provider: name,
        message: `${name}: ${said}`,
        openedBy,
        ...(waitMillis === undefined ? {} : { openUntil, retryAfter: Duration.millis(waitMillis) })
      })
    })
  )

const rejections = {
  isolated: "circuit isolated by hand",
  "ramp-up": "circuit just closed, calls come back little by little"
}

/** The cause is told with the rejection, so that it is never hidden behind it. */
const because = (openedBy: unknown): string => (openedBy instanceof Error ? `, opened by: ${openedBy.message}` : "")
