/** Gemini's generateContent: an answer in one piece. */
import type { ToolCall } from "../model/ChatResponse.ts"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Json from "./Json.ts"
import * as Reply from "./Reply.ts"

/** The name of this wire, for what belongs to it. */
export const wireName = "gemini"

/** A signature over the model's thoughts, and the call on which it stood; without a call it stood on the text. */
export interface Signature {
  readonly call?: number | undefined
  readonly thoughtSignature: string
}

/**
 * The answer that a body is, or the error that it is instead. A stream that was not asked for as events is an array of
 * the same bodies.
 */
export const read = (reply: Reply.Reply): Answer.Read => {
  const bodies = Array.isArray(reply.json) ? Json.list(reply.json) : [reply.json]
  const first = (...path: ReadonlyArray<string>) => firstText(bodies, (body) => Json.at(body, ...path))
  const candidates = bodies.map(candidateOf)
  const stopped = firstText(candidates, (candidate) => Json.at(candidate, "finishReason"))
  const failed = bodies.find(Reply.holdsError)
  if (failed !== undefined && stopped === undefined) return Answer.failed(reply, failed)
  if (!bodies.some(isAnswer)) return Answer.missing(reply, "candidates")
  const parts = candidates.flatMap((candidate) => Json.list(Json.at(candidate, "content", "parts")))
  return Answer.settle(Reply.named(reply, first("responseId")), {
    text: textOf(parts, false),
    model: first("modelVersion"),
    toolCalls: parts.filter(isCall).map(toolCall),
    reasoning: textOf(parts, true),
    refusal: undefined,
    blockedPrompt: first("promptFeedback", "blockReason"),
    stopped,
    usage: usageOf(bodies.map((body) => Json.at(body, "usageMetadata")).findLast(Json.isRecord)),
    opaque: opaqueOf(reply.provider, signaturesOf(parts))
  })
}

/** The first of the answers in a body; more come only where the request asks for them. */
export const candidateOf = (body: unknown): unknown =>
  Json.list(Json.at(body, "candidates")).find((it) => (Json.at(it, "index") ?? 0) === 0)

const firstText = (values: ReadonlyArray<unknown>, get: (value: unknown) => unknown): string | undefined =>
  values.map((value) => Json.text(get(value))).find((text) => text !== undefined)

/** Empty lists are left out on this wire: what names a model or counts tokens is an answer with nothing in it. */
const isAnswer = (body: unknown): boolean =>
  Array.isArray(Json.at(body, "candidates")) ||
  ["promptFeedback", "usageMetadata", "modelVersion"].some((key) => Json.at(body, key) !== undefined)

const textOf = (parts: ReadonlyArray<unknown>, isThought: boolean): string =>
  parts
    .filter((part) => (Json.at(part, "thought") === true) === isThought)
    .map((part) => Json.text(Json.at(part, "text")) ?? "")
    .join("")

/** Whether a part is a tool call. */
export const isCall = (part: unknown): boolean => Json.text(Json.at(part, "functionCall", "name")) !== undefined

const toolCall = (part: unknown, index: number): ToolCall => ({
  id: Json.text(Json.at(part, "functionCall", "id")) ?? `call_${index}`,
  name: Json.text(Json.at(part, "functionCall", "name")) ?? "",
  arguments: Json.at(part, "functionCall", "args") ?? {}
})

const signaturesOf = (parts: ReadonlyArray<unknown>): ReadonlyArray<Signature> => {
  const calls = parts.filter(isCall)
  return parts.flatMap((part) => signatureOf(part, isCall(part) ? calls.indexOf(part) : undefined))
}

/** The signature of a part, if it has one. */
export const signatureOf = (part: unknown, call: number | undefined): ReadonlyArray<Signature> => {
  const thoughtSignature = Json.text(Json.at(part, "thoughtSignature"))
  if (thoughtSignature === undefined) return []
  return [call === undefined ? { thoughtSignature } : { call, thoughtSignature }]
}

/** What finds the last signature on a call, or on the text, in a value that was kept. */
export const signaturesIn =
  (value: unknown) =>
  (call: number | undefined): string | undefined => {
    const signature = Json.list(value).findLast((it) => Json.at(it, "call") === call)
    return Json.text(Json.at(signature, "thoughtSignature"))
  }

/** What Gemini wants back with an answer. */
export const opaqueOf = (provider: string, signatures: ReadonlyArray<Signature>): OpaqueReasoning | undefined =>
  signatures.length === 0 ? undefined : { wire: wireName, provider, value: signatures }

/** Usage in one meaning: Gemini counts its cache into the prompt, but leaves thoughts out of the candidates. */
export const usageOf = (usage: unknown): Usage | undefined => {
  const tokens = (key: string) => {
    const count = Json.number(Json.at(usage, key))
    return count !== undefined && count >= 0 ? count : undefined
  }
  const prompt = tokens("promptTokenCount")
  if (prompt === undefined) return undefined
  const [cached, thoughts] = [tokens("cachedContentTokenCount"), tokens("thoughtsTokenCount")]
  const input = prompt + (tokens("toolUsePromptTokenCount") ?? 0)
  return {
    inputTokens: input,
    outputTokens: (tokens("candidatesTokenCount") ?? 0) + (thoughts ?? 0),
    ...(cached === undefined ? {} : { cachedInputTokens: Math.min(cached, input) }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts })
  }
}
