/** Gemini by its own wire. */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import * as Answer from "./Answer.ts"
import * as Endpoint from "./Endpoint.ts"
import * as EventStream from "./EventStream.ts"
import * as Exchange from "./Exchange.ts"
import * as GeminiAnswer from "./GeminiAnswer.ts"
import * as GeminiEmbedding from "./GeminiEmbedding.ts"
import * as GeminiRequest from "./GeminiRequest.ts"
import * as GeminiStream from "./GeminiStream.ts"
import * as Provider from "./Provider.ts"
import * as VendorTag from "./VendorTag.ts"
import * as Writing from "./Writing.ts"

// Make

const make = Effect.fnUntraced(function* (options: Endpoint.VendorOptions) {
  const { model, limits, timeout, capabilities, embeddingModel = model } = options
  const name = options.name ?? "gemini"
  const endpoint = yield* Endpoint.resolve({
    ...options,
    name,
    baseUrl: options.baseUrl ?? "https://generativelanguage.googleapis.com/v1beta",
    path: "/",
    variable: "GEMINI_API_KEY",
    keyHeader: { header: "x-goog-api-key", prefix: "" },
    usageIn: GeminiAnswer.usageIn
  })
  const client = yield* HttpClient.HttpClient
  const at = (of: string, method: string) => ({ ...endpoint, url: address(endpoint.url, of, method) })
  const post = Exchange.make(client, at(model, "generateContent"))
  const open = Exchange.open(client, at(model, "streamGenerateContent"))
  const embedOne = Exchange.make(client, at(embeddingModel, "embedContent"))
  const embedAll = Exchange.make(client, at(embeddingModel, "batchEmbedContents"))
  const writing = (request: ChatRequest) =>
    Writing.of(name, () => Either.right(GeminiRequest.write(request, { ...options, name })))
  return Provider.make({
    name,
    model,
    vendor: options.baseUrl ?? "gemini-native",
    limits,
    timeout,
    capabilities,
    complete: (request) =>
      Effect.flatMap(writing(request), ({ body, changes, names }) =>
        Effect.flatMap(post(body), (reply) => Answer.withChanges(GeminiAnswer.read(reply, names), changes))
      ),
    stream: (request) =>
      Effect.flatMap(writing(request), ({ body, changes, names }) =>
        EventStream.open(GeminiStream.wireOf({ provider: name, names }, changes), open(body))
      ),
    embed: (batch) => {
      const embed = batch.input.length === 1 ? embedOne : embedAll
      const body = GeminiEmbedding.write(batch, pathOf(embeddingModel))
      return Effect.flatMap(embed(body), (reply) => GeminiEmbedding.read(reply, embeddingModel))
    },
    embeddingSpace: options.embeddingSpace ?? `gemini/${embeddingModel}`,
    maxEmbeddingInputs: GeminiEmbedding.maxInputs
  })
})

/** Google's Gemini by its own wire. The key is read from `GEMINI_API_KEY` unless it is given. */
export class GeminiNative extends VendorTag.define<GeminiNative>()("gemini-native", make) {}

// Address

/** Where a model is; one that is named with its path, such as `tunedModels/mine`, is left there. */
const pathOf = (model: string): string => (model.includes("/") ? model : `models/${model}`)

/** The address of a method; what the base has in its query stays. */
const address = (base: string, model: string, method: string): string => {
  const url = new URL(base)
  url.pathname += `${pathOf(model).split("/").map(encodeURIComponent).join("/")}:${method}`
  if (method === "streamGenerateContent") url.searchParams.set("alt", "sse")
  return url.href
}
