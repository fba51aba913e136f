/** What was asked and answered, in the schema that OpenTelemetry's GenAI conventions have for it, as texts of JSON. */
import { Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse, ToolCall } from "../model/ChatResponse.ts"
import type { Content, FilePart, ImagePart, Message, Part } from "../model/Message.ts"
import { partsOf } from "../model/Message.ts"
import * as Redaction from "../provider/Redaction.ts"
import * as SpanFacts from "./SpanFacts.ts"

/** What a request says. */
export const ofRequest = ({ system, messages, stop }: ChatRequest): SpanFacts.Attributes => ({
  "gen_ai.system_instructions": system === undefined ? undefined : json([textPart(system)]),
  "gen_ai.input.messages": json(messages.map(inputMessage)),
  "gen_ai.request.stop_sequences": stop
})

/** What an answer says. */
export type Said = Pick<ChatResponse, "text" | "toolCalls" | "finishReason" | "reasoning" | "refusal">

/** The answer as the only output message. */
export const ofResponse = ({ text, toolCalls, finishReason, reasoning, refusal }: Said): SpanFacts.Attributes => ({
  "gen_ai.output.messages": json([
    {
      role: "assistant",
      parts: [
        ...(reasoning ? [{ type: "reasoning", content: reasoning }] : []),
        ...partsOf(text).map(partOf),
        ...(refusal ? [{ type: "refusal", content: refusal }] : []),
        ...toolCalls.map(toolCallPart)
      ],
      finish_reason: SpanFacts.finishReasonOf(finishReason)
    }
  ])
})

/** Whoever calls may have put into a request what no JSON can say. */
const json = (value: unknown): string | undefined => Either.getOrUndefined(Either.try(() => JSON.stringify(value)))

const inputMessage = (message: Message) => {
  const { role, content } = message
  if (role === "tool") {
    return { role, parts: [{ type: "tool_call_response", id: message.toolCallId, response: resultOf(content) }] }
  }
  const toolCalls = role === "assistant" ? (message.toolCalls ?? []) : []
  return { role, parts: [...partsOf(content).map(partOf), ...toolCalls.map(toolCallPart)] }
}

const resultOf = (content: Content) => (typeof content === "string" ? content : content.map(partOf))

const textPart = (content: string) => ({ type: "text", content })

const toolCallPart = ({ id, name, arguments: parsed, rawArguments }: ToolCall) => ({
  type: "tool_call",
  id,
  name,
  arguments: parsed ?? rawArguments
})

const partOf = (part: Part) => (part.type === "text" ? textPart(part.text) : mediaPart(part))

/** The schema wants the bytes of a blob; they are left out, for a span is no place for them. */
const mediaPart = (part: ImagePart | FilePart) => {
  const { url } = part
  const mime_type = part.mediaType ?? url?.match(/^data:([^;,]+)/i)?.[1]
  const modality = modalityOf(part.type, mime_type)
  return url === undefined || /^data:/i.test(url)
    ? { type: "blob", modality, mime_type, content: "" }
    : { type: "uri", modality, mime_type, uri: Redaction.byShape(url) }
}

const modalityOf = (type: "image" | "file", mediaType = ""): string =>
  type === "image" ? "image" : (mediaType.match(/^(?:image|audio|video)(?=\/)/i)?.[0].toLowerCase() ?? "document")
