/** What a limiter says to a call for which it has no room. */
import { Duration, type Effect } from "effect"
import { failWithoutStackTrace, inOwnWords, ThrottledError } from "../model/LlmError.ts"
import type { Refused } from "./LimiterGate.ts"

/** The error of a call that found no room. */
export const throttled = (refused: Refused, name: string): Effect.Effect<never, ThrottledError> =>
  failWithoutStackTrace(() => {
    const wait = Duration.millis(refused.waitMillis)
    const { limit } = refused
    const why =
      limit === "concurrency"
        ? "too many calls in flight"
        : refused.waitMillis === Number.POSITIVE_INFINITY
          ? `asks for more${limit === undefined ? "" : ` ${limit}`} than the bucket holds`
          : `room only in ${Duration.format(wait)}`
    const message = `${name}: throttled by our own limit: ${why}`
    return inOwnWords(new ThrottledError({ provider: name, wait, message, ...(limit === undefined ? {} : { limit }) }))
  })
