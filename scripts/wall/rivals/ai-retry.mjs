/**
 * ai-retry: `retryableStreamText`, which its documentation advises where a deadline shall be followed by the fallback.
 *
 * Budget: three attempts of the primary where the error says that it may be retried, then the fallback, once.
 * A first token that is late goes to the fallback at once; so does any other error, and an answer of no tokens.
 * Timeouts: `firstChunkMs`, `chunkMs` and `totalMs`, which each attempt has anew.
 */
import { experimental_retryableStreamText as retryableStreamText } from "ai-retry/stream-text"
import { error, result, timeout } from "ai-retry/stream-text/conditions"
import { answerOf, modelOf, timeoutOf } from "./ai-stream.mjs"
import { versionOf } from "./installed.mjs"

export const aiRetry = {
  name: "ai + ai-retry",
  version: versionOf("ai-retry"),
  ask: ({ primary, fallback, timeouts }) => {
    const model = modelOf(primary, "primary")
    const other = modelOf(fallback, "fallback")
    const limits = timeoutOf(timeouts)
    return {
      stream: async (prompt, abortSignal) =>
        answerOf(
          await retryableStreamText({
            model,
            prompt,
            abortSignal,
            timeout: limits,
            onError: () => {},
            retry: [
              timeout().switch({ model: other, timeout: limits }),
              error.isRetryable(true).retry({ maxAttempts: 3, delay: 500, backoffFactor: 2 }),
              result(({ usage }) => usage.outputTokens === 0).switch({ model: other }),
              other
            ]
          })
        ),
      close: async () => {}
    }
  }
}
