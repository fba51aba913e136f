/** What a limiter learns from outside: hints, the vendor's headers, a new rate. Pure functions of its state. */
import * as Bucket from "./Bucket.ts"
import { type Limit, pass, type State } from "./LimiterState.ts"

/** What a vendor says about one of its limits. */
export interface Remaining {
  /** What is left, in requests or tokens. */
  readonly remaining?: number | undefined
  /** Milliseconds until the limit is reset. */
  readonly resetMillis?: number | undefined
}

/** What a vendor says about its limits. */
export interface Seen {
  readonly requests?: Remaining | undefined
  readonly tokens?: Remaining | undefined
}

/** The windows of vendors are a day at most; a longer block is a mistake, or malice. */
const longestBlockMillis = 24 * 60 * 60 * 1000

const isAmount = (value: unknown): value is number => typeof value === "number" && value >= 0 && Number.isFinite(value)

/** Lets nothing through for so long from now on; never shortens a block. */
export const blockFor = (before: State, now: number, millis: number, limit: Limit | undefined): State => {
  const state = pass(before, now)
  const untilMicros = state.atMicros + Math.ceil(Math.min(millis, longestBlockMillis) * 1000)
  if (!(untilMicros > Math.max(state.atMicros, state.blockedUntilMicros))) return state
  return {
    ...state,
    blockedUntilMicros: untilMicros,
    blockedBy: limit,
    requests: state.requests && Bucket.lower(state.requests, 1)
  }
}

const correctOne = (bucket: Bucket.Bucket | undefined, seen: Remaining | undefined, reserved: number) =>
  bucket !== undefined && isAmount(seen?.remaining)
    ? Bucket.lower(bucket, Math.max(0, seen.remaining - reserved))
    : bucket

/** How long there is nothing at all of a limit. */
const emptyMillis = (seen: Remaining | undefined): number =>
  isAmount(seen?.remaining) && seen.remaining < 1 && isAmount(seen.resetMillis) ? seen.resetMillis : 0

/**
 * Takes in what a vendor says; `own` is the reservation of the call that brought the word, which the vendor has counted.
 * Buckets are only ever lowered, to what remains less what other calls in flight have reserved, but not below zero.
 * Where nothing remains, nothing goes before the reset.
 */
export const correct = (before: State, now: number, seen: Seen, own: { requests: number; tokens: number }): State => {
  const state = pass(before, now)
  const lowered = {
    ...state,
    requests: correctOne(state.requests, seen.requests, state.inFlight - own.requests),
    tokens: correctOne(state.tokens, seen.tokens, state.reserved - own.tokens)
  }
  const requests = blockFor(lowered, now, emptyMillis(seen.requests), "requests")
  return blockFor(requests, now, emptyMillis(seen.tokens), "tokens")
}

/** Fills the bucket of requests at another rate from now on; what is in it stays, as far as it is able to hold it. */
export const setRate = (before: State, now: number, rate: Bucket.Bucket): State => {
  const state = pass(before, now)
  const requests = state.requests ?? { ...rate, units: 0 }
  return { ...state, requests: Bucket.withRate(requests, rate) }
}
