/** Stays within the limits of a provider: requests, tokens and calls in flight, taken together or not at all. */
import { type ConfigError, Duration, Effect, Either } from "effect"
import type { ThrottledError } from "../model/LlmError.ts"
import * as Bucket from "./Bucket.ts"
import * as LimiterCorrection from "./LimiterCorrection.ts"
import * as LimiterGate from "./LimiterGate.ts"
import * as Line from "./LimiterLine.ts"
import * as LimiterOptions from "./LimiterOptions.ts"
import { type Permit, Room } from "./LimiterPermit.ts"
import { throttled } from "./LimiterRefusal.ts"
import type { State } from "./LimiterState.ts"

export type { Remaining, Seen } from "./LimiterCorrection.ts"
export type { Options, Rate } from "./LimiterOptions.ts"
export type { Permit } from "./LimiterPermit.ts"

/** What one call asks for. It always costs one request and one place in flight. */
export interface Cost {
  /** Tokens to reserve; from 0. Default: 0. */
  readonly tokens?: number | undefined
  /** Waiters of different keys take turns, those of one key go in order. Default: one key for all that name none. */
  readonly key?: string | undefined
  /** Bounds this one wait further than `maxWait` does. */
  readonly atMost?: Duration.Duration | undefined
}

/** What a limiter has left. */
export interface Snapshot {
  /** Requests that may go now; absent if they are not limited. */
  readonly requestsLeft?: number | undefined
  /** Tokens that may go now, below zero if more were used than there were; absent if they are not limited. */
  readonly tokensLeft?: number | undefined
  readonly inFlight: number
  readonly queued: number
}

/** The limits of one provider. */
export interface Limiter {
  /**
   * Runs an effect when there is room for it. Waiters are served in order, so that a large call is not starved by small
   * ones; with keys, in turns. Fails with `ThrottledError`: at once if the wait would be longer than `maxWait` or
   * `atMost`, if the cost is more than the bucket can hold, or if the queue is full; after `maxWait` if no place in flight
   * became free. The place is given back when the effect ends, the rest only if it was interrupted before it began.
   */
  readonly withRoom: <A, E, R>(
    cost: Cost,
    use: (permit: Permit) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | ThrottledError, R>
  /**
   * Takes in what the vendor's headers say. Buckets are lowered to what remains, less what other calls in flight have
   * reserved, and never raised; where nothing remains, nothing goes before the reset (of a day at most). `by` is the
   * permit of the call that brought the headers. Numbers that make no sense are passed over.
   */
  readonly correct: (seen: LimiterCorrection.Seen, by?: Permit) => Effect.Effect<void>
  /**
   * Lets nothing through for so long from now on (a day at most); a longer block stays. When it is over, waiters come at
   * the rate, not together. Those who cannot wait so long fail at once.
   */
  readonly blockFor: (duration: Duration.DurationInput) => Effect.Effect<void>
  /**
   * Sets the rate of requests; the interval is 1 minute if it is not given, the burst the one before, else 5. What the
   * bucket holds stays, as far as the burst allows; a bucket that was not there before begins empty. A rate that is not
   * one changes nothing.
   */
  readonly setRate: (rate: LimiterOptions.Rate) => Effect.Effect<void>
  readonly snapshot: Effect.Effect<Snapshot>
}

/** A limiter of its own state, with full buckets; `name` stands in `ThrottledError.provider`. */
export const make = (
  options: LimiterOptions.Options = {},
  name = "limiter",
  path = "limits"
): Effect.Effect<Limiter, ConfigError.ConfigError> =>
  Effect.flatMap(
    Effect.suspend(() => LimiterOptions.check(options, path)),
    (checked) =>
      Effect.map(LimiterGate.make(checked.rules, checked.requests, checked.tokens), (gate) =>
        fromGate(gate, checked, name)
      )
  )

const fromGate = (gate: LimiterGate.Gate, checked: LimiterOptions.Checked, name: string): Limiter => {
  const withRoom: Limiter["withRoom"] = (asked, use) =>
    Effect.uninterruptibleMask((restore) => {
      const cost = { requests: 1, tokens: checked.tokens === undefined ? 0 : (asked.tokens ?? 0), places: 1 }
      const atMostMillis = asked.atMost === undefined ? Number.POSITIVE_INFINITY : Duration.toMillis(asked.atMost)
      const maxWaitMillis = Math.min(checked.maxWaitMillis, atMostMillis)
      return Effect.matchEffect(gate.enter(cost, maxWaitMillis, asked.key, restore), {
        onFailure: (refused) => throttled(refused, name),
        onSuccess: (waited) => {
          const room = new Room(gate, cost, waited)
          return room.around(
            Effect.suspend(() => use(room)),
            restore
          )
        }
      })
    })

  return {
    withRoom,
    correct: (seen, by) =>
      gate.change((state, now) => {
        const own = by instanceof Room ? { requests: 1, tokens: by.reserved } : { requests: 0, tokens: 0 }
        return LimiterCorrection.correct(state, now, seen, own)
      }),
    blockFor: (duration) =>
      gate.change((state, now) => LimiterCorrection.blockFor(state, now, Duration.toMillis(duration), undefined)),
    setRate: (rate) => gate.change((state, now) => withRate(state, now, rate)),
    snapshot: Effect.map(gate.state, ({ requests, tokens, inFlight, line }) => ({
      ...(requests && { requestsLeft: Bucket.left(requests) }),
      ...(tokens && { tokensLeft: Bucket.left(tokens) }),
      inFlight,
      queued: Line.size(line)
    }))
  }
}

const withRate = (state: State, now: number, rate: LimiterOptions.Rate): State => {
  const burst = state.requests === undefined ? 5 : Math.round(Bucket.most(state.requests))
  return Either.match(LimiterOptions.checkRate(rate, "rate", burst), {
    onLeft: () => state,
    onRight: (bucket) => LimiterCorrection.setRate(state, now, bucket)
  })
}
