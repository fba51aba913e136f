/** Anthropic's Messages. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { type Message, textOf } from "../model/Message.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Endpoint from "./Endpoint.ts"
import * as Exchange from "./Exchange.ts"
import * as Json from "./Json.ts"
import * as Provider from "./Provider.ts"
import * as VendorTag from "./VendorTag.ts"

// Options

/** What Anthropic can be told beside what every vendor can. */
export interface Options extends Endpoint.VendorOptions {
  /** The most tokens to write for requests that do not say so, a whole number from 1. Default: 4096, as the wire needs one. */
  readonly maxTokens?: number | undefined
  /** The `anthropic-version` header. Default: `2023-06-01`; later ones refuse sampling parameters. */
  readonly version?: string | undefined
}

// Make

const make = Effect.fnUntraced(function* (options: Options) {
  const { model, limits, timeout } = options
  const name = options.name ?? "anthropic"
  const endpoint = yield* Endpoint.resolve({
    ...options,
    name,
    baseUrl: options.baseUrl ?? "https://api.anthropic.com/v1",
    path: "/messages",
    variable: "ANTHROPIC_API_KEY",
    keyHeader: { header: "x-api-key", prefix: "" },
    wireHeaders: { "anthropic-version": options.version ?? "2023-06-01" }
  })
  const post = Exchange.make(yield* HttpClient.HttpClient, endpoint)
  return Provider.make({
    name,
    model,
    limits,
    timeout,
    complete: (request) => Effect.flatMap(post(requestBody(request, options)), readReply)
  })
})

/** Anthropic, by its Messages wire. The key is read from `ANTHROPIC_API_KEY` unless it is given. */
export class Anthropic extends VendorTag.define<Anthropic>()("anthropic", make) {}

// Request

const requestBody = (request: ChatRequest, options: Options) => {
  const systems = request.messages.filter(({ role }) => role === "system").map(({ content }) => textOf(content))
  const system = [...(request.system === undefined ? [] : [request.system]), ...systems].join("\n\n")
  return {
    model: options.model,
    system: system === "" ? undefined : system,
    messages: turnsOf(request.messages.filter(({ role }) => role !== "system")),
    max_tokens: request.maxTokens ?? options.maxTokens ?? 4096,
    temperature: request.temperature,
    top_p: request.topP,
    stop_sequences: request.stop === undefined || request.stop.length === 0 ? undefined : request.stop,
    ...request.extra
  }
}

/** Turns of user and assistant alternate: what the same one says in a row becomes one turn of several blocks. */
const turnsOf = (messages: ReadonlyArray<Message>) => {
  const turns: Array<{ readonly role: string; readonly texts: Array<string> }> = []
  for (const { role, content } of messages) {
    const last = turns.at(-1)
    if (last?.role === role) last.texts.push(textOf(content))
    else turns.push({ role, texts: [textOf(content)] })
  }
  return turns.map(({ role, texts }) => ({
    role,
    content: texts.length === 1 ? texts[0] : texts.map((text) => ({ type: "text", text }))
  }))
}

// Response

const readReply = (reply: Exchange.Reply): Answer.Read => {
  const { json } = reply
  if (!Array.isArray(Json.at(json, "content"))) return Answer.missing(reply, "content")
  const blocks = Json.list(Json.at(json, "content"))
  const joined = (type: string) =>
    blocks.map((block) => (Json.at(block, "type") === type ? (Json.text(Json.at(block, type)) ?? "") : "")).join("")
  const stopped = Json.text(Json.at(json, "stop_reason"))
  const details = Json.at(json, "stop_details")
  return Answer.settle(reply, {
    text: joined("text"),
    model: Json.text(Json.at(json, "model")),
    toolCalls: blocks.flatMap(toolCall),
    reasoning: joined("thinking"),
    // A refusal need not say anything, and what was written before it is not its reason.
    refusal:
      stopped === "refusal"
        ? (Json.text(Json.at(details, "explanation")) ?? Json.text(Json.at(details, "category")))
        : undefined,
    stopped,
    usage: usageOf(Json.at(json, "usage"))
  })
}

const toolCall = (block: unknown) => {
  const [id, name] = [Json.text(Json.at(block, "id")), Json.text(Json.at(block, "name"))]
  if (Json.at(block, "type") !== "tool_use" || id === undefined || name === undefined) return []
  return [{ id, name, arguments: Json.at(block, "input") ?? {} }]
}

/** Usage in one meaning: Anthropic leaves what it wrote to its cache and read from it out of `input_tokens`. */
const usageOf = (usage: unknown): Usage | undefined => {
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
