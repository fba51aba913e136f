/** The conversation in OpenAI's chat completions. */
import { Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ToolCall } from "../model/ChatResponse.ts"
import { type AssistantMessage, type Message, type Part, textOf } from "../model/Message.ts"
import * as Json from "./Json.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"
import * as OpenAiOpaque from "./OpenAiOpaque.ts"
import * as OpenAiParts from "./OpenAiParts.ts"
import * as OpenAiToolIds from "./OpenAiToolIds.ts"
import * as OpenAiTurns from "./OpenAiTurns.ts"
import * as ToolNames from "./ToolNames.ts"
import * as ToolResults from "./ToolResults.ts"

/** Who is asked. */
export interface Target {
  readonly name: string
  readonly model: string
  readonly dialect: Dialect
}

/** What is known on the way through the messages. */
interface Given extends Target {
  readonly notes: Notes
  readonly idOf: (id: string) => string
}

/** The messages of a request. `instruction` is added to the system text. */
export const make = (
  request: ChatRequest,
  instruction: string | undefined,
  target: Target,
  notes: Notes
): ReadonlyArray<OpenAiTurns.Turn> => {
  const { dialect } = target
  const messages = ToolResults.settled(request.messages, (what) => notes.changes.add(`${what}.`))
  const system = [request.system, instruction].filter((text) => text !== undefined && text !== "").join("\n\n")
  const given = { ...target, notes, idOf: OpenAiToolIds.make(dialect, notes) }
  const turns: Array<OpenAiTurns.Turn> = system === "" ? [] : [{ role: "system", content: system }]
  let shown: ReadonlyArray<Part> = []
  /** Results of tools are texts on this wire: what they show follows them, once all of them are said. */
  const showRest = () => {
    if (shown.length > 0) turns.push({ role: "user", content: OpenAiParts.make(shown, dialect, notes) })
    shown = []
  }
  for (const [index, message] of messages.entries()) {
    if (message.role !== "tool") showRest()
    turns.push(message.role === "assistant" ? assistantTurn(message, messages, index, given) : turnOf(message, given))
    if (message.role === "tool") shown = [...shown, ...OpenAiParts.withoutText(message.content)]
  }
  showRest()
  return OpenAiTurns.arrange(turns, dialect, notes)
}

const turnOf = (message: Exclude<Message, AssistantMessage>, { dialect, notes, idOf }: Given): OpenAiTurns.Turn => {
  switch (message.role) {
    case "user":
      return { role: "user", content: OpenAiParts.make(message.content, dialect, notes) }
    case "system":
      noteParts(message, "of system messages were left out: this wire has only text there.", notes)
      return { role: "system", content: textOf(message.content) }
    case "tool":
      noteParts(message, "of tool results follow as a user message: this wire has only text there.", notes)
      if (message.isError === true) {
        notes.changes.add("messages lost isError: this wire has no mark for a tool that failed, only its text.")
      }
      return { role: "tool", tool_call_id: idOf(message.toolCallId), content: textOf(message.content) }
  }
}

const noteParts = ({ content }: Message, what: string, notes: Notes): void => {
  if (OpenAiParts.withoutText(content).length > 0) notes.changes.add(`messages: images and files ${what}`)
}

const assistantTurn = (
  message: AssistantMessage,
  messages: ReadonlyArray<Message>,
  index: number,
  { name: provider, model, dialect, notes, idOf }: Given
): OpenAiTurns.Turn => {
  noteParts(message, "of assistant messages were left out: this wire has only text there.", notes)
  const text = textOf(message.content)
  const { opaque: field } = dialect
  const hasCalls = field === "reasoning_content" && hasCallsAround(messages, index)
  const own = OpenAiOpaque.sentBack(message, { provider, model, field, hasCalls }, notes)
  const { toolCalls = [] } = message
  if (toolCalls.length === 0) return { role: "assistant", content: text, ...own.ofMessage }
  const tool_calls = toolCalls.map((call) => ({
    id: idOf(call.id),
    type: "function",
    function: { name: nameOf(call, notes), arguments: writtenOf(call) },
    ...own.ofCall(call.id)
  }))
  return { role: "assistant", content: text === "" ? null : text, tool_calls, ...own.ofMessage }
}

/** Whether tools were called between the words of the user before and after a message. */
const hasCallsAround = (messages: ReadonlyArray<Message>, index: number): boolean => {
  const isUser = ({ role }: Message) => role === "user"
  const from = messages.slice(0, index).findLastIndex(isUser) + 1
  const length = messages.slice(index).findIndex(isUser)
  const between = messages.slice(from, length === -1 ? messages.length : index + length)
  return between.some((it) => it.role === "assistant" && (it.toolCalls?.length ?? 0) > 0)
}

/** Models call tools by names that no vendor takes back, such as `functions.search`. */
const nameOf = ({ name }: ToolCall, notes: Notes): string => {
  const plain = ToolNames.plain(name)
  if (plain !== name) notes.changes.add(`messages call the tool ${name} ${plain}: vendors take no such name.`)
  return plain
}

/** What the model wrote, or JSON that says the same. What is no JSON stays, so that the request as a whole is none. */
const writtenOf = (call: ToolCall): unknown =>
  call.rawArguments ?? Either.getOrElse(Json.write(call.arguments ?? {}), () => call.arguments)
