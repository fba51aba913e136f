/** OpenAI's chat completions, which most vendors and every local server speak. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { textOf } from "../model/Message.ts"
import * as Endpoint from "./Endpoint.ts"
import * as EventStream from "./EventStream.ts"
import * as Exchange from "./Exchange.ts"
import * as OpenAiAnswer from "./OpenAiAnswer.ts"
import * as OpenAiStream from "./OpenAiStream.ts"
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
  /** Whether a stream is asked to say its usage. Default: true; Mistral does so unasked, and refuses what it does not know. */
  readonly streamOptions?: boolean | undefined
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
  const client = yield* HttpClient.HttpClient
  const post = Exchange.make(client, endpoint)
  const open = Exchange.open(client, endpoint)
  return Provider.make({
    name,
    model,
    limits,
    timeout,
    complete: (request) => Effect.flatMap(post(requestBody(request, options, dialect)), OpenAiAnswer.read),
    stream: (request) =>
      EventStream.open(OpenAiStream.wire, open(requestBody(request, options, dialect, streamed(dialect))))
  })
})

// Request

const requestBody = (
  request: ChatRequest,
  options: Omit<Options, keyof Dialect>,
  dialect: Dialect,
  streamed: object = {}
) => ({
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
  ...streamed,
  ...request.extra
})

const streamed = ({ streamOptions = true }: Dialect) => ({
  stream: true,
  ...(streamOptions ? { stream_options: { include_usage: true } } : {})
})
