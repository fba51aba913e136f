/** The least that asking a provider and reading its answer takes: what a program without a library would write. */
import { createParser } from "eventsource-parser"

const message = { role: "user", content: "Explain retrieval-augmented generation in one sentence." }

/** Headers and body of a request. */
export const request = (isStream) => ({
  headers: {
    "content-type": "application/json",
    accept: isStream ? "text/event-stream" : "application/json",
    authorization: "Bearer none"
  },
  body: JSON.stringify({
    model: "gpt-4.1-mini-2025-04-14",
    messages: [message],
    ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {})
  })
})

/** The text of an answer in one piece. */
export const jsonOf = (text) => JSON.parse(text).choices[0].message.content

/** Takes in a stream piece by piece and shows its deltas. */
export const reader = (show) => {
  const text = new TextDecoder()
  const answer = { text: "", finishReason: undefined, usage: undefined }
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === "[DONE]") return
      const chunk = JSON.parse(data)
      if (chunk.usage) answer.usage = chunk.usage
      const choice = chunk.choices[0]
      if (choice === undefined) return
      if (choice.finish_reason) answer.finishReason = choice.finish_reason
      const { content } = choice.delta
      if (!content) return
      answer.text += content
      show(content)
    }
  })
  return { answer, feed: (bytes) => parser.feed(text.decode(bytes, { stream: true })) }
}

/** Reads a body to its end and shows its deltas. */
export const readStream = async (body, show) => {
  const { answer, feed } = reader(show)
  for await (const bytes of body) feed(bytes)
  return answer
}
