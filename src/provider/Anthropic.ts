/** Anthropic's Messages. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect } from "effect"
import type { Capabilities } from "../model/Capabilities.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Answer from "./Answer.ts"
import * as AnthropicAnswer from "./AnthropicAnswer.ts"
import * as AnthropicModel from "./AnthropicModel.ts"
import * as AnthropicRequest from "./AnthropicRequest.ts"
import * as AnthropicStream from "./AnthropicStream.ts"
import * as Endpoint from "./Endpoint.ts"
import * as EventStream from "./EventStream.ts"
import * as Exchange from "./Exchange.ts"
import * as Provider from "./Provider.ts"
import * as VendorTag from "./VendorTag.ts"
import * as Writing from "./Writing.ts"

// Options

/** What Anthropic can be told beside what every vendor can. */
export interface Options extends Endpoint.VendorOptions {
  /**
   * The most tokens to write for requests that do not say so, a whole number from 1. Default: 4096, as the wire needs
   * one, and the tokens to think on top.
   */
  readonly maxTokens?: number | undefined
  /** The `anthropic-version` header. Default: `2023-06-01`; later ones refuse sampling parameters. */
  readonly version?: string | undefined
  /**
   * How the model is told to think: by a budget of tokens, or by an effort within which it decides itself. Default: by
   * the model's name: `"adaptive"` from Claude 4.6 on, else `"budget"`.
   */
  readonly thinking?: "budget" | "adaptive" | undefined
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
    wireHeaders: { "anthropic-version": options.version ?? "2023-06-01" },
    usageIn: AnthropicAnswer.usageIn
  })
  if (options.thinking !== undefined) {
    yield* OptionCheck.oneOf(`${name}.thinking`, options.thinking, ["budget", "adaptive"])
  }
  const client = yield* HttpClient.HttpClient
  const post = Exchange.make(client, endpoint)
  const open = Exchange.open(client, endpoint)
  const target = { ...options, name }

  const writing = (request: ChatRequest) => Writing.of(name, () => AnthropicRequest.make(request, target))
  const complete = (request: ChatRequest) =>
    Effect.flatMap(writing(request), ({ body, changes, reading }) =>
      Effect.flatMap(post(body), (reply) => Answer.withChanges(AnthropicAnswer.read(reply, reading), changes))
    )
  const stream = (request: ChatRequest) =>
    Effect.flatMap(writing(request), ({ body, changes, reading }) =>
      EventStream.open(AnthropicStream.make(reading, changes), open({ stream: true, ...body }))
    )
  const capabilities = { ...defaultsOf(model), ...options.capabilities }
  return Provider.make({
    name,
    model,
    vendor: options.baseUrl ?? "anthropic",
    limits,
    timeout,
    capabilities,
    complete,
    stream
  })
})

/** Newer models refuse to go on from an assistant message; what else differs from model to model is the user's to say. */
const defaultsOf = (model: string): Capabilities => (AnthropicModel.traitsOf(model).prefill ? {} : { prefill: false })

/** Anthropic, by its Messages wire. The key is read from `ANTHROPIC_API_KEY` unless it is given. */
export class Anthropic extends VendorTag.define<Anthropic>()("anthropic", make) {}
