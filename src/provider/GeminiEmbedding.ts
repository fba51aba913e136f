/** Gemini's embedContent and batchEmbedContents. */
import { Either } from "effect"
import type { EmbeddingBatch, ProviderEmbeddings } from "../model/Embedding.ts"
import { InvalidResponseError, type ProviderError } from "../model/LlmError.ts"
import * as Json from "./Json.ts"
import * as Reply from "./Reply.ts"

/** How many texts one request takes. */
export const maxInputs = 100

/** The body for one text, or for several; `model` is a path such as `models/gemini-embedding-001`. */
export const write = ({ input, dimensions, taskType, extra }: EmbeddingBatch, model: string): object => {
  const requests = input.map((text) => ({
    model,
    content: { parts: [{ text }] },
    taskType,
    outputDimensionality: dimensions,
    ...extra
  }))
  const [only, ...others] = requests
  return others.length === 0 && only !== undefined ? only : { requests }
}

/** The vectors that a body holds, in the order of the texts. Not every model tells its usage. */
export const read = (reply: Reply.Reply, model: string): Either.Either<ProviderEmbeddings, ProviderError> => {
  const { json, requestId } = reply
  const one = Json.at(json, "embedding")
  const all = one === undefined ? Json.at(json, "embeddings") : [one]
  if (!Array.isArray(all))
    return Either.left(new InvalidResponseError(Reply.fieldsOf(reply, "a body without embeddings")))
  const inputTokens = Json.count(Json.at(json, "usageMetadata", "promptTokenCount"))
  return Either.right({
    embeddings: all.map((it) => Json.list(Json.at(it, "values")) as ReadonlyArray<number>),
    model,
    ...(inputTokens === undefined ? {} : { usage: { inputTokens, outputTokens: 0 } }),
    ...(requestId === undefined ? {} : { requestId })
  })
}
