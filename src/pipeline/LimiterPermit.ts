/** Room that a limiter gave to one call, and what that call accounts for. */
import { type Duration, Effect } from "effect"
import type { Gate, Restore } from "./LimiterGate.ts"
import * as LimiterState from "./LimiterState.ts"

/** Room for one call. */
export interface Permit {
  /** How long it was waited for. */
  readonly waited: Duration.Duration
  /**
   * Says how many tokens the call has really used: what was reserved too much goes back, what is missing is taken, below
   * zero if need be. The last word counts; what is not a number from 0 changes nothing.
   */
  readonly reconcile: (actualTokens: number) => Effect.Effect<void>
  /** Gives all tokens of a failed call back. The request stays spent: providers count every one. */
  readonly refund: Effect.Effect<void>
  /**
   * Keeps the place in flight until an effect has ended, also where the call does not wait for that: an attempt that was
   * given up and still cleans up, or does not let itself be interrupted, is still in flight.
   */
  readonly hold: <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** A permit as the limiter that gave it knows it. */
export class Room implements Permit {
  readonly waited: Duration.Duration
  readonly #gate: Gate
  readonly #cost: LimiterState.Cost
  /** What was taken for the call so far. */
  #tokens: number
  /** What of it the call has not accounted for yet. */
  #reserved: number
  #hasBegun = false
  /** How many keep the place: the call, and what it holds it for. */
  #users = 1

  readonly reconcile = (actualTokens: number): Effect.Effect<void> =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (!(actualTokens >= 0 && actualTokens < Number.POSITIVE_INFINITY)) return Effect.void
        const more = actualTokens - this.#tokens
        const reserved = this.#account()
        this.#tokens = actualTokens
        return this.#gate.change((state, now) => LimiterState.reconcile(state, now, more, reserved))
      })
    )

  readonly hold = <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        this.#users += 1
        return Effect.onExit(restore(use), () =>
          Effect.suspend(() => {
            this.#users -= 1
            return this.#users > 0
              ? Effect.void
              : this.#gate.change((state, now) => LimiterState.release(state, now, this.#cost, 0))
          })
        )
      })
    )

  constructor(gate: Gate, cost: LimiterState.Cost, waited: Duration.Duration) {
    this.#gate = gate
    this.#cost = cost
    this.waited = waited
    this.#tokens = cost.tokens
    this.#reserved = cost.tokens
  }

  get reserved(): number {
    return this.#reserved
  }

  get refund(): Effect.Effect<void> {
    return this.reconcile(0)
  }

  /** Runs the call in its room. */
  around<A, E, R>(use: Effect.Effect<A, E, R>, restore: Restore): Effect.Effect<A, E, R> {
    const begun = Effect.suspend(() => {
      this.#hasBegun = true
      return use
    })
    return Effect.onExit(restore(begun), () => this.#end)
  }

  get #end(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const reserved = this.#account()
      const end = this.#hasBegun ? LimiterState.release : LimiterState.giveBack
      this.#users -= 1
      const cost = this.#users > 0 ? { ...this.#cost, places: 0 } : this.#cost
      return this.#gate.change((state, now) => end(state, now, cost, reserved))
    })
  }

  #account(): number {
    const reserved = this.#reserved
    this.#reserved = 0
    return reserved
  }
}
