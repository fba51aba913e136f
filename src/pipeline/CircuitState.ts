/** The decisions of a circuit breaker, as pure functions of its state. */
import { maxTimerMillis } from "../model/OptionCheck.ts"
import type { RateRule, Rules } from "./CircuitRules.ts"
import * as FailureWindow from "./FailureWindow.ts"

/** Where a circuit stands. */
export type CircuitState = "Closed" | "Open" | "HalfOpen" | "Isolated"

/**
 * What a call tells the circuit. `ignored`: neither success nor failure (interrupted, or no fault of the callee);
 * `{ openForMillis }`: open at once, for so long, or for the reset timeout if that is undefined.
 */
export type Outcome = "success" | "failure" | "ignored" | { readonly openForMillis: number | undefined }

/** Why a circuit opened. `immediate`: the outcome said so itself; `probe`: a half-open probe failed or was slow. */
export type Reason = "consecutive-failures" | "failure-rate" | "slow-calls" | "immediate" | "probe"

/** Leave to make one call. What is reported under a permit of an earlier generation changes nothing. */
export interface Permit {
  /** Counts the transitions of the circuit. */
  readonly generation: number
  /** Whether the call is a half-open probe. */
  readonly isProbe: boolean
  /** Counts how often probes were given up, for only a place that is still held can be given back. */
  readonly lease: number
}

interface Since {
  /** Since when it has stood so; monotonic time. */
  readonly sinceMillis: number
}

interface Closed extends Since {
  readonly _tag: "Closed"
  readonly permit: Permit
  /** Consecutive failures. */
  readonly failures: number
  readonly failureWindow: FailureWindow.Window | undefined
  readonly slowWindow: FailureWindow.Window | undefined
  /** While calls come back little by little: what is saved up towards the next one; at 1 a call goes through. */
  readonly credit: number | undefined
}

/** What led to the opening. */
interface Opening {
  readonly openedBy: unknown
  readonly reason: Reason
  /** Openings without a closing between them, from 1. */
  readonly openings: number
}

interface Open extends Since, Opening {
  readonly _tag: "Open"
  readonly generation: number
  /** Monotonic time. */
  readonly untilMillis: number
}

interface HalfOpen extends Since, Opening {
  readonly _tag: "HalfOpen"
  readonly permit: Permit
  /** Probes in flight and probes that succeeded. */
  readonly admitted: number
  readonly succeeded: number
  /** When the probes in flight are given up. */
  readonly leaseUntilMillis: number
}

interface Isolated extends Since {
  readonly _tag: "Isolated"
  readonly generation: number
}

/** The whole state of a circuit, one immutable value. */
export type State = Closed | Open | HalfOpen | Isolated

/** A call that is not let through. */
export interface Rejected {
  readonly _tag: "Rejected"
  /** Until the next probe is let through; 0 while probes are under way; undefined where nobody knows. */
  readonly waitMillis: number | undefined
  readonly openedBy: unknown
  readonly why: "open" | "isolated" | "ramp-up"
}

/** How a permitted call ended. */
export interface Report {
  readonly outcome: Outcome
  readonly isSlow: boolean
  /** What opens the circuit, should it open. */
  readonly error: unknown
  /** From 0 to below 1, for the jitter of the open time. */
  readonly random: number
}

const windowFor = (rule: RateRule | undefined, now: number) =>
  rule === undefined ? undefined : FailureWindow.make(rule.window, now)

const closed = (generation: number, rules: Rules, now: number, credit: number | undefined): Closed => ({
  _tag: "Closed",
  sinceMillis: now,
  permit: { generation, isProbe: false, lease: 0 },
  failures: 0,
  failureWindow: windowFor(rules.failureRate, now),
  slowWindow: windowFor(rules.slowCall, now),
  credit
})

/** The state of a new circuit. */
export const initial = (rules: Rules, now: number): State => closed(0, rules, now, undefined)

/** The number of transitions so far. */
export const generationOf = (state: State): number => ("permit" in state ? state.permit.generation : state.generation)

/** Lets a call through or not. An open circuit whose time is up turns half-open in the same step. */
export const admit = (state: State, rules: Rules, now: number): readonly [Permit | Rejected, State] => {
  switch (state._tag) {
    case "Closed":
      return state.credit === undefined ? [state.permit, state] : admitSome(state, state.credit, rules, now)
    case "Open":
      return now < state.untilMillis
        ? [rejected(state.untilMillis - now, state.openedBy), state]
        : halfOpen(state, rules, now)
    case "HalfOpen":
      return admitProbe(state, rules, now)
    case "Isolated":
      return [{ _tag: "Rejected", waitMillis: undefined, openedBy: undefined, why: "isolated" }, state]
  }
}

const rejected = (waitMillis: number, openedBy: unknown): Rejected => ({
  _tag: "Rejected",
  waitMillis,
  openedBy,
  why: "open"
})

const halfOpen = (state: Open, rules: Rules, now: number): readonly [Permit, HalfOpen] => {
  const { openedBy, reason, openings } = state
  const permit = { generation: state.generation + 1, isProbe: true, lease: 0 }
  const leaseUntilMillis = now + rules.halfOpenTimeoutMillis
  return [
    permit,
    {
      _tag: "HalfOpen",
      sinceMillis: now,
      permit,
      admitted: 1,
      succeeded: 0,
      leaseUntilMillis,
      openedBy,
      reason,
      openings
    }
  ]
}

const admitProbe = (state: HalfOpen, rules: Rules, now: number): readonly [Permit | Rejected, State] => {
  const leaseUntilMillis = now + rules.halfOpenTimeoutMillis
  if (state.admitted < rules.halfOpenCalls) {
    return [state.permit, { ...state, admitted: state.admitted + 1, leaseUntilMillis }]
  }
  if (now < state.leaseUntilMillis) return [rejected(0, state.openedBy), state]
  const permit = { ...state.permit, lease: state.permit.lease + 1 }
  return [permit, { ...state, permit, admitted: state.succeeded + 1, leaseUntilMillis }]
}

const admitSome = (state: Closed, credit: number, rules: Rules, now: number): readonly [Permit | Rejected, State] => {
  const { durationMillis, initialShare } = rules.rampUp ?? { durationMillis: 0, initialShare: 1 }
  const passed = Math.max(0, now - state.sinceMillis)
  if (passed >= durationMillis) return [state.permit, { ...state, credit: undefined }]
  const saved = credit + initialShare + (1 - initialShare) * (passed / durationMillis)
  return saved >= 1
    ? [state.permit, { ...state, credit: saved - 1 }]
    : [
        { _tag: "Rejected", waitMillis: 0, openedBy: undefined, why: "ramp-up" },
        { ...state, credit: saved }
      ]
}

const sane = (millis: number): number => Math.min(maxTimerMillis, Math.max(0, millis))

/** How long a circuit stays open: as long as the hint says, else the reset timeout, which may grow. */
const openMillis = (outcome: Outcome, openings: number, { resetTimeoutMillis, reopening }: Rules, random: number) => {
  const hint = typeof outcome === "object" ? outcome.openForMillis : undefined
  if (hint !== undefined && !Number.isNaN(hint)) return sane(hint)
  if (reopening === undefined) return resetTimeoutMillis
  const { multiplier, maxTimeoutMillis, jitter } = reopening
  const grown = Math.max(
    resetTimeoutMillis,
    Math.min(maxTimeoutMillis, resetTimeoutMillis * multiplier ** (openings - 1))
  )
  return sane(Math.ceil(grown * (1 + jitter * random)))
}

const open = (state: State, reason: Reason, report: Report, rules: Rules, now: number): Open => {
  const openings = state._tag === "HalfOpen" ? state.openings + 1 : 1
  return {
    _tag: "Open",
    sinceMillis: now,
    generation: generationOf(state) + 1,
    untilMillis: now + openMillis(report.outcome, openings, rules, report.random),
    openedBy: report.error ?? ("openedBy" in state ? state.openedBy : undefined),
    reason,
    openings
  }
}

/** Whether a success would leave everything as it is; so it is with nearly all calls. */
export const isUnchangedBySuccess = (state: State): boolean =>
  state._tag === "Closed" && state.failures === 0 && state.failureWindow === undefined && state.slowWindow === undefined

/** Takes in how a permitted call ended. */
export const settle = (state: State, permit: Permit, report: Report, rules: Rules, now: number): State => {
  switch (state._tag) {
    case "Isolated":
      return state
    case "Open":
      return permit.generation === state.generation - 1 ? prolonged(state, report, rules, now) : state
    case "Closed":
      return state.permit.generation === permit.generation ? settleClosed(state, report, rules, now) : state
    case "HalfOpen":
      return state.permit.generation === permit.generation ? settleProbe(state, permit, report, rules, now) : state
  }
}

/**
 * What was admitted just before the circuit opened no longer counts, but a hint that it brings is news of the callee:
 * it may keep the circuit open for longer, never for a shorter time.
 */
const prolonged = (state: Open, report: Report, rules: Rules, now: number): Open => {
  const { outcome } = report
  if (typeof outcome !== "object" || outcome.openForMillis === undefined) return state
  const untilMillis = now + openMillis(outcome, state.openings, rules, report.random)
  return untilMillis > state.untilMillis
    ? { ...state, untilMillis, openedBy: report.error, reason: "immediate" }
    : state
}

const recorded = (window: FailureWindow.Window | undefined, rule: RateRule | undefined, now: number, isBad: boolean) =>
  window === undefined || rule === undefined ? undefined : FailureWindow.record(window, rule.window, now, isBad)

const isOver = (window: FailureWindow.Window | undefined, rule: RateRule | undefined): boolean =>
  window !== undefined &&
  rule !== undefined &&
  window.total.calls >= rule.minimumCalls &&
  FailureWindow.rate(window) >= rule.threshold

const settleClosed = (state: Closed, report: Report, rules: Rules, now: number): State => {
  const { outcome, isSlow } = report
  if (outcome === "ignored") return state
  if (typeof outcome === "object") return open(state, "immediate", report, rules, now)
  const isFailure = outcome === "failure"
  const next: Closed = {
    ...state,
    failures: isFailure ? state.failures + 1 : 0,
    failureWindow: recorded(state.failureWindow, rules.failureRate, now, isFailure),
    slowWindow: recorded(state.slowWindow, rules.slowCall, now, isSlow)
  }
  if (isFailure && next.failures >= rules.failureThreshold) {
    return open(state, "consecutive-failures", report, rules, now)
  }
  if (isFailure && isOver(next.failureWindow, rules.failureRate)) return open(state, "failure-rate", report, rules, now)
  if (isSlow && isOver(next.slowWindow, rules.slowCall)) return open(state, "slow-calls", report, rules, now)
  return next
}

const settleProbe = (state: HalfOpen, permit: Permit, report: Report, rules: Rules, now: number): State => {
  const { outcome, isSlow } = report
  if (typeof outcome === "object") return open(state, "immediate", report, rules, now)
  if (outcome === "ignored") {
    return permit.lease === state.permit.lease ? { ...state, admitted: state.admitted - 1 } : state
  }
  if (outcome === "failure" || isSlow) return open(state, "probe", report, rules, now)
  // The place of a probe that was given up is somebody else's: its success comes on top.
  const admitted = permit.lease === state.permit.lease ? state.admitted : state.admitted + 1
  const succeeded = state.succeeded + 1
  return succeeded < rules.halfOpenCalls ? { ...state, admitted, succeeded } : closedAgain(state, rules, now)
}

/** Closed after probes or by hand; only after probes do calls come back little by little. */
const closedAgain = (state: State, rules: Rules, now: number): Closed => {
  const isGradual = rules.rampUp !== undefined && state._tag === "HalfOpen"
  // The first call of a ramp goes through: it is what the successful probe has earned.
  return closed(generationOf(state) + 1, rules, now, isGradual ? 1 : undefined)
}

/** Opens the circuit by hand, until it is restored. */
export const isolate = (state: State, now: number): State =>
  state._tag === "Isolated" ? state : { _tag: "Isolated", sinceMillis: now, generation: generationOf(state) + 1 }

/** Closes the circuit by hand, whatever it was, as if nothing had happened. */
export const restore = (state: State, rules: Rules, now: number): State => closedAgain(state, rules, now)
