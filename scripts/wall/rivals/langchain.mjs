/**
 * LangChain.js: `ChatOpenAI.withFallbacks`.
 *
 * Budget: `maxRetries: 2` for each model, so three attempts, and one fallback.
 * Timeouts: the model's `timeout`, which ends when the headers are there, is the limit of the first token; the
 * `timeout` of the call is the limit of the whole call.
 */
import { ChatOpenAI } from "@langchain/openai"
import { versionOf } from "./installed.mjs"

// No run is sent to LangSmith, whatever the machine's environment says.
for (const name of ["LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING"]) {
  delete process.env[name]
}

const modelOf = ({ baseUrl, model }, timeouts) =>
  new ChatOpenAI({
    model,
    apiKey: "none",
    configuration: { baseURL: baseUrl, logLevel: "off" },
    maxRetries: 2,
    timeout: timeouts.firstTokenMillis
  })

export const langchain = {
  name: "LangChain.js withFallbacks",
  version: versionOf("@langchain/core"),
  ask: ({ primary, fallback, timeouts }) => {
    const model = modelOf(primary, timeouts).withFallbacks([modelOf(fallback, timeouts)])
    return {
      stream: async (prompt, signal) => {
        const answer = { text: "" }
        for await (const chunk of await model.stream(prompt, { signal, timeout: timeouts.totalMillis })) {
          answer.text += chunk.text
          answer.model = chunk.response_metadata.model_name ?? answer.model
          answer.usage = chunk.usage_metadata ?? answer.usage
        }
        return answer
      },
      close: async () => {}
    }
  }
}
