/** OpenAI's chat completions: an answer in one piece. */
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Json from "./Json.ts"
import type * as Reply from "./Reply.ts"

/** The answer that a body is, or the error that it is instead. */
export const read = (reply: Reply.Reply): Answer.Read => {
  const { json } = reply
  if (!Array.isArray(Json.at(json, "choices"))) return Answer.missing(reply, "choices")
  const choice = Json.list(Json.at(json, "choices"))[0]
  // OpenRouter and Groq report what broke after the model had begun beside what it had written.
  const error = Json.at(choice, "error") ?? Json.at(json, "x_groq", "error")
  if (error !== undefined && error !== null) return Answer.failed(reply, { error })
  const message = Json.at(choice, "message")
  const parts = Json.list(Json.at(message, "content"))
  const ofType = (type: string) => parts.filter((part) => Json.at(part, "type") === type)
  return Answer.settle(reply, {
    text:
      Json.text(Json.at(message, "content")) ??
      ofType("text")
        .map((part) => Json.text(Json.at(part, "text")) ?? "")
        .join(""),
    model: Json.text(Json.at(json, "model")),
    toolCalls: callsOf(message).flatMap(toolCall),
    reasoning:
      Json.text(Json.at(message, "reasoning")) ??
      Json.text(Json.at(message, "reasoning_content")) ??
      ofType("thinking").map(thought).join(""),
    refusal:
      Json.text(Json.at(message, "refusal")) ?? Json.text(ofType("refusal").map((part) => Json.at(part, "refusal"))[0]),
    stopped: Json.text(Json.at(choice, "finish_reason"))
  })
}

/** Mistral: a thought is a list of text parts. */
export const thought = (part: unknown): string => {
  const thinking = Json.at(part, "thinking")
  return (
    Json.text(thinking) ??
    Json.list(thinking)
      .map((it) => Json.text(Json.at(it, "text")) ?? "")
      .join("")
  )
}

/** Old servers know one call, and call it a function's. */
const callsOf = (message: unknown): ReadonlyArray<unknown> => {
  const old = Json.at(message, "function_call")
  const calls = Json.list(Json.at(message, "tool_calls"))
  return calls.length === 0 && Json.isRecord(old) ? [{ function: old }] : calls
}

const toolCall = (call: unknown, index: number) => {
  const name = Json.text(Json.at(call, "function", "name"))
  const written = Json.at(call, "function", "arguments")
  const id = Json.text(Json.at(call, "id")) ?? `call_${index}`
  if (name === undefined) return []
  // Servers that parse the arguments themselves send them as an object.
  return [
    Json.isRecord(written) ? { id, name, arguments: written } : Answer.toolCall(id, name, Json.text(written) ?? "")
  ]
}

/** What a body says of usage. */
export const usageIn = (json: unknown): Usage | undefined => usageOf(Json.at(json, "usage"))

/**
 * Usage in one meaning. What the total has beyond prompt and completion is reasoning that the vendor left out of the
 * completion: xAI says how much, Gemini's compatible endpoint does not. What OpenRouter's vendors wrote to their caches
 * is within the prompt, as what they read from them is.
 */
export const usageOf = (usage: unknown): Usage | undefined => {
  const tokens = (...path: ReadonlyArray<string>) => Json.count(Json.at(usage, ...path))
  const input = tokens("prompt_tokens")
  const total = tokens("total_tokens")
  const completion =
    tokens("completion_tokens") ?? (total === undefined ? undefined : Math.max(0, total - (input ?? 0)))
  if (input === undefined || completion === undefined) return undefined
  const hidden = Math.max(0, (total ?? 0) - input - completion)
  const cached = tokens("prompt_tokens_details", "cached_tokens") ?? tokens("prompt_cache_hit_tokens")
  const kept = tokens("prompt_tokens_details", "cache_write_tokens")
  const reasoning = tokens("completion_tokens_details", "reasoning_tokens") ?? (hidden > 0 ? hidden : undefined)
  // More reasoning than completion is reasoning beside it, though no total says so.
  const written = completion + hidden
  return {
    inputTokens: input,
    outputTokens: reasoning !== undefined && reasoning > written ? completion + reasoning : written,
    ...(cached === undefined ? {} : { cachedInputTokens: Math.min(cached, input) }),
    ...(kept === undefined ? {} : { cacheWriteInputTokens: Math.min(kept, Math.max(0, input - (cached ?? 0))) }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
  }
}
