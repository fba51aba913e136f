/** Gemini's generateContent: an answer in one piece. */
import type { ToolCall } from "../model/ChatResponse.ts"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Json from "./Json.ts"
import * as Reply from "./Reply.ts"
import * as ToolNames from "./ToolNames.ts"

/** The name of this wire, for what belongs to it. */
export const wireName = "gemini"

/** What Gemini wants back of a part: of the call with that number, or without one of the text. */
export interface Mark {
  readonly call?: number | undefined
  /** The id that it gave the call. */
  readonly id?: string | undefined
  /** Its signature over its thoughts. */
  readonly thoughtSignature?: string | undefined
}

/**
 * The answer that a body is, or the error that it is instead. A stream that was not asked for as events is an array of
 * the same bodies.
 */
export const read = (reply: Reply.Reply, names: ToolNames.ToolNames): Answer.Read => {
  const bodies = bodiesOf(reply.json)
  const first = (...path: ReadonlyArray<string>) => firstText(bodies, (body) => Json.at(body, ...path))
  const candidates = bodies.map(candidateOf)
  const stopped = firstText(candidates, (candidate) => stoppedOf(Json.at(candidate, "finishReason")))
  const failed = bodies.find(Reply.holdsError)
  if (failed !== undefined && stopped === undefined) return Answer.failed(reply, failed)
  if (!bodies.some(isAnswer)) return Answer.missing(reply, "candidates")
  const parts = candidates.flatMap((candidate) => Json.list(Json.at(candidate, "content", "parts")))
  return Answer.settle(Reply.named(reply, first("responseId")), {
    text: textOf(parts, false),
    model: first("modelVersion"),
    toolCalls: ToolNames.ownCalls(parts.filter(isCall).map(toolCall), names),
    reasoning: textOf(parts, true),
    refusal: undefined,
    blockedPrompt: firstText(bodies, blockReasonOf),
    stopped,
    opaque: opaqueOf(reply.provider, marksOf(parts))
  })
}

/** What a body says of usage; of several the last word on each count. */
export const usageIn = (json: unknown): Usage | undefined => {
  const said = {}
  for (const body of bodiesOf(json)) Object.assign(said, countsIn(Json.at(body, "usageMetadata")))
  return usageOf(said)
}

const bodiesOf = (json: unknown): ReadonlyArray<unknown> => (Array.isArray(json) ? json : [json])

/** The first of the answers in a body; more come only where the request asks for them. */
export const candidateOf = (body: unknown): unknown =>
  Json.list(Json.at(body, "candidates")).find((it) => (Json.at(it, "index") ?? 0) === 0)

/** Why the model stopped; a word that says nothing is none. */
export const stoppedOf = (word: unknown): string | undefined =>
  word === "FINISH_REASON_UNSPECIFIED" ? undefined : Json.text(word)

/** Why the prompt was blocked; a word that says nothing is none. */
export const blockReasonOf = (body: unknown): string | undefined => {
  const word = Json.text(Json.at(body, "promptFeedback", "blockReason"))
  return word !== undefined && /^BLOCK(?:ED)?_REASON_UNSPECIFIED$/.test(word) ? undefined : word
}

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

const marksOf = (parts: ReadonlyArray<unknown>): ReadonlyArray<Mark> => {
  let calls = 0
  return parts.flatMap((part) => markOf(part, isCall(part) ? calls++ : undefined))
}

/** What Gemini wants back of a part; nothing, if it has neither a signature nor an id. */
export const markOf = (part: unknown, call: number | undefined): ReadonlyArray<Mark> => {
  const id = Json.text(Json.at(part, "functionCall", "id"))
  const thoughtSignature = Json.text(Json.at(part, "thoughtSignature"))
  if (id === undefined && thoughtSignature === undefined) return []
  return [
    {
      ...(call === undefined ? {} : { call }),
      ...(id === undefined ? {} : { id }),
      ...(thoughtSignature === undefined ? {} : { thoughtSignature })
    }
  ]
}

/** What Gemini wants back with an answer. */
export const opaqueOf = (provider: string, marks: ReadonlyArray<Mark>): OpaqueReasoning | undefined =>
  marks.length === 0 ? undefined : { wire: wireName, provider, value: marks }

/** What finds the last mark of a call, or of the text, in what was kept. */
export const marksIn =
  (value: unknown) =>
  (call: number | undefined): Mark | undefined => {
    const found = Json.list(value).findLast((it) => Json.at(it, "call") === call)
    if (found === undefined) return undefined
    return { id: Json.text(Json.at(found, "id")), thoughtSignature: Json.text(Json.at(found, "thoughtSignature")) }
  }

const counts = [
  "promptTokenCount",
  "toolUsePromptTokenCount",
  "cachedContentTokenCount",
  "candidatesTokenCount",
  "thoughtsTokenCount",
  "totalTokenCount"
] as const

/** The numbers in what a body says of usage; what is none is left out. */
export const countsIn = (usage: unknown): Readonly<Partial<Record<(typeof counts)[number], number>>> =>
  Object.fromEntries(
    counts.flatMap((key) => {
      const count = Json.count(Json.at(usage, key))
      return count === undefined ? [] : [[key, count] as const]
    })
  )

/** Usage in one meaning: Gemini counts its cache into the prompt, but leaves thoughts out of the candidates. */
export const usageOf = (usage: unknown): Usage | undefined => {
  const said = countsIn(usage)
  if (said.promptTokenCount === undefined) return undefined
  const input = said.promptTokenCount + (said.toolUsePromptTokenCount ?? 0)
  const { cachedContentTokenCount: cached, thoughtsTokenCount: thoughts, totalTokenCount: total = input } = said
  const written = said.candidatesTokenCount ?? Math.max(0, total - input - (thoughts ?? 0))
  return {
    inputTokens: input,
    outputTokens: written + (thoughts ?? 0),
    ...(cached === undefined ? {} : { cachedInputTokens: Math.min(cached, input) }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts })
  }
}
