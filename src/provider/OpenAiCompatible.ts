/** OpenAI's chat completions, which most vendors and every local server speak. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { textOf } from "../model/Message.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Endpoint from "./Endpoint.ts"
import * as Exchange from "./Exchange.ts"
import * as Json from "./Json.ts"
import * as Provider from "./Provider.ts"
import * as VendorTag from "./VendorTag.ts"

// Options

/** Where vendors of this wire differ. */
export interface Dialect {
  /** The field for the token limit. Default: `max_tokens`; OpenAI's reasoning models refuse it. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined
  /** The field for the seed. Default: `seed`; Mistral's is `random_seed`, and it refuses what it does not know. */
  readonly seedField?: "seed" | "random_seed" | undefined
  /** The header that carries the key. Default: `authorization`, as a bearer token. */
  readonly keyHeader?: "authorization" | "api-key" | undefined
}

/** Options of a server that speaks this wire. */
export interface Options extends Endpoint.VendorOptions, Dialect {
  /** Shown in responses, errors and events; unique within a list of providers. */
  readonly name: string
  /** The address before `/chat/completions`, mostly with `/v1` at its end. */
  readonly baseUrl: string
}

/** What a vendor class of this wire is made of. */
export interface Vendor<Id extends string> extends Dialect {
  /** The name of its providers unless they are given another. */
  readonly name: Id
  /** The address before `/chat/completions` unless another is given. */
  readonly baseUrl: string
  /** The environment variable that holds the key. Absent: no key is needed, as for a local server. */
  readonly apiKey?: string | undefined
  /** Headers that the vendor wants with every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

// Make

/**
 * A provider on a server of one's own. Without `apiKey` no key is sent. Fails with a `ConfigError` that names the
 * option, its value and what is allowed.
 */
export const make = (options: Options): ReturnType<VendorTag.Make<Options>> => build(options, options)

/** A class to extend, one per vendor: `class Groq extends OpenAiCompatible.Service<Groq>()({ name, baseUrl, apiKey }) {}`. */
export const Service =
  <Self>() =>
  <const Id extends string>(vendor: Vendor<Id>): VendorTag.VendorTag<Self, Id, Endpoint.VendorOptions> =>
    VendorTag.define<Self>()(vendor.name, (options) => makeFor(vendor, options))

/** A vendor's provider. The key is read from the vendor's variable unless it is given. Fails as `make` does. */
export const makeFor = (
  vendor: Vendor<string>,
  options: Endpoint.VendorOptions
): ReturnType<VendorTag.Make<Endpoint.VendorOptions>> =>
  build({ ...options, name: options.name ?? vendor.name, baseUrl: options.baseUrl ?? vendor.baseUrl }, vendor, vendor)

const build = Effect.fnUntraced(function* (
  options: Omit<Options, keyof Dialect>,
  dialect: Dialect,
  vendor?: Vendor<string>
) {
  const { name, model, limits, timeout } = options
  const endpoint = yield* Endpoint.resolve({
    ...options,
    path: "/chat/completions",
    variable: vendor?.apiKey,
    wireHeaders: vendor?.headers,
    keyHeader: dialect.keyHeader === "api-key" ? { header: "api-key", prefix: "" } : undefined
  })
  const post = Exchange.make(yield* HttpClient.HttpClient, endpoint)
  return Provider.make({
    name,
    model,
    limits,
    timeout,
    complete: (request) => Effect.flatMap(post(requestBody(request, options, dialect)), readReply)
  })
})

// Request

const requestBody = (request: ChatRequest, options: Omit<Options, keyof Dialect>, dialect: Dialect) => ({
  model: options.model,
  messages: [
    ...(request.system === undefined ? [] : [{ role: "system", content: request.system }]),
    // Parts are joined: a plain text is what every vendor of this wire takes.
    ...request.messages.map(({ role, content }) => ({ role, content: textOf(content) }))
  ],
  [dialect.maxTokensField ?? "max_tokens"]: request.maxTokens ?? options.maxTokens,
  temperature: request.temperature,
  top_p: request.topP,
  stop: request.stop === undefined || request.stop.length === 0 ? undefined : request.stop,
  [dialect.seedField ?? "seed"]: request.seed,
  ...request.extra
})

// Response

const readReply = (reply: Exchange.Reply): Answer.Read => {
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
    toolCalls: Json.list(Json.at(message, "tool_calls")).flatMap(toolCall),
    reasoning:
      Json.text(Json.at(message, "reasoning")) ??
      Json.text(Json.at(message, "reasoning_content")) ??
      ofType("thinking").map(thought).join(""),
    refusal:
      Json.text(Json.at(message, "refusal")) ?? Json.text(ofType("refusal").map((part) => Json.at(part, "refusal"))[0]),
    stopped: Json.text(Json.at(choice, "finish_reason")),
    usage: usageOf(Json.at(json, "usage"))
  })
}

/** Mistral: a thought is a list of text parts. */
const thought = (part: unknown): string => {
  const thinking = Json.at(part, "thinking")
  return (
    Json.text(thinking) ??
    Json.list(thinking)
      .map((it) => Json.text(Json.at(it, "text")) ?? "")
      .join("")
  )
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

/**
 * Usage in one meaning. What the total has beyond prompt and completion is reasoning that the vendor left out of the
 * completion: xAI says how much, Gemini's compatible endpoint does not.
 */
const usageOf = (usage: unknown): Usage | undefined => {
  const tokens = (...path: ReadonlyArray<string>) => {
    const count = Json.number(Json.at(usage, ...path))
    return count !== undefined && count >= 0 ? count : undefined
  }
  const input = tokens("prompt_tokens")
  const total = tokens("total_tokens")
  const completion =
    tokens("completion_tokens") ?? (total === undefined ? undefined : Math.max(0, total - (input ?? 0)))
  if (input === undefined || completion === undefined) return undefined
  const hidden = Math.max(0, (total ?? 0) - input - completion)
  const cached = tokens("prompt_tokens_details", "cached_tokens") ?? tokens("prompt_cache_hit_tokens")
  const reasoning = tokens("completion_tokens_details", "reasoning_tokens") ?? (hidden > 0 ? hidden : undefined)
  return {
    inputTokens: input,
    outputTokens: completion + hidden,
    ...(cached === undefined ? {} : { cachedInputTokens: Math.min(cached, input) }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
  }
}
