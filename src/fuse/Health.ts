/** How a provider is doing. */
import type { DateTime } from "effect"
import { Duration, Effect } from "effect"
import type { CircuitBreaker } from "../pipeline/CircuitBreaker.ts"
import type { CircuitState } from "../pipeline/CircuitState.ts"
import type { Latency } from "../pipeline/Latency.ts"
import type { Guard } from "./Limits.ts"
import type { LastError, ProviderRecord } from "./ProviderRecord.ts"

/** How long a provider takes. */
export interface LatencyHealth {
  /** The median, and what 95 % keep within, of the latest 128; absent with fewer than 20. */
  readonly p50?: Duration.Duration | undefined
  readonly p95?: Duration.Duration | undefined
}

/** How a provider is doing. */
export interface ProviderHealth {
  readonly provider: string
  readonly model?: string | undefined
  /** Where its circuit stands, and since when. */
  readonly state: CircuitState
  readonly since: DateTime.Utc
  /** When the next probe is let through; only while its circuit is open. */
  readonly openUntil?: DateTime.Utc | undefined
  /** The share of failures among its latest 128 attempts, from 0 to 1. */
  readonly failureRate: number
  /** Until the answer, or the first content of a streamed one. */
  readonly latency: LatencyHealth & {
    /** Exponentially weighted, so that the latest answers count most; absent before the first. */
    readonly average?: Duration.Duration | undefined
  }
  /** Until the first content of streamed answers. */
  readonly timeToFirstToken: LatencyHealth
  /** What our own limits leave; absent where they do not limit it. */
  readonly requestsLeft?: number | undefined
  readonly tokensLeft?: number | undefined
  /** Attempts in flight. */
  readonly inFlight: number
  /** Attempts that wait for the limits; 0 without limits. */
  readonly queued: number
  readonly lastError?: LastError | undefined
  /** What its attempts have cost so far, in US dollars, as far as their prices are known. */
  readonly cost: number
}

const millis = (value: number | undefined): Duration.Duration | undefined =>
  value === undefined ? undefined : Duration.millis(Math.round(value))

const percentiles = (latency: Latency): LatencyHealth => {
  const [p50, p95] = [millis(latency.percentile(0.5)), millis(latency.percentile(0.95))]
  return p50 === undefined || p95 === undefined ? {} : { p50, p95 }
}

/** Looks at a provider. To look changes nothing. */
export const look = (
  { name, model }: { readonly name: string; readonly model?: string | undefined },
  breaker: Pick<CircuitBreaker<never, never>, "snapshot">,
  guard: Guard | undefined,
  record: ProviderRecord
): Effect.Effect<ProviderHealth> =>
  Effect.gen(function* () {
    const { state, since, openUntil } = yield* breaker.snapshot
    const limits = guard === undefined ? {} : yield* guard.limiter.snapshot
    const average = millis(record.averageMillis)
    const { lastError } = record
    return {
      provider: name,
      ...(model === undefined ? {} : { model }),
      state,
      since,
      ...(openUntil === undefined ? {} : { openUntil }),
      failureRate: record.failureRate,
      latency: { ...percentiles(record.latency), ...(average === undefined ? {} : { average }) },
      timeToFirstToken: percentiles(record.timeToFirstToken),
      inFlight: record.inFlight,
      queued: 0,
      ...limits,
      ...(lastError === undefined ? {} : { lastError }),
      cost: record.cost
    }
  })
