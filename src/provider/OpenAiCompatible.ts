/** OpenAI's chat completions, which most vendors and every local server speak. */
import * as HttpClient from "@effect/platform/HttpClient"
import { type ConfigError, Effect, Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import * as Answer from "./Answer.ts"
import * as Endpoint from "./Endpoint.ts"
import * as EventStream from "./EventStream.ts"
import * as Exchange from "./Exchange.ts"
import * as OpenAiAnswer from "./OpenAiAnswer.ts"
import * as OpenAiAnswerTool from "./OpenAiAnswerTool.ts"
import * as OpenAiDialect from "./OpenAiDialect.ts"
import * as OpenAiEmbeddings from "./OpenAiEmbeddings.ts"
import * as OpenAiOpaque from "./OpenAiOpaque.ts"
import * as OpenAiRequest from "./OpenAiRequest.ts"
import * as OpenAiStream from "./OpenAiStream.ts"
import * as Provider from "./Provider.ts"
import * as VendorTag from "./VendorTag.ts"
import * as Writing from "./Writing.ts"

export type { Dialect, Effort, EmbeddingDialect } from "./OpenAiDialect.ts"

// Options

/** Options of a server that speaks this wire. */
export interface Options extends Endpoint.VendorOptions, OpenAiDialect.Dialect {
  /** Shown in responses, errors and events; unique within a list of providers. */
  readonly name: string
  /** The address before `/chat/completions`, mostly with `/v1` at its end. */
  readonly baseUrl: string
}

/** What a vendor class of this wire is made of. */
export interface Vendor<Id extends string> extends OpenAiDialect.Dialect {
  /** The name of its providers unless they are given another. */
  readonly name: Id
  /** The address before `/chat/completions` unless another is given. */
  readonly baseUrl: string
  /** The environment variable that holds the key. Absent: no key is needed, as for a local server. */
  readonly apiKey?: string | undefined
  /** Headers that the vendor wants with every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A provider's own options, and where it embeds if not at its base address. */
interface Own extends Omit<Options, keyof OpenAiDialect.Dialect> {
  readonly embeddingBaseUrl?: string | undefined
}

// Make

/**
 * A provider on a server of one's own. Without `apiKey` no key is sent. Fails with a `ConfigError` that names the
 * option, its value and what is allowed.
 */
export const make = (options: Options): ReturnType<VendorTag.Make<Options>> =>
  build(options, { ...options, apiKey: undefined, headers: undefined }, options.baseUrl)

/** A class to extend, one per vendor: `class Groq extends OpenAiCompatible.Service<Groq>()({ name, baseUrl, apiKey }) {}`. */
export const Service =
  <Self>() =>
  <const Id extends string>(vendor: Vendor<Id>): VendorTag.VendorTag<Self, Id, Endpoint.VendorOptions> =>
    VendorTag.define<Self>()(vendor.name, (options) => makeFor(vendor, options))

/** A vendor's provider. The key is read from the vendor's variable unless it is given. Fails as `make` does. */
export const makeFor = (
  vendor: Vendor<string>,
  options: Endpoint.VendorOptions & Pick<Own, "embeddingBaseUrl">
): ReturnType<VendorTag.Make<Endpoint.VendorOptions>> =>
  build(
    { ...options, name: options.name ?? vendor.name, baseUrl: options.baseUrl ?? vendor.baseUrl },
    vendor,
    options.baseUrl ?? vendor.name
  )

const build = Effect.fnUntraced(function* (options: Own, vendor: Vendor<string>, pricedAs: string) {
  const { name, model, limits, timeout } = options
  const endpoint = yield* endpointOf(options, vendor, "/chat/completions")
  yield* OpenAiDialect.check(vendor, name)
  const client = yield* HttpClient.HttpClient
  const post = Exchange.make(client, endpoint)
  const open = Exchange.open(client, endpoint)
  const capabilities = OpenAiDialect.capabilitiesOf(vendor, options.capabilities)
  const target = { ...options, dialect: vendor }
  const wireOf = ({ changes }: OpenAiRequest.Written) => ({
    ...(vendor.opaque === undefined
      ? OpenAiStream.wire
      : OpenAiOpaque.gathering(OpenAiStream.wire, name, vendor.opaque)),
    changes
  })

  const writing = (request: ChatRequest, isStream: boolean) =>
    Writing.of(name, () => OpenAiRequest.make(request, target, isStream))
  const complete = (request: ChatRequest) =>
    Effect.flatMap(writing(request, false), (written) =>
      Effect.flatMap(post(written.body), (reply) =>
        Either.map(Answer.withChanges(wireOf(written).answer(reply), written.changes), (answer) =>
          OpenAiAnswerTool.answer(answer, written.answerTool)
        )
      )
    )
  const stream = (request: ChatRequest) =>
    Effect.flatMap(writing(request, true), (written) =>
      OpenAiAnswerTool.parts(EventStream.open(wireOf(written), open(written.body)), written.answerTool)
    )
  return Provider.make({
    name,
    model,
    vendor: pricedAs,
    limits,
    timeout,
    capabilities,
    complete,
    stream,
    ...(yield* embedding(client, options, vendor))
  })
})

const endpointOf = (options: Own, vendor: Vendor<string>, path: string) =>
  Endpoint.resolve({
    ...options,
    path,
    variable: vendor.apiKey,
    wireHeaders: vendor.headers,
    usageIn: OpenAiAnswer.usageIn,
    keyHeader: vendor.keyHeader === "api-key" ? { header: "api-key", prefix: "" } : undefined
  })

type Embedding = Pick<Provider.Provider, "embed" | "embeddingSpace" | "maxEmbeddingInputs">

const embedding = (
  client: HttpClient.HttpClient,
  options: Own,
  vendor: Vendor<string>
): Effect.Effect<Embedding, ConfigError.ConfigError> => {
  const { embeddings: dialect = {} } = vendor
  if (dialect === false) return Effect.succeed({})
  const model = options.embeddingModel ?? options.model
  const own = { ...options, baseUrl: options.embeddingBaseUrl ?? options.baseUrl }
  return Effect.map(endpointOf(own, vendor, dialect.path ?? "/embeddings"), (endpoint) => {
    const post = Exchange.make(client, endpoint)
    return {
      embed: (batch) => {
        const { body, changes } = OpenAiEmbeddings.make(batch, model, dialect)
        return Effect.flatMap(post(body), (reply) => OpenAiEmbeddings.read(reply, changes))
      },
      embeddingSpace: options.embeddingSpace ?? `${vendor.name}/${model}`,
      maxEmbeddingInputs: dialect.maxInputs
    }
  })
}
