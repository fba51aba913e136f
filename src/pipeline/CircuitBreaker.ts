/** Stops calling what is broken, and finds out when it works again. */
import { Cause, type ConfigError, type DateTime, Duration, Effect, Option, Random, Ref, Runtime } from "effect"
import type { LazyArg } from "effect/Function"
import { CircuitOpenError, failWithoutStackTrace, inOwnWords } from "../model/LlmError.ts"
import * as CircuitRules from "./CircuitRules.ts"
import { type CircuitSnapshot, snapshotOf, wallTimeIn } from "./CircuitSnapshot.ts"
import * as CircuitState from "./CircuitState.ts"
import * as Monotonic from "./Monotonic.ts"

export type { Options, RampUpOptions, RateOptions, ReopeningOptions, SlowCallOptions } from "./CircuitRules.ts"
export type { CircuitSnapshot, RateSnapshot } from "./CircuitSnapshot.ts"
export type { CircuitState, Outcome, Permit, Reason } from "./CircuitState.ts"

/** What `onOpen` is told. */
export interface Opened<About = unknown> {
  /** What the call that opened it said that it is about; undefined where it said nothing. */
  readonly about: About | undefined
  /** The failure that opened the circuit; undefined where slow calls did. */
  readonly error: unknown
  readonly openUntil: DateTime.Utc
  readonly reason: CircuitState.Reason
}

/** What a circuit breaker calls, and what it asks. A listener is not waited for, and what goes wrong in it is lost. */
export interface Hooks<E, About = unknown> {
  /** Names the circuit in `CircuitOpenError.provider`. Default: `"circuit"`. */
  readonly name?: string | undefined
  /** What a typed failure means for the circuit. Default: it counts as a failure. */
  readonly classify?: ((error: E) => CircuitState.Outcome) | undefined
  /** Run after the circuit has opened. */
  readonly onOpen?: ((opened: Opened<About>) => Effect.Effect<void>) | undefined
  /** Run after the circuit has turned half-open; a function is told what the call is about that did it. */
  readonly onHalfOpen?: Effect.Effect<void> | ((about: About | undefined) => Effect.Effect<void>) | undefined
  /** Run after the circuit has closed; a function is told what the call is about that did it. */
  readonly onClose?: Effect.Effect<void> | ((about: About | undefined) => Effect.Effect<void>) | undefined
  /** Run after the circuit has been isolated. */
  readonly onIsolate?: Effect.Effect<void> | undefined
}

/** A circuit breaker, for failures of type `E`. */
export interface CircuitBreaker<in E, in About = unknown> {
  /** Where the circuit stands. To look changes nothing: an open circuit turns half-open with the call that probes it. */
  readonly state: Effect.Effect<CircuitState.CircuitState>
  /** Where it stands, since when, and what it has counted. To look changes nothing. */
  readonly snapshot: Effect.Effect<CircuitSnapshot>
  /** Runs an effect if the circuit lets it through; fails with `CircuitOpenError` if not. */
  readonly protect: <A, E1 extends E, R>(effect: Effect.Effect<A, E1, R>) => Effect.Effect<A, E1 | CircuitOpenError, R>
  /**
   * The same, for an effect that wants to know its permit. `answeredAtMillis` gives the monotonic time at which the
   * callee began to answer, where that and not the end says whether the call was slow. Listeners get `about`.
   */
  readonly withPermit: <A, E1 extends E, R>(
    use: (permit: CircuitState.Permit) => Effect.Effect<A, E1, R>,
    answeredAtMillis?: () => number | undefined,
    about?: About
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
export const make = <E = unknown, About = unknown>(
  options: CircuitRules.Options = {},
  hooks: Hooks<E, About> = {},
  path = "breaker"
): Effect.Effect<CircuitBreaker<E, About>, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    const rules = yield* CircuitRules.resolve(options, path)
    const ref = yield* Ref.make(CircuitState.initial(rules, yield* Monotonic.millis))
    return fromRef(ref, rules, hooks)
  })

const fromRef = <E, About>(
  ref: Ref.Ref<CircuitState.State>,
  rules: CircuitRules.Rules,
  hooks: Hooks<E, About>
): CircuitBreaker<E, About> => {
  const { name = "circuit", classify = () => "failure" as const } = hooks
  const { slowCall } = rules
  const jitters = rules.reopening !== undefined && rules.reopening.jitter > 0

  /** One step: decide on the state and the time, commit, then tell. */
  const decide = <A>(
    decision: (state: CircuitState.State, now: number) => readonly [A, CircuitState.State],
    about?: About
  ) =>
    Effect.flatMap(Monotonic.millis, (now) =>
      Effect.flatMap(
        Ref.modify(ref, (before) => {
          const [result, after] = decision(before, now)
          return [{ result, before, after }, after]
        }),
        ({ result, before, after }) =>
          before._tag === after._tag
            ? Effect.succeed(result)
            : Effect.as(
                unwaited(() => listener(hooks, after, after._tag === "Open" ? after.untilMillis - now : 0, about)),
                result
              )
      )
    )

  const acquire = (about: About | undefined) =>
    Effect.flatMap(
      decide((state, now) => CircuitState.admit(state, rules, now), about),
      (admitted) => ("_tag" in admitted ? reject(name, admitted) : Effect.succeed(admitted))
    )

  const settle = (permit: CircuitState.Permit, report: Omit<CircuitState.Report, "random">, about: About | undefined) =>
    Effect.flatMap(jitters ? Random.next : Effect.succeed(0), (random) =>
      decide((state, now) => [undefined, CircuitState.settle(state, permit, { ...report, random }, rules, now)], about)
    )

  const ignored = (permit: CircuitState.Permit, about: About | undefined) =>
    settle(permit, { outcome: "ignored", isSlow: false, error: undefined }, about)

  const settleSuccess = <A>(permit: CircuitState.Permit, isSlow: () => boolean, about: About | undefined, value: A) =>
    Effect.flatMap(Ref.get(ref), (state) =>
      CircuitState.isUnchangedBySuccess(state)
        ? Effect.succeed(value)
        : Effect.as(settle(permit, { outcome: "success", isSlow: isSlow(), error: undefined }, about), value)
    )

  const settleFailure = (
    permit: CircuitState.Permit,
    isSlow: () => boolean,
    about: About | undefined,
    cause: Cause.Cause<E>
  ) => {
    const error = Cause.failureOption(cause)
    if (Option.isNone(error)) return ignored(permit, about)
    return Effect.matchCauseEffect(
      Effect.sync(() => classify(error.value)),
      {
        onSuccess: (outcome) => settle(permit, { outcome, isSlow: isSlow(), error: error.value }, about),
        // A classification that throws is a bug of the caller's. It reaches the caller, but not at the cost of a probe.
        onFailure: (defect) => Effect.zipRight(ignored(permit, about), Effect.failCause(defect))
      }
    )
  }

  // Closed is the state that nearly all calls meet: they take nothing, so an interruption has nothing to give back.
  // A probe takes a place, which nothing may keep.
  const run = <A, E1 extends E, R>(
    use: (permit: CircuitState.Permit) => Effect.Effect<A, E1, R>,
    isSlow: () => boolean,
    about: About | undefined
  ) => {
    const settled = (permit: CircuitState.Permit, effect: Effect.Effect<A, E1, R>) =>
      Effect.matchCauseEffect(effect, {
        onSuccess: (value) => settleSuccess(permit, isSlow, about, value),
        onFailure: (cause) =>
          Effect.uninterruptible(Effect.zipRight(settleFailure(permit, isSlow, about, cause), Effect.failCause(cause)))
      })
    return Effect.flatMap(Ref.get(ref), (state) =>
      state._tag === "Closed" && state.credit === undefined
        ? settled(state.permit, use(state.permit))
        : Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(acquire(about), (permit) => settled(permit, restore(Effect.suspend(() => use(permit)))))
          )
    )
  }

  const withPermit: CircuitBreaker<E, About>["withPermit"] =
    slowCall === undefined
      ? (use, _, about) => run(use, never, about)
      : (use, answeredAtMillis, about) =>
          Effect.clockWith((clock) => {
            const startMillis = Monotonic.unsafeMillis(clock)
            const isSlow = () => {
              const endMillis = answeredAtMillis?.() ?? Monotonic.unsafeMillis(clock)
              return endMillis - startMillis > slowCall.slowerThanMillis
            }
            return run(use, isSlow, about)
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

const listener = <E, About>(
  hooks: Hooks<E, About>,
  after: CircuitState.State,
  openMillis: number,
  about: About | undefined
) => {
  const told = (hook: Hooks<E, About>["onClose"]) => (typeof hook === "function" ? hook(about) : hook)
  switch (after._tag) {
    case "Closed":
      return told(hooks.onClose)
    case "HalfOpen":
      return told(hooks.onHalfOpen)
    case "Isolated":
      return hooks.onIsolate
    case "Open": {
      const { onOpen } = hooks
      const { openedBy: error, reason } = after
      return (
        onOpen && Effect.flatMap(wallTimeIn(openMillis), (openUntil) => onOpen({ error, openUntil, reason, about }))
      )
    }
  }
}

/** Runs a listener in a fiber of its own, at once as far as it does not wait, so that it cannot hold up its caller. */
const unwaited = (listener: LazyArg<Effect.Effect<void> | undefined>): Effect.Effect<void> =>
  Effect.map(Effect.runtime<never>(), (runtime) => {
    Runtime.runFork(runtime, Effect.exit(Effect.suspend(() => listener() ?? Effect.void)))
  })

const reject = (name: string, { why, waitMillis, openedBy }: CircuitState.Rejected) =>
  Effect.flatMap(wallTimeIn(waitMillis ?? 0), (openUntil) =>
    failWithoutStackTrace(() => {
      const said = why === "open" ? `circuit open${because(openedBy)}` : rejections[why]
      const error = new CircuitOpenError({
        provider: name,
        message: `${name}: ${said}`,
        openedBy,
        ...(waitMillis === undefined ? {} : { openUntil, retryAfter: Duration.millis(waitMillis) })
      })
      return why === "open" && openedBy !== undefined ? error : inOwnWords(error)
    })
  )

const rejections = {
  isolated: "circuit isolated by hand",
  "ramp-up": "circuit just closed, calls come back little by little"
}

/** The cause is told with the rejection, so that it is never hidden behind it. */
const because = (openedBy: unknown): string => (openedBy instanceof Error ? `, opened by: ${openedBy.message}` : "")
