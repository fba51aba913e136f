/** What a provider says about what may still be asked of it. */

/** What is left of one limit. */
export interface RateLeft {
  /** Requests or tokens that are left; from 0. */
  readonly remaining: number
  /** Milliseconds until all of them are there again, where the provider says so. */
  readonly resetMillis?: number | undefined
}

/** What is left of a provider's limits, as it said with its answer. */
export interface RateLimits {
  readonly requests?: RateLeft | undefined
  readonly tokens?: RateLeft | undefined
}
