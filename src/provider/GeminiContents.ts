/** Gemini's contents: the turns of a conversation. */
import type { ToolCall } from "../model/ChatResponse.ts"
import { type AssistantMessage, type Message, partsOf, type ToolMessage, textOf } from "../model/Message.ts"
import * as GeminiAnswer from "./GeminiAnswer.ts"
import * as GeminiParts from "./GeminiParts.ts"
import * as GeminiVersion from "./GeminiVersion.ts"
import * as Json from "./Json.ts"
import type { ToolNames } from "./ToolNames.ts"
import * as ToolResults from "./ToolResults.ts"

/** A turn as it is sent. */
export interface Turn {
  readonly role: "user" | "model"
  readonly parts: ReadonlyArray<object>
}

/** What is known beside the conversation. */
export interface Given {
  /** Whether the model refuses calls without a signature. */
  readonly signs: boolean
  readonly names: ToolNames
  /** What cannot be sent as it is. */
  readonly changes: Set<string>
}

/** The turns of a conversation without its system messages: what the same one says in a row becomes one turn. */
export const make = (messages: ReadonlyArray<Message>, given: Given): ReadonlyArray<Turn> => {
  const { changes } = given
  const turns: Array<{ readonly role: Turn["role"]; readonly parts: Array<object> }> = []
  const calls: Calls = new Map()
  for (const message of inCallOrder(ToolResults.settled(messages, (what) => changes.add(what)))) {
    if (message.role === "system") continue
    const parts =
      message.role === "assistant"
        ? assistantParts(message, calls, given)
        : message.role === "tool"
          ? toolParts(message, calls, given)
          : GeminiParts.make(message.content, changes)
    const role = message.role === "assistant" ? "model" : "user"
    const last = turns.at(-1)
    if (parts.length === 0) changes.add("a message without content was left out")
    else if (last?.role === role) last.parts.push(...parts)
    else turns.push({ role, parts: [...parts] })
  }
  if (turns[0]?.role === "user") return turns
  changes.add("an empty message of the user was put first")
  return [{ role: "user", parts: [{ text: "" }] }, ...turns]
}

/** Results without ids belong to calls by their order: those that came in another are put into that of the calls. */
const inCallOrder = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const places = new Map<string, number>()
  const placeOf = (message: Message) => (message.role === "tool" ? (places.get(message.toolCallId) ?? 0) : -1)
  const ordered: Array<Message> = []
  let count = 0
  for (const message of messages) {
    if (message.role === "assistant") for (const { id } of message.toolCalls ?? []) places.set(id, count++)
    const before = ordered.findLastIndex((it) => it.role !== "tool" || placeOf(it) <= placeOf(message))
    ordered.splice(message.role === "tool" ? before + 1 : ordered.length, 0, message)
  }
  return ordered
}

/** The calls so far as they are sent, by their ids. */
type Calls = Map<string, { readonly id?: string; readonly name: string }>

const assistantParts = (
  { content, toolCalls = [], opaque }: AssistantMessage,
  calls: Calls,
  { signs, names, changes }: Given
): ReadonlyArray<object> => {
  const isOwn = opaque?.wire === GeminiAnswer.wireName
  if (opaque !== undefined && !isOwn) changes.add("reasoning of another vendor was left out")
  const marks = GeminiAnswer.marksIn(isOwn ? opaque.value : undefined)
  return [
    ...signed(GeminiParts.make(content, changes), marks(undefined)?.thoughtSignature),
    ...toolCalls.map((call, index) => {
      const mark = marks(index)
      // Only ids that Gemini gave go back: not every version of the wire knows them.
      const sent = { ...(mark?.id === call.id ? { id: call.id } : {}), name: names.sent(call.name) }
      calls.set(call.id, sent)
      return {
        functionCall: { ...sent, args: argumentsOf(call, changes) },
        // Of calls side by side only the first is signed.
        thoughtSignature: mark?.thoughtSignature ?? (signs && index === 0 ? GeminiVersion.foreignSignature : undefined)
      }
    })
  ]
}

/** A signature stands on the last part; after an answer without text it stands alone. */
const signed = (parts: ReadonlyArray<object>, thoughtSignature: string | undefined): ReadonlyArray<object> => {
  if (thoughtSignature === undefined) return parts
  return [...parts.slice(0, -1), { ...(parts.at(-1) ?? { text: "" }), thoughtSignature }]
}

/** Arguments are an object on this wire. */
const argumentsOf = ({ arguments: given, rawArguments }: ToolCall, changes: Set<string>): object => {
  if (Json.isRecord(given)) return given
  if (given === undefined && rawArguments === undefined) return {}
  changes.add("arguments of a tool call that are no object were put into one, as value")
  return { value: given ?? rawArguments }
}

/** A result goes with the name of its call. What it shows stands beside it, as older models take no media within it. */
const toolParts = (
  { toolCallId, content, isError }: ToolMessage,
  calls: Calls,
  { names, changes }: Given
): ReadonlyArray<object> => {
  const call = calls.get(toolCallId) ?? { name: names.sent(toolCallId) }
  const response = { [isError === true ? "error" : "result"]: textOf(content) }
  const shown = partsOf(content).filter(({ type }) => type !== "text")
  return [{ functionResponse: { ...call, response } }, ...GeminiParts.make(shown, changes)]
}
