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
      return this.#gate.change((state, now) => end(state, now, this.#cost, reserved))
    })
  }

  #account(): number {
    const reserved = this.#reserved
    this.#reserved = 0
    return reserved
  }
}
