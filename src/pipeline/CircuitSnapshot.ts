/** How a circuit stands, for people and health checks. */
import { DateTime, Effect } from "effect"
import type { RateRule, Rules } from "./CircuitRules.ts"
import type * as CircuitState from "./CircuitState.ts"
import * as FailureWindow from "./FailureWindow.ts"
import * as Monotonic from "./Monotonic.ts"

/** A share of bad calls within its window. */
export interface RateSnapshot {
  /** From 0 to 1. */
  readonly rate: number
  /** The calls in the window. */
  readonly calls: number
}

/** How a circuit stands. */
export interface CircuitSnapshot {
  readonly state: CircuitState.CircuitState
  /** Since when it has stood so. */
  readonly since: DateTime.Utc
  /** When the next probe is let through; only while open. */
  readonly openUntil?: DateTime.Utc | undefined
  /** What opened it; only while open or half-open. */
  readonly openedBy?: unknown
  /** Why it opened; only while open or half-open. */
  readonly reason?: CircuitState.Reason | undefined
  /** Openings without a closing between them; 0 while closed. */
  readonly openings: number
  /** Failures in a row; 0 while it is not closed. */
  readonly consecutiveFailures: number
  /** Only while closed, with the option of that name. */
  readonly failureRate?: RateSnapshot | undefined
  /** Only while closed, with the option of that name. */
  readonly slowCall?: RateSnapshot | undefined
  /** Probes in flight. */
  readonly probes: number
}

/** The wall time so many milliseconds from now. */
export const wallTimeIn = (millis: number): Effect.Effect<DateTime.Utc> =>
  Effect.map(DateTime.now, (now) => DateTime.add(now, { millis }))

/** What a state says about the circuit at this moment. */
export const snapshotOf = (state: CircuitState.State, rules: Rules): Effect.Effect<CircuitSnapshot> =>
  Effect.zipWith(Monotonic.millis, DateTime.now, (nowMillis, wallTime) => {
    const wallTimeOf = (millis: number) => DateTime.add(wallTime, { millis: millis - nowMillis })
    const rate = (name: string, window: FailureWindow.Window | undefined, rule: RateRule | undefined) => {
      if (window === undefined || rule === undefined) return {}
      const moved = FailureWindow.at(window, rule.window, nowMillis)
      return { [name]: { rate: FailureWindow.rate(moved), calls: moved.total.calls } }
    }
    const opening = "openings" in state ? { openedBy: state.openedBy, reason: state.reason } : {}
    const openUntil = state._tag === "Open" ? { openUntil: wallTimeOf(state.untilMillis) } : {}
    const isClosed = state._tag === "Closed"
    return {
      state: state._tag,
      since: wallTimeOf(state.sinceMillis),
      ...openUntil,
      ...opening,
      openings: "openings" in state ? state.openings : 0,
      consecutiveFailures: isClosed ? state.failures : 0,
      ...(isClosed ? rate("failureRate", state.failureWindow, rules.failureRate) : {}),
      ...(isClosed ? rate("slowCall", state.slowWindow, rules.slowCall) : {}),
      probes: state._tag === "HalfOpen" ? state.admitted - state.succeeded : 0
    }
  })
