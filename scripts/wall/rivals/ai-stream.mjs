/** What the systems on top of the AI SDK share: providers on the OpenAI wire, and the reading of a `streamText` result. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"

globalThis.AI_SDK_LOG_WARNINGS = false

/** A provider's model; the usage of a stream is asked for. */
export const modelOf = ({ baseUrl, model }, name) =>
  createOpenAICompatible({ name, apiKey: "none", baseURL: baseUrl, includeUsage: true })(model)

/** `streamText`'s limits: of the first content, which counts from the headers on, of each gap after it, and of the whole call. */
export const timeoutOf = ({ firstTokenMillis, totalMillis }) => ({
  firstChunkMs: firstTokenMillis,
  chunkMs: firstTokenMillis,
  totalMs: totalMillis
})

/** `textStream` ends without an error where the call was aborted, so every part is read: its errors and aborts are rejections. */
export const answerOf = async (result) => {
  const answer = { text: "" }
  for await (const part of result.stream) {
    if (part.type === "text-delta") answer.text += part.text
    if (part.type === "error") throw part.error
    if (part.type === "abort") throw new Error(`aborted: ${part.reason}`)
    if (part.type === "finish-step") answer.model = part.response.modelId
    if (part.type === "finish") answer.usage = part.totalUsage
  }
  return answer
}
