/**
 * openai-node: `chat.completions.create` with `stream: true`.
 *
 * Budget: `maxRetries: 2`, so three attempts. It has no failover: the primary alone.
 * Timeouts: `timeout`, which ends when the headers are there, is the limit of the first token; it has no limit of the
 * whole call, so the caller's signal is one.
 */
import OpenAI from "openai"
import { versionOf } from "./installed.mjs"

export const openaiNode = {
  name: "openai-node",
  version: versionOf("openai"),
  ask: ({ primary, timeouts }) => {
    const client = new OpenAI({
      apiKey: "none",
      baseURL: primary.baseUrl,
      maxRetries: 2,
      logLevel: "off",
      timeout: timeouts.firstTokenMillis
    })
    return {
      stream: async (prompt, caller) => {
        const answer = { text: "" }
        const signal = AbortSignal.any([caller, AbortSignal.timeout(timeouts.totalMillis)])
        const events = await client.chat.completions.create(
          {
            model: primary.model,
            messages: [{ role: "user", content: prompt }],
            stream: true,
            stream_options: { include_usage: true }
          },
          { signal }
        )
        for await (const event of events) {
          answer.text += event.choices[0]?.delta?.content ?? ""
          answer.model = event.model
          if (event.usage) answer.usage = event.usage
        }
        // An aborted stream ends as a complete one does: only the signal tells them apart.
        signal.throwIfAborted()
        return answer
      },
      close: async () => {}
    }
  }
}
