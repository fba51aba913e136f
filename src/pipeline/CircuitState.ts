/** The decisions of a circuit breaker, as pure functions of its state. */

/** Where a circuit stands. */
export type CircuitState = "Closed" | "Open" | "HalfOpen"

/**
 * What a call tells the circuit. `ignored`: neither success nor failure (interrupted, or no fault of the callee);
 * `{ openForMillis }`: open at once, for so long, or for the reset timeout if that is undefined.
 */
export type Outcome = "success" | "failure" | "ignored" | { readonly openForMillis: number | undefined }

/** What the decisions need of the options. */
export interface Rules {
  readonly failureThreshold: number
  readonly resetTimeoutMillis: number
  readonly halfOpenCalls: number
}

/** Leave to make one call. What is reported under a permit of an earlier generation changes nothing. */
export interface Permit {
  /** Counts the transitions of the circuit. */
  readonly generation: number
  /** Whether the call is a half-open probe. */
  readonly isProbe: boolean
}

interface Closed {
  readonly _tag: "Closed"
  readonly permit: Permit
  readonly failures: number
}

interface Open {
  readonly _tag: "Open"
  readonly generation: number
  /** Monotonic time. */
  readonly untilMillis: number
  readonly openedBy: unknown
}

interface HalfOpen {
  readonly _tag: "HalfOpen"
  readonly permit: Permit
  /** Probes in flight and probes that succeeded. */
  readonly admitted: number
  readonly succeeded: number
  readonly openedBy: unknown
}

/** The whole state of a circuit, one immutable value. */
export type State = Closed | Open | HalfOpen

/** A call that is not let through. */
export interface Rejected {
  readonly _tag: "Rejected"
  /** Until the next probe is let through; 0 while probes are under way. */
  readonly waitMillis: number
  readonly openedBy: unknown
}

const closed = (generation: number, failures: number): Closed => ({
  _tag: "Closed",
  permit: { generation, isProbe: false },
  failures
})

/** The state of a new circuit. */
export const initial: State = closed(0, 0)

/** The number of transitions so far. */
export const generationOf = (state: State): number =>
  state._tag === "Open" ? state.generation : state.permit.generation

/** Lets a call through or not. An open circuit whose time is up turns half-open in the same step. */
export const admit = (state: State, rules: Rules, now: number): readonly [Permit | Rejected, State] => {
  switch (state._tag) {
    case "Closed":
      return [state.permit, state]
    case "Open": {
      if (now < state.untilMillis) {
        return [{ _tag: "Rejected", waitMillis: state.untilMillis - now, openedBy: state.openedBy }, state]
      }
      const permit = { generation: state.generation + 1, isProbe: true }
      return [permit, { _tag: "HalfOpen", permit, admitted: 1, succeeded: 0, openedBy: state.openedBy }]
    }
    case "HalfOpen":
      return state.admitted < rules.halfOpenCalls
        ? [state.permit, { ...state, admitted: state.admitted + 1 }]
        : [{ _tag: "Rejected", waitMillis: 0, openedBy: state.openedBy }, state]
  }
}

const open = (state: State, outcome: Outcome, rules: Rules, now: number, error: unknown): Open => ({
  _tag: "Open",
  generation: generationOf(state) + 1,
  untilMillis: now + ((typeof outcome === "object" ? outcome.openForMillis : undefined) ?? rules.resetTimeoutMillis),
  openedBy: error
})

/** Takes in how a permitted call ended. `error` is what opens the circuit, should it open. */
export const settle = (
  state: State,
  permit: Permit,
  outcome: Outcome,
  rules: Rules,
  now: number,
  error: unknown
): State => {
  if (state._tag === "Open" || state.permit.generation !== permit.generation) return state
  if (typeof outcome === "object") return open(state, outcome, rules, now, error)
  if (state._tag === "Closed") {
    if (outcome === "ignored") return state
    if (outcome === "success") return state.failures === 0 ? state : { ...state, failures: 0 }
    const failures = state.failures + 1
    return failures >= rules.failureThreshold ? open(state, outcome, rules, now, error) : { ...state, failures }
  }
  if (outcome === "failure") return open(state, outcome, rules, now, error)
  if (outcome === "ignored") return { ...state, admitted: state.admitted - 1 }
  const succeeded = state.succeeded + 1
  return succeeded >= rules.halfOpenCalls ? closed(state.permit.generation + 1, 0) : { ...state, succeeded }
}
