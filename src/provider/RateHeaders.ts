/** What a vendor's headers say about what is left of its limits. */
import type { RateLeft, RateLimits } from "../model/RateLimits.ts"
import type { Context } from "./HttpFailure.ts"
import * as RetryHint from "./RetryHint.ts"

/**
 * The headers, remaining before reset, of OpenAI and those who copied it (Azure, Groq, Together, Fireworks, xAI), of
 * Cerebras and of Anthropic. For Groq the requests are those of a day.
 */
const names = {
  requests: [
    ["x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    ["x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day"],
    ["anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"]
  ],
  tokens: [
    ["x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
    ["x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute"],
    ["anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"]
  ]
} as const

type Head = Pick<Context, "headers" | "nowMillis">

/** What is left, as far as the headers say it; `undefined` if they say nothing. */
export const read = (head: Head): RateLimits | undefined => {
  const requests = leftOf(head, names.requests)
  const tokens = leftOf(head, names.tokens)
  return requests === undefined && tokens === undefined
    ? undefined
    : { ...(requests === undefined ? {} : { requests }), ...(tokens === undefined ? {} : { tokens }) }
}

const leftOf = (
  head: Head,
  pairs: ReadonlyArray<readonly [remaining: string, reset: string]>
): RateLeft | undefined => {
  for (const [remainingName, resetName] of pairs) {
    const remaining = RetryHint.decimal(head.headers[remainingName])
    if (remaining === undefined) continue
    const resetMillis = RetryHint.resetMillis(head.headers[resetName], RetryHint.nowOf(head))
    return { remaining, ...(resetMillis === undefined ? {} : { resetMillis }) }
  }
  return undefined
}
