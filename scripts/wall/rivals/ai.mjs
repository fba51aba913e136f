/**
 * The AI SDK alone: `streamText`.
 *
 * Budget: `maxRetries: 2`, so three attempts. It has no failover: the primary alone.
 * Timeouts: `firstChunkMs`, which counts from the headers on, `chunkMs`, and `totalMs`.
 */
import { streamText } from "ai"
import { answerOf, modelOf, timeoutOf } from "./ai-stream.mjs"
import { versionOf } from "./installed.mjs"

export const ai = {
  name: "ai",
  version: versionOf("ai"),
  ask: ({ primary, timeouts }) => {
    const model = modelOf(primary, "primary")
    return {
      stream: (prompt, abortSignal) =>
        answerOf(
          streamText({ model, prompt, maxRetries: 2, abortSignal, timeout: timeoutOf(timeouts), onError: () => {} })
        ),
      close: async () => {}
    }
  }
}
