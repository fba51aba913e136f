/** Errors as providers make them, a new one each time. */
import { Duration } from "effect"
import { AuthenticationError, InvalidRequestError, OverloadedError, type ProviderError, RateLimitError } from "llmfuse"

/** A 503. */
export const overloaded = (provider: string): ProviderError => new OverloadedError({ provider, statusCode: 503 })

/** So many 503s. */
export const outage = (provider: string, length: number): ReadonlyArray<ProviderError> =>
  Array.from({ length }, () => overloaded(provider))

/** A 429 with a hint. */
export const rateLimited = (provider: string, retryAfter: Duration.DurationInput): ProviderError =>
  new RateLimitError({ provider, statusCode: 429, retryAfter: Duration.decode(retryAfter) })

/** A 401. */
export const unauthorized = (provider: string): ProviderError => new AuthenticationError({ provider, statusCode: 401 })

/** A 400. */
export const badRequest = (provider: string): ProviderError => new InvalidRequestError({ provider, statusCode: 400 })
