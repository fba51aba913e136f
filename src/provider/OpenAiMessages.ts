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

/** The messages of a request. `instruction` is added to the system text; `provider` is the name of who is asked. */
export const make = (
  request: ChatRequest,
  instruction: string | undefined,
  provider: string,
  dialect: Dialect,
  notes: Notes
): ReadonlyArray<OpenAiTurns.Turn> => {
  const system = [request.system, instruction].filter((text) => text !== undefined && text !== "").join("\n\n")
  const idOf = OpenAiToolIds.make(dialect, notes)
  const turns: Array<OpenAiTurns.Turn> = system === "" ? [] : [{ role: "system", content: system }]
  let shown: ReadonlyArray<Part> = []
  /** Results of tools are texts on this wire: what they show follows them, once all of them are said. */
  const showRest = () => {
    if (shown.length > 0) turns.push({ role: "user", content: OpenAiParts.make(shown, dialect, notes) })
    shown = []
  }
  for (const message of request.messages) {
    if (message.role !== "tool") showRest()
    turns.push(turnOf(message, idOf, provider, dialect, notes))
    if (message.role === "tool") shown = [...shown, ...OpenAiParts.withoutText(message.content)]
  }
  showRest()
  return OpenAiTurns.arrange(turns, dialect, notes)
}

const turnOf = (
  message: Message,
  idOf: (id: string) => string,
  provider: string,
  dialect: Dialect,
  notes: Notes
): OpenAiTurns.Turn => {
  switch (message.role) {
    case "user":
      return { role: "user", content: OpenAiParts.make(message.content, dialect, notes) }
    case "system":
      noteParts(message, "of system messages were left out: this wire has only text there.", notes)
      return { role: "system", content: textOf(message.content) }
    case "assistant":
      noteParts(message, "of assistant messages were left out: this wire has only text there.", notes)
      return assistantTurn(message, idOf, provider, dialect, notes)
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
  { content, toolCalls = [], opaque }: AssistantMessage,
  idOf: (id: string) => string,
  provider: string,
  dialect: Dialect,
  notes: Notes
): OpenAiTurns.Turn => {
  const text = textOf(content)
  const own = OpenAiOpaque.sentBack(opaque, provider, dialect, notes)
  if (toolCalls.length === 0) return { role: "assistant", content: text, ...own.ofMessage }
  const tool_calls = toolCalls.map((call) => ({
    id: idOf(call.id),
    type: "function",
    function: { name: call.name, arguments: writtenOf(call) },
    ...own.ofCall(call.id)
  }))
  return { role: "assistant", content: text === "" ? null : text, tool_calls, ...own.ofMessage }
}

/** What the model wrote, or JSON that says the same. What is no JSON stays, so that the request as a whole is none. */
const writtenOf = (call: ToolCall): unknown =>
  call.rawArguments ?? Either.getOrElse(Json.write(call.arguments ?? {}), () => call.arguments)
