/** The decisions of a limiter about those who ask for room, as pure functions of its state. */
import type { Effect } from "effect"
import * as Bucket from "./Bucket.ts"
import * as Line from "./LimiterLine.ts"
import {
  type Cost,
  enter,
  type Flow,
  flow,
  type Limit,
  leave,
  pass,
  type State,
  spend,
  type Waiter
} from "./LimiterState.ts"

/** What the decisions need of the options. */
export interface Rules {
  /** Calls in flight at once. */
  readonly concurrency: number
  /** How many of one key may wait while there is no place in flight. */
  readonly maxQueue: number
}

/** Somebody who asks for room. */
export interface Newcomer {
  readonly cost: Cost
  readonly key: string | undefined
  readonly maxWaitMicros: number
  /** Makes what wakes it, should it have to wait. */
  readonly makeLatch: () => Effect.Latch
}

/** Leave to go, to wait for so long before asking again, or neither; `waitMillis` is 0 where it cannot be known. */
export type Decision =
  | { readonly _tag: "Taken" }
  | { readonly _tag: "Wait"; readonly waiter: Waiter; readonly millis: number }
  | { readonly _tag: "Refused"; readonly waitMillis: number; readonly limit: Limit | undefined }

type Step = readonly [Decision, State]

const taken: Decision = { _tag: "Taken" }

const refused = (waitMillis: number, limit: Limit | undefined): Decision => ({ _tag: "Refused", waitMillis, limit })

/** Timers count whole milliseconds. */
const wholeMillis = (micros: number): number => Math.ceil(micros / 1000)

/** Whether the buckets could ever give so much at once, and which could not. */
const neverFits = ({ requests, tokens }: Flow, cost: Cost): Limit | undefined =>
  requests !== undefined && !(cost.requests >= 0 && cost.requests <= Bucket.most(requests))
    ? "requests"
    : tokens !== undefined && !(cost.tokens >= 0 && cost.tokens <= Bucket.most(tokens))
      ? "tokens"
      : undefined

const untilRoom = (bucket: Bucket.Bucket | undefined, amount: number): number =>
  bucket === undefined ? 0 : Bucket.microsUntil(bucket, amount)

interface Outlook {
  readonly micros: number
  readonly limit: Limit | undefined
}

/** How long until the buckets have served all of these in order, and which limit that is due to. */
const outlook = (state: State, costs: ReadonlyArray<Cost>): Outlook => {
  let limit = state.blockedUntilMicros > state.atMicros ? state.blockedBy : undefined
  let ahead: Flow = flow<Flow>(state, state.blockedUntilMicros - state.atMicros)
  for (const cost of costs) {
    const forRequests = untilRoom(ahead.requests, cost.requests)
    const forTokens = untilRoom(ahead.tokens, cost.tokens)
    if (forRequests > 0 || forTokens > 0) limit = forTokens > forRequests ? "tokens" : "requests"
    ahead = spend(flow(ahead, Math.max(forRequests, forTokens)), cost)
  }
  return { micros: ahead.atMicros - state.atMicros, limit }
}

const placesOf = (costs: ReadonlyArray<Cost>): number => costs.reduce((total, { places }) => total + places, 0)

const hasPlaces = (state: State, rules: Rules, places: number): boolean =>
  places === 0 || state.inFlight + places <= rules.concurrency

const hasRoom = (state: State, rules: Rules, cost: Cost): boolean =>
  state.blockedUntilMicros <= state.atMicros &&
  untilRoom(state.requests, cost.requests) === 0 &&
  untilRoom(state.tokens, cost.tokens) === 0 &&
  hasPlaces(state, rules, cost.places)

/** What one who stands in the line has before it, itself included. */
const upTo = (line: Line.Line<Waiter>, waiter: Waiter): ReadonlyArray<Cost> =>
  [...Line.ahead(line, waiter), waiter].map(({ cost }) => cost)

/** A newcomer goes at once only if nobody waits; else it joins the line, or is refused before it does. */
export const arrive = (before: State, rules: Rules, now: number, newcomer: Newcomer): Step => {
  const state = pass(before, now)
  const { cost, key, maxWaitMicros } = newcomer
  const tooSmall = neverFits(state, cost)
  if (tooSmall !== undefined) return [refused(Number.POSITIVE_INFINITY, tooSmall), state]
  if (state.line.length === 0 && hasRoom(state, rules, cost)) return [taken, enter(state, cost)]
  const waiter = { cost, key, untilMicros: state.atMicros + maxWaitMicros, latch: newcomer.makeLatch() }
  const line = Line.join(state.line, waiter)
  const costs = upTo(line, waiter)
  const { micros, limit } = outlook(state, costs)
  if (wholeMillis(micros) * 1000 > maxWaitMicros) return [refused(wholeMillis(micros), limit), state]
  const isFull = maxWaitMicros === 0 || Line.sizeOf(state.line, key) >= rules.maxQueue
  return isFull && !hasPlaces(state, rules, placesOf(costs))
    ? [refused(0, "concurrency"), state]
    : ask({ ...state, line }, rules, now, waiter)
}

/** One who waits goes if it is first and there is room, gives up if there will be none in time, or waits on. */
export const ask = (before: State, rules: Rules, now: number, waiter: Waiter): Step => {
  const state = pass(before, now)
  const isFirst = Line.first(state.line) === waiter
  if (isFirst && hasRoom(state, rules, waiter.cost)) {
    return [taken, { ...enter(state, waiter.cost), line: Line.shift(state.line) }]
  }
  const costs = upTo(state.line, waiter)
  const { micros, limit } = outlook(state, costs)
  const leftMicros = waiter.untilMicros - state.atMicros
  // Whoever is due is only behind others who are just about to go.
  const isDue = micros === 0 && hasPlaces(state, rules, placesOf(costs))
  if (!isDue && (leftMicros <= 0 || Math.floor(micros) > leftMicros)) {
    const decision = micros > 0 ? refused(wholeMillis(micros), limit) : refused(0, "concurrency")
    return [decision, leave(state, waiter)]
  }
  const millis = Math.max(1, wholeMillis(isFirst && micros > 0 ? micros : leftMicros))
  return [{ _tag: "Wait", waiter, millis }, state]
}

/** Who should ask again after a change: the first of the line if its turn has moved, everybody if a block has begun. */
export const woken = (before: State, after: State, rules: Rules): ReadonlyArray<Waiter> => {
  const first = Line.first(after.line)
  if (first === undefined) return []
  if (after.blockedUntilMicros !== before.blockedUntilMicros) return Line.all(after.line)
  if (first !== Line.first(before.line)) return [first]
  const { cost } = first
  const isFreed = hasPlaces(after, rules, cost.places) && !hasPlaces(before, rules, cost.places)
  const isMoved = wholeMillis(outlook(after, [cost]).micros) !== wholeMillis(outlook(before, [cost]).micros)
  return isFreed || isMoved ? [first] : []
}
