/** OpenAI's embeddings, which most vendors of its wire have too. */
import { Either, Encoding } from "effect"
import type { EmbeddingBatch, ProviderEmbeddings } from "../model/Embedding.ts"
import { InvalidResponseError, type ProviderError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Json from "./Json.ts"
import type { EmbeddingDialect } from "./OpenAiDialect.ts"
import * as Reply from "./Reply.ts"

/** A request, written. */
export interface Written {
  readonly body: object
  /** What was left out or changed, one sentence each. */
  readonly changes: ReadonlyArray<string>
}

/** Writes a request. */
export const make = (batch: EmbeddingBatch, model: string, dialect: EmbeddingDialect): Written => {
  const { dimensionsField = "dimensions", encodingFormat = true } = dialect
  const changes = [
    ...(batch.taskType === undefined ? [] : ["taskType was left out: the vendor does not take it."]),
    ...(batch.dimensions === undefined || dimensionsField !== false
      ? []
      : ["dimensions was left out: the vendor cannot be told how long the vectors are to be."])
  ]
  const body = {
    model,
    input: batch.input,
    ...(dimensionsField === false ? {} : { [dimensionsField]: batch.dimensions }),
    encoding_format: encodingFormat ? "float" : undefined,
    ...batch.extra
  }
  return { body, changes }
}

/** The vectors that a body holds, in the order of the texts; or the error that it is instead. */
export const read = (
  reply: Reply.Reply,
  changes: ReadonlyArray<string>
): Either.Either<ProviderEmbeddings, ProviderError> => {
  const data = Json.at(reply.json, "data")
  if (!Array.isArray(data)) return Either.map(Answer.missing(reply, "data"), () => ({ embeddings: [] }))
  const { requestId } = reply
  const model = Json.text(Json.at(reply.json, "model"))
  const usage = usageOf(Json.at(reply.json, "usage"))
  return Either.map(
    Either.all(inOrder(data).map((item) => vectorOf(reply, Json.at(item, "embedding")))),
    (embeddings) => ({
      embeddings,
      ...(model === undefined ? {} : { model }),
      ...(usage === undefined ? {} : { usage }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(changes.length === 0 ? {} : { changes })
    })
  )
}

/** By `index` where that says the place of each; some servers number all of them 0, and mean the order that they send. */
const inOrder = (data: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const places = new Map(data.map((item) => [Json.at(item, "index"), item] as const))
  const ordered = data.map((_, index) => places.get(index))
  return ordered.includes(undefined) ? data : ordered
}

const vectorOf = (reply: Reply.Reply, value: unknown): Either.Either<ReadonlyArray<number>, ProviderError> => {
  const vector = typeof value === "string" ? floatsOf(value) : value
  return Array.isArray(vector) && vector.length > 0 && vector.every(Number.isFinite)
    ? Either.right(vector)
    : Either.left(new InvalidResponseError(Reply.fieldsOf(reply, "an embedding that is no list of numbers")))
}

/** Base64 of floats of four bytes, lowest byte first. */
const floatsOf = (text: string): ReadonlyArray<number> | undefined => {
  const bytes = Either.getOrUndefined(Encoding.decodeBase64(text))
  if (bytes === undefined || bytes.length % 4 !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: bytes.length / 4 }, (_, index) => view.getFloat32(index * 4, true))
}

/** Nothing is written but vectors. */
const usageOf = (usage: unknown): Usage | undefined => {
  const inputTokens = Json.count(Json.at(usage, "prompt_tokens"))
  return inputTokens === undefined ? undefined : { inputTokens, outputTokens: 0 }
}
