/** Anthropic's Messages: an answer in one piece. */
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Json from "./Json.ts"
import type * as Reply from "./Reply.ts"

/** The answer that a body is, or the error that it is instead. */
export const read = (reply: Reply.Reply): Answer.Read => {
  const { json } = reply
  if (!Array.isArray(Json.at(json, "content"))) return Answer.missing(reply, "content")
  const blocks = Json.list(Json.at(json, "content"))
  const joined = (type: string) =>
    blocks.map((block) => (Json.at(block, "type") === type ? (Json.text(Json.at(block, type)) ?? "") : "")).join("")
  const stopped = Json.text(Json.at(json, "stop_reason"))
  return Answer.settle(reply, {
    text: joined("text"),
    model: Json.text(Json.at(json, "model")),
    toolCalls: blocks.flatMap(toolCall),
    reasoning: joined("thinking"),
    refusal: refusalOf(stopped, Json.at(json, "stop_details")),
    stopped,
    usage: usageOf(Json.at(json, "usage"))
  })
}

/** Why the model refused. A refusal need not say anything, and what was written before it is not its reason. */
export const refusalOf = (stopped: string | undefined, details: unknown): string | undefined =>
  stopped === "refusal"
    ? (Json.text(Json.at(details, "explanation")) ?? Json.text(Json.at(details, "category")))
    : undefined

const toolCall = (block: unknown) => {
  const [id, name] = [Json.text(Json.at(block, "id")), Json.text(Json.at(block, "name"))]
  if (Json.at(block, "type") !== "tool_use" || id === undefined || name === undefined) return []
  return [{ id, name, arguments: Json.at(block, "input") ?? {} }]
}

/** Usage in one meaning: Anthropic leaves what it wrote to its cache and read from it out of `input_tokens`. */
export const usageOf = (usage: unknown): Usage | undefined => {
  const tokens = (...path: ReadonlyArray<string>) => {
    const count = Json.number(Json.at(usage, ...path))
    return count !== undefined && count >= 0 ? count : undefined
  }
  const [input, output] = [tokens("input_tokens"), tokens("output_tokens")]
  if (input === undefined || output === undefined) return undefined
  const cached = tokens("cache_read_input_tokens")
  const reasoning = tokens("output_tokens_details", "thinking_tokens")
  return {
    inputTokens: input + (tokens("cache_creation_input_tokens") ?? 0) + (cached ?? 0),
    outputTokens: output,
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
  }
}
