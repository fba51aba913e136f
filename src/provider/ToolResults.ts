/** The results of tools right behind the calls that they belong to, as vendors want them. */
import type { ToolCall } from "../model/ChatResponse.ts"
import type { Message, ToolMessage } from "../model/Message.ts"

/**
 * A conversation in which every call has its result right behind it: what came later is moved there, or becomes words of
 * the user once the user has spoken; a call without a result gets one that says so. `note` is told what had to be made up.
 */
export const settled = (messages: ReadonlyArray<Message>, note: (what: string) => void): ReadonlyArray<Message> => {
  const taken = new Set<Message>()
  return messages.flatMap((message, index): ReadonlyArray<Message> => {
    if (taken.has(message)) return []
    if (message.role === "tool") {
      note("messages have late results as words of the user: the vendor takes them only next to their call")
      return [asWords(message)]
    }
    if (message.role !== "assistant" || message.toolCalls === undefined) return [message]
    const results = message.toolCalls.map((call) => {
      const found = resultOf(call, messages, index, taken)
      if (found !== undefined) taken.add(found)
      return found ?? standIn(call)
    })
    const isMissing = results.some((it) => !taken.has(it))
    if (isMissing) note("messages have stand-ins for results of tools: the vendor takes no call without one")
    return [message, ...inOrder(results, messages)]
  })
}

/** The result of a call: it comes before the user speaks, and before another call has the same id. */
const resultOf = (
  { id }: ToolCall,
  messages: ReadonlyArray<Message>,
  index: number,
  taken: ReadonlySet<Message>
): ToolMessage | undefined => {
  for (const message of messages.slice(index + 1)) {
    if (message.role === "user") return undefined
    if (message.role === "assistant" && message.toolCalls?.some((call) => call.id === id)) return undefined
    if (message.role === "tool" && message.toolCallId === id && !taken.has(message)) return message
  }
  return undefined
}

/** As they came; those that did not come are last. */
const inOrder = (results: ReadonlyArray<ToolMessage>, messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const place = new Map(messages.map((message, index) => [message, index] as const))
  return [...results].sort((one, other) => (place.get(one) ?? messages.length) - (place.get(other) ?? messages.length))
}

const standIn = ({ id }: ToolCall): ToolMessage => ({
  role: "tool",
  toolCallId: id,
  content: "There is no result."
})

const asWords = ({ toolCallId, content }: ToolMessage): Message => ({
  role: "user",
  content: [
    { type: "text", text: `Result of the tool call ${toolCallId}:\n` },
    ...(typeof content === "string" ? [{ type: "text" as const, text: content }] : content)
  ]
})
