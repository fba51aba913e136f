/** The one line of waiters behind every limit: keeps its state, reads the clock, and wakes who is next. */
import { Duration, Effect, Ref } from "effect"
import { attemptTimeout } from "./AttemptTimeout.ts"
import type * as Bucket from "./Bucket.ts"
import * as LimiterDecision from "./LimiterDecision.ts"
import * as Line from "./LimiterLine.ts"
import * as LimiterState from "./LimiterState.ts"

/** Why there is no room: the wait would be that long (0 if that cannot be known), because of this limit. */
export interface Refused {
  readonly waitMillis: number
  readonly limit: LimiterState.Limit | undefined
}

/** Lets its caller be interrupted for the time of an effect. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** A line of waiters before limits. */
export interface Gate {
  /**
   * Takes what a call costs, after waiting for it in line if need be; tells how long that took. To be run where it
   * cannot be interrupted but through `restore`: then a caller either has everything, or nothing.
   */
  readonly enter: (
    cost: LimiterState.Cost,
    maxWaitMillis: number,
    key: string | undefined,
    restore: Restore
  ) => Effect.Effect<Duration.Duration, Refused>
  /** Changes the state, then wakes those whose outlook has changed by it. */
  readonly change: (decision: (state: LimiterState.State, now: number) => LimiterState.State) => Effect.Effect<void>
  /** The state as it is now. */
  readonly state: Effect.Effect<LimiterState.State>
}

const makeLatch = () => Effect.unsafeMakeLatch()

/** A gate of its own state, with full buckets. */
export const make = (
  rules: LimiterDecision.Rules,
  requests: Bucket.Bucket | undefined,
  tokens: Bucket.Bucket | undefined
): Effect.Effect<Gate> =>
  withNow((now) => Effect.map(Ref.make(LimiterState.initial(now, requests, tokens)), (ref) => fromRef(ref, rules)))

const fromRef = (ref: Ref.Ref<LimiterState.State>, rules: LimiterDecision.Rules): Gate => {
  const modify = <A>(decision: (state: LimiterState.State, now: number) => readonly [A, LimiterState.State]) =>
    withNow((now) => Ref.modify(ref, (state) => decision(state, now)))

  /** Nothing is handed over: who is woken asks for itself, so that nothing can be lost on the way to one that gave up. */
  const wakeFirst = Effect.map(Ref.get(ref), ({ line }) => Line.first(line)?.latch.unsafeOpen())

  const change: Gate["change"] = (decision) =>
    Effect.uninterruptible(
      Effect.map(
        modify((state, now) => {
          const before = LimiterState.pass(state, now)
          const after = decision(before, now)
          return [LimiterDecision.woken(before, after, rules), after]
        }),
        (woken) => {
          for (const { latch } of woken) latch.unsafeOpen()
        }
      )
    )

  const settle = (decision: LimiterDecision.Decision, restore: Restore): Effect.Effect<void, Refused> => {
    if (decision._tag === "Taken") return wakeFirst
    if (decision._tag === "Refused") return Effect.zipRight(wakeFirst, Effect.fail(decision))
    const { waiter, millis } = decision
    const wait = Effect.ignore(attemptTimeout(millis, () => undefined)(waiter.latch.await))
    return Effect.onInterrupt(restore(wait), () => change((state) => LimiterState.leave(state, waiter))).pipe(
      Effect.zipRight(waiter.latch.close),
      Effect.zipRight(modify((state, now) => LimiterDecision.ask(state, rules, now, waiter))),
      Effect.flatMap((next) => settle(next, restore))
    )
  }

  return {
    enter: (cost, maxWaitMillis, key, restore) => {
      const newcomer = { cost, key, maxWaitMicros: maxWaitMillis * 1000, makeLatch }
      return Effect.flatMap(
        modify((state, now) => LimiterDecision.arrive(state, rules, now, newcomer)),
        (decision) =>
          decision._tag === "Taken"
            ? Effect.succeed(Duration.zero)
            : decision._tag === "Refused"
              ? Effect.fail(decision)
              : Effect.map(Effect.timed(settle(decision, restore)), ([waited]) => waited)
      )
    },
    change,
    state: withNow((now) => Effect.map(Ref.get(ref), (state) => LimiterState.pass(state, now)))
  }
}

/** Monotonic time in whole microseconds. */
const withNow = <A, E>(use: (now: number) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.clockWith((clock) => use(Number(clock.unsafeCurrentTimeNanos() / 1000n)))
