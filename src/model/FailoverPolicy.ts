/** What each failure means: one table, and the policies made from it. */

/** May the same provider be asked again? `once`: one more time per call; `when-alone`: only if no other provider is left. */
export type RetryRule = "yes" | "once" | "when-alone" | "no"

/**
 * What the failure does to the provider's circuit. `counts` adds to the consecutive failures; `counts-or-opens` does too,
 * but a hint longer than the retry policy's `maxDelay` opens the circuit until the hint; `opens` opens it at once, until
 * the hint if there is one; `ignored` leaves it as it is.
 */
export type BreakerRule = "counts" | "counts-or-opens" | "opens" | "ignored"

/** One row of the failure table. */
export interface Verdict {
  readonly retry: RetryRule
  readonly failover: boolean
  readonly breaker: BreakerRule
}

const row = (retry: RetryRule, failover: boolean, breaker: BreakerRule): Verdict => ({ retry, failover, breaker })

/**
 * The failure table. A key is an error's `_tag`, or `_tag:case` where the cases of one error differ
 * (the `phase` of a timeout, the `stage` of a content policy, ...).
 */
export const failureTable = {
  RateLimitError: row("yes", true, "counts-or-opens"),
  QuotaExhaustedError: row("no", true, "opens"),
  OverloadedError: row("yes", true, "counts"),
  ServerError: row("yes", true, "counts"),
  ConnectionError: row("yes", true, "counts"),
  TimeoutError: row("when-alone", true, "counts"),
  "TimeoutError:upstream": row("yes", true, "counts"),
  "TimeoutError:shortened": row("when-alone", true, "ignored"),
  AuthenticationError: row("no", true, "opens"),
  ModelNotFoundError: row("no", true, "ignored"),
  InvalidRequestError: row("no", true, "ignored"),
  "InvalidRequestError:capability": row("no", true, "ignored"),
  ContextLengthError: row("no", true, "ignored"),
  "ContentPolicyError:prompt": row("no", false, "ignored"),
  "ContentPolicyError:response": row("no", true, "ignored"),
  InvalidResponseError: row("once", true, "counts"),
  "InvalidResponseError:schema": row("once", true, "ignored"),
  "InvalidResponseError:length": row("no", false, "ignored"),
  EmptyResponseError: row("once", true, "counts"),
  StreamInterruptedError: row("yes", true, "counts"),
  CustomProviderError: row("no", true, "ignored"),
  "CustomProviderError:retryable": row("yes", true, "counts"),
  ThrottledError: row("no", true, "ignored"),
  CircuitOpenError: row("no", true, "ignored"),
  CostLimitError: row("no", true, "ignored"),
  DeadlineExceededError: row("no", false, "ignored")
} as const satisfies Record<string, Verdict>

/** A key of the failure table. */
export type Failure = keyof typeof failureTable

/** What the table needs to know of an error to find its row. */
export interface Classified {
  readonly _tag: string
  /** The case within the tag, where the table tells cases apart. */
  readonly failureCase?: string | undefined
  /** The provider's own word (`x-should-retry`), which outranks the table. */
  readonly shouldRetry?: boolean | undefined
}

/** Cells to replace: by tag (all its cases) or by `tag:case`, which wins. */
export type FailoverOverrides = {
  readonly [K in Failure | "ContentPolicyError"]?: Partial<Verdict>
}

/** Decides what a failure means. */
export interface FailoverPolicy {
  readonly verdict: (error: Classified) => Verdict
}

const unknown = row("no", true, "ignored")

/**
 * A policy that is the table with single cells replaced, for example
 * `FailoverPolicy.make({ ModelNotFoundError: { failover: false } })`.
 */
export const make = (overrides: FailoverOverrides = {}): FailoverPolicy => {
  const table: Record<string, Verdict> = failureTable
  const replaced: Record<string, Partial<Verdict> | undefined> = overrides
  return {
    verdict: (error) => {
      const key = `${error._tag}:${error.failureCase}`
      const verdict = { ...(table[key] ?? table[error._tag] ?? unknown), ...replaced[error._tag], ...replaced[key] }
      if (error.shouldRetry === undefined) return verdict
      return { ...verdict, retry: error.shouldRetry ? (verdict.retry === "no" ? "yes" : verdict.retry) : "no" }
    }
  }
}

const tablePolicy = make()

const strict = make({
  AuthenticationError: { failover: false },
  InvalidRequestError: { failover: false },
  "InvalidRequestError:capability": { failover: true }
})

export {
  /** As the default, but authentication errors and invalid requests end the call: nobody else is asked. */
  strict,
  /** The table as it stands. */
  tablePolicy as default
}
