/** The state of a limiter: what it holds, who waits, and what changes it. Pure functions. */
import type { Effect } from "effect"
import * as Bucket from "./Bucket.ts"
import * as Line from "./LimiterLine.ts"

/** Which limit it is that a call waits for. */
export type Limit = "requests" | "tokens" | "concurrency"

/** What one call takes, all of it or nothing. */
export interface Cost {
  readonly requests: number
  readonly tokens: number
  /** Places in flight: 1, or 0 for what only takes from the buckets. */
  readonly places: number
}

/** Somebody in the line. */
export interface Waiter {
  readonly cost: Cost
  readonly key: string | undefined
  /** When it gives up, in the limiter's own time. */
  readonly untilMicros: number
  /** Opened when it should ask again: it is first now, or the outlook has changed. */
  readonly latch: Effect.Latch
}

/** The whole state of a limiter, one immutable value. */
export interface State {
  /** What the clock said last. */
  readonly seenMicros: number
  /** The limiter's own time: it goes on as the clock does, and stands still where the clock steps back. */
  readonly atMicros: number
  readonly requests: Bucket.Bucket | undefined
  readonly tokens: Bucket.Bucket | undefined
  readonly inFlight: number
  /** Tokens that calls in flight have reserved and not yet accounted for. */
  readonly reserved: number
  /** Nothing goes before this moment; it was this limit that ran out, if that is known. */
  readonly blockedUntilMicros: number
  readonly blockedBy: Limit | undefined
  readonly line: Line.Line<Waiter>
}

/** The part of the state that flows with time. */
export type Flow = Pick<State, "atMicros" | "blockedUntilMicros" | "requests" | "tokens">

/** A new limiter with full buckets. */
export const initial = (
  seenMicros: number,
  requests: Bucket.Bucket | undefined,
  tokens: Bucket.Bucket | undefined
): State => ({
  seenMicros,
  atMicros: 0,
  requests,
  tokens,
  inFlight: 0,
  reserved: 0,
  blockedUntilMicros: 0,
  blockedBy: undefined,
  line: []
})

/** Lets time pass. At the end of a block there is one request at most, so that waiters do not come out together. */
export const flow = <F extends Flow>(state: F, micros: number): F => {
  if (micros <= 0) return state
  const blocked = Math.min(micros, Math.max(0, state.blockedUntilMicros - state.atMicros))
  return {
    ...state,
    atMicros: state.atMicros + micros,
    requests: state.requests && Bucket.fill(Bucket.fill(state.requests, blocked, 1), micros - blocked),
    tokens: state.tokens && Bucket.fill(state.tokens, micros)
  }
}

/** Brings the state to the time that the clock says. */
export const pass = (state: State, now: number): State =>
  now === state.seenMicros ? state : { ...flow(state, now - state.seenMicros), seenMicros: now }

/** Takes from the buckets what a call costs. */
export const spend = <F extends Flow>(state: F, cost: Cost): F => ({
  ...state,
  requests: state.requests && Bucket.take(state.requests, cost.requests),
  tokens: state.tokens && Bucket.take(state.tokens, cost.tokens)
})

/** Takes what a call costs, the place included. */
export const enter = (state: State, cost: Cost): State => ({
  ...spend(state, cost),
  inFlight: state.inFlight + cost.places,
  reserved: state.reserved + cost.tokens * cost.places
})

/** One who was interrupted leaves the line. */
export const leave = (state: State, waiter: Waiter): State => ({ ...state, line: Line.leave(state.line, waiter) })

/** A call has ended; `reserved` is what it has not accounted for. Its place is free again. */
export const release = (before: State, now: number, cost: Cost, reserved: number): State => ({
  ...pass(before, now),
  inFlight: before.inFlight - cost.places,
  reserved: before.reserved - reserved
})

/** A call that was never begun gives everything back. */
export const giveBack = (before: State, now: number, cost: Cost, reserved: number): State => {
  const state = release(before, now, cost, reserved)
  return {
    ...state,
    requests: state.requests && Bucket.give(state.requests, cost.requests),
    tokens: state.tokens && Bucket.give(state.tokens, cost.tokens)
  }
}

/** A call has used so many tokens more (or less) than was taken for it so far; `reserved` is what it accounts for by that. */
export const reconcile = (before: State, now: number, more: number, reserved: number): State => {
  const state = pass(before, now)
  const { tokens } = state
  return {
    ...state,
    reserved: state.reserved - reserved,
    tokens: tokens && (more > 0 ? Bucket.charge(tokens, more) : Bucket.give(tokens, -more))
  }
}
