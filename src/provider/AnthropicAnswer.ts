/** Anthropic's Messages: an answer in one piece. */
import { Either } from "effect"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as AnthropicThoughts from "./AnthropicThoughts.ts"
import * as Json from "./Json.ts"
import type * as Reply from "./Reply.ts"

/** A tool whose input is the answer; with a `key` the answer stands under it. */
export interface AnswerTool {
  readonly name: string
  readonly key: string | undefined
}

/** How an answer is read. */
export interface Reading extends AnthropicThoughts.Author {
  /** The tool whose input is the answer's text. Absent: the text is. */
  readonly answerTool: AnswerTool | undefined
}

/** The answer that a body is, or the error that it is instead. */
export const read = (reply: Reply.Reply, reading: Reading): Answer.Read => {
  const { json } = reply
  if (!Array.isArray(Json.at(json, "content"))) return Answer.missing(reply, "content")
  const blocks = Json.list(Json.at(json, "content"))
  const joined = (type: string) =>
    blocks.map((block) => (Json.at(block, "type") === type ? (Json.text(Json.at(block, type)) ?? "") : "")).join("")
  const answer = answerOf(blocks, reading.answerTool)
  const stopped = Json.text(Json.at(json, "stop_reason"))
  return Answer.settle(reply, {
    text: answer ?? joined("text"),
    model: Json.text(Json.at(json, "model")),
    toolCalls: blocks.flatMap(toolCall).filter(({ name }) => name !== reading.answerTool?.name),
    reasoning: joined("thinking"),
    refusal: refusalOf(stopped, Json.at(json, "stop_details")),
    stopped: answer === undefined ? stopped : stoppedAfterAnswer(stopped),
    opaque: AnthropicThoughts.opaqueOf(blocks, reading)
  })
}

/** The input of the answer's tool, as a text. */
const answerOf = (blocks: ReadonlyArray<unknown>, tool: AnswerTool | undefined): string | undefined => {
  const block = tool && blocks.find((it) => Json.at(it, "type") === "tool_use" && Json.at(it, "name") === tool.name)
  if (tool === undefined || block === undefined) return undefined
  const input = Json.at(block, "input") ?? {}
  const isUnder = tool.key !== undefined && Json.isRecord(input) && Object.hasOwn(input, tool.key)
  // What is nested too deep to be written is no answer.
  return Either.getOrElse(Json.write(isUnder ? Json.at(input, tool.key) : input), () => "")
}

/** A model that has called the answer's tool has answered. */
export const stoppedAfterAnswer = (stopped: string | undefined): string | undefined =>
  stopped === "tool_use" ? "end_turn" : stopped
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

/** What a body says of usage. */
export const usageIn = (json: unknown): Usage | undefined => usageOf(Json.at(json, "usage"))

/** What a body says of usage, as far as it is looked at; what is no number of tokens is left out. */
export const countsIn = (usage: unknown): object => {
  const details = Json.count(Json.at(usage, "output_tokens_details", "thinking_tokens"))
  const forAnHour = Json.count(Json.at(usage, "cache_creation", "ephemeral_1h_input_tokens"))
  const counts = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].flatMap(
    (key) => {
      const count = Json.count(Json.at(usage, key))
      return count === undefined ? [] : [[key, count] as const]
    }
  )
  return {
    ...Object.fromEntries(counts),
    ...(forAnHour === undefined ? {} : { cache_creation: { ephemeral_1h_input_tokens: forAnHour } }),
    ...(details === undefined ? {} : { output_tokens_details: { thinking_tokens: details } })
  }
}

/** Usage in one meaning: Anthropic leaves what it wrote to its cache and read from it out of `input_tokens`. */
export const usageOf = (usage: unknown): Usage | undefined => {
  const tokens = (...path: ReadonlyArray<string>) => Json.count(Json.at(usage, ...path))
  const [input, output] = [tokens("input_tokens"), tokens("output_tokens")]
  if (input === undefined || output === undefined) return undefined
  const cached = tokens("cache_read_input_tokens")
  const written = tokens("cache_creation_input_tokens")
  const forAnHour = Math.min(tokens("cache_creation", "ephemeral_1h_input_tokens") ?? 0, written ?? 0)
  const reasoning = tokens("output_tokens_details", "thinking_tokens")
  return {
    inputTokens: input + (written ?? 0) + (cached ?? 0),
    outputTokens: output,
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(written === undefined ? {} : { cacheWriteInputTokens: written }),
    ...(forAnHour === 0 ? {} : { cacheWrite1hInputTokens: forAnHour }),
    ...(reasoning === undefined ? {} : { reasoningTokens: Math.min(reasoning, output) })
  }
}
