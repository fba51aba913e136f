/** Gemini's contents: the turns of a conversation. */
import type { ToolCall } from "../model/ChatResponse.ts"
import { type AssistantMessage, type Message, partsOf, type ToolMessage, textOf } from "../model/Message.ts"
import * as GeminiAnswer from "./GeminiAnswer.ts"
import * as GeminiParts from "./GeminiParts.ts"
import * as Json from "./Json.ts"

/** A turn as it is sent. */
export interface Turn {
  readonly role: "user" | "model"
  readonly parts: ReadonlyArray<object>
}

/** The signature that Google documents for calls that no Gemini made. */
const foreignSignature = "skip_thought_signature_validator"

/**
 * The turns of a conversation without its system messages: what the same one says in a row becomes one turn. `signs`
 * says whether the model refuses calls without a signature; what cannot be sent as it is goes into `changes`.
 */
export const make = (messages: ReadonlyArray<Message>, signs: boolean, changes: Set<string>): ReadonlyArray<Turn> => {
  const turns: Array<{ readonly role: Turn["role"]; readonly parts: Array<object> }> = []
  const calls = knownCalls()
  const partsOfMessage = (message: Exclude<Message, { role: "system" }>): ReadonlyArray<object> => {
    if (message.role === "assistant") return assistantParts(message, calls, signs, changes)
    return message.role === "tool" ? toolParts(message, calls, changes) : GeminiParts.make(message.content, changes)
  }
  for (const message of messages) {
    if (message.role === "system") continue
    const parts = partsOfMessage(message)
    const role = message.role === "assistant" ? "model" : "user"
    const last = turns.at(-1)
    if (parts.length === 0) changes.add("a message without content was left out")
    else if (last?.role === role) last.parts.push(...parts)
    else turns.push({ role, parts: [...parts] })
  }
  return turns
}

/** A tool call as it is sent. */
interface SentCall {
  readonly id: string
  readonly name: string
}

interface KnownCalls {
  readonly add: (call: ToolCall) => SentCall
  readonly find: (id: string) => SentCall | undefined
}

/**
 * The calls so far. Where a vendor gives no ids, they are made up for every answer alike: what comes again gets another
 * on the wire, so that a result belongs to one call.
 */
const knownCalls = (): KnownCalls => {
  const latest = new Map<string, SentCall>()
  const taken = new Set<string>()
  const freeId = (id: string, attempt = 1): string => {
    const candidate = attempt === 1 ? id : `${id}_${attempt}`
    return taken.has(candidate) ? freeId(id, attempt + 1) : candidate
  }
  return {
    add: ({ id, name }) => {
      const call = { id: freeId(id), name }
      taken.add(call.id)
      latest.set(id, call)
      return call
    },
    find: (id) => latest.get(id)
  }
}

const assistantParts = (
  { content, toolCalls = [], opaque }: AssistantMessage,
  calls: KnownCalls,
  signs: boolean,
  changes: Set<string>
): ReadonlyArray<object> => {
  const isOwn = opaque?.wire === GeminiAnswer.wireName
  if (opaque !== undefined && !isOwn) changes.add("reasoning of another vendor was left out")
  const signatureOf = GeminiAnswer.signaturesIn(isOwn ? opaque.value : [])
  return [
    ...signed(GeminiParts.make(content, changes), signatureOf(undefined)),
    ...toolCalls.map((call, index) => {
      // Of calls side by side only the first is signed.
      const signature = signatureOf(index) ?? (signs && index === 0 ? foreignSignature : undefined)
      return { functionCall: { ...calls.add(call), args: argumentsOf(call, changes) }, thoughtSignature: signature }
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
  calls: KnownCalls,
  changes: Set<string>
): ReadonlyArray<object> => {
  const call = calls.find(toolCallId) ?? { id: toolCallId, name: toolCallId }
  const response = { [isError === true ? "error" : "result"]: textOf(content) }
  const shown = partsOf(content).filter(({ type }) => type !== "text")
  return [{ functionResponse: { ...call, response } }, ...GeminiParts.make(shown, changes)]
}
