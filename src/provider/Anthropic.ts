/** Anthropic's Messages. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { type Message, textOf } from "../model/Message.ts"
import * as AnthropicAnswer from "./AnthropicAnswer.ts"
import * as AnthropicStream from "./AnthropicStream.ts"
import * as Endpoint from "./Endpoint.ts"
import * as EventStream from "./EventStream.ts"
import * as Exchange from "./Exchange.ts"
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
  const client = yield* HttpClient.HttpClient
  const post = Exchange.make(client, endpoint)
  const open = Exchange.open(client, endpoint)
  return Provider.make({
    name,
    model,
    limits,
    timeout,
    complete: (request) => Effect.flatMap(post(requestBody(request, options)), AnthropicAnswer.read),
    stream: (request) => EventStream.open(AnthropicStream.wire, open(requestBody(request, options, { stream: true })))
  })
})

/** Anthropic, by its Messages wire. The key is read from `ANTHROPIC_API_KEY` unless it is given. */
export class Anthropic extends VendorTag.define<Anthropic>()("anthropic", make) {}

// Request

const requestBody = (request: ChatRequest, options: Options, streamed: object = {}) => {
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
    ...streamed,
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
