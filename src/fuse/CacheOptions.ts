/** How answers are kept. */
import type { Duration, Effect } from "effect"
import type { CacheStore, CacheStoreError } from "../pipeline/CacheStore.ts"

/** What is kept of answers, where, and for how long. */
export interface CacheOptions {
  /** How long an answer is fresh, and given again without asking anybody; above zero. */
  readonly ttl: Duration.DurationInput
  /** How long after that it is still given when every provider fails. Default: 0, never. */
  readonly staleIfError?: Duration.DurationInput | undefined
  /** The most answers in memory, a whole number from 1; beyond it the least recently used goes. Default: 1000. */
  readonly maxEntries?: number | undefined
  /** The most bytes in memory, a whole number from 1. Default: 64 MiB. */
  readonly maxBytes?: number | undefined
  /** Where answers are kept instead, as text. One that fails or is slow (250 ms) counts as empty and fails no call. */
  readonly store?: CacheStore<string> | undefined
  /** Run when that store has failed. A defect in it ends nothing. */
  readonly onStoreError?: ((error: CacheStoreError) => Effect.Effect<void>) | undefined
}
