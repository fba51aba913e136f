/**
 * ai-fallback: `createFallback` as the model of `streamText`.
 *
 * Budget: `streamText`'s `maxRetries: 2`, and one fallback; ai-fallback changes the model at the first error.
 * Any error does so (`shouldRetryThisError`): by default some would not, a 400 and most of those within a stream.
 * `retryAfterOutput` is its default, true: after a stream that broke, the fallback's whole answer follows the part.
 * After an error the fallback is kept for `modelResetInterval`: a minute, as in its documentation.
 * Timeouts: `firstChunkMs`, `chunkMs` and `totalMs` of `streamText`; ai-fallback has none of its own.
 */
import { streamText } from "ai"
import { createFallback } from "ai-fallback"
import { answerOf, modelOf, timeoutOf } from "./ai-stream.mjs"
import { versionOf } from "./installed.mjs"

export const aiFallback = {
  name: "ai + ai-fallback",
  version: versionOf("ai-fallback"),
  ask: ({ primary, fallback, timeouts }) => {
    const model = createFallback({
      models: [modelOf(primary, "primary"), modelOf(fallback, "fallback")],
      shouldRetryThisError: () => true,
      modelResetInterval: 60_000
    })
    return {
      stream: (prompt, abortSignal) =>
        answerOf(
          streamText({ model, prompt, maxRetries: 2, abortSignal, timeout: timeoutOf(timeouts), onError: () => {} })
        ),
      close: async () => {}
    }
  }
}
