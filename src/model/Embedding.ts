/** Texts as vectors. */
import { type Duration, Either } from "effect"
import { type Attempt, InvalidRequestError } from "./LlmError.ts"
import { show } from "./RequestCheck.ts"
import type { Usage } from "./Usage.ts"

/** What is to be embedded. */
export interface EmbeddingRequest {
  /** One text or several; none of them empty. */
  readonly input: string | ReadonlyArray<string>
  /** The length of the vectors, where the model can be told; a whole number from 1. Default: the model's. */
  readonly dimensions?: number | undefined
  /** What the vectors are for, in the vendor's words, where it wants to know. */
  readonly taskType?: string | undefined
  /** Fields added to the vendor's request as they are; they win over what LlmFuse would send. */
  readonly extra?: Readonly<Record<string, unknown>> | undefined
}

/** What a provider is asked to embed: always a list. */
export interface EmbeddingBatch extends EmbeddingRequest {
  readonly input: ReadonlyArray<string>
}

/** What a provider hands over. */
export interface ProviderEmbeddings {
  /** One vector for each text, in the order of the texts. */
  readonly embeddings: ReadonlyArray<ReadonlyArray<number>>
  /** The model that was used, as the provider names it. */
  readonly model?: string | undefined
  readonly usage?: Usage | undefined
  /** The provider's id of the exchange, for its support. */
  readonly requestId?: string | undefined
  /** What of the request had to be left out or changed for this provider, one sentence each. */
  readonly changes?: ReadonlyArray<string> | undefined
}

/** The vectors, who made them, and the whole story of how. */
export interface EmbeddingResponse extends ProviderEmbeddings {
  /** The name of the provider that answered; of several batches, the last one's. */
  readonly provider: string
  readonly model: string
  /** Vectors of the same space can be compared with each other; no others can. */
  readonly embeddingSpace: string
  /** From the call to the answer, with all waits and failed attempts. */
  readonly latency: Duration.Duration
  /** Every attempt of the call, in order. */
  readonly attempts: ReadonlyArray<Attempt>
  /** What they cost, in US dollars, as far as their prices are known; absent where none is. */
  readonly cost?: number | undefined
}

/** Looks at a request before anybody is asked. The left side names the value and what is allowed. */
export const normalize = (
  input: string | ReadonlyArray<string> | EmbeddingRequest
): Either.Either<EmbeddingBatch, InvalidRequestError> => {
  const request: EmbeddingRequest =
    typeof input === "string" || Array.isArray(input) ? { input } : (input as EmbeddingRequest)
  if (typeof request !== "object" || request === null) {
    return refuse(`the request is ${show(request)}; allowed: a text, an array of texts or { input, ... }`)
  }
  const texts = typeof request.input === "string" ? [request.input] : request.input
  if (!Array.isArray(texts) || texts.length === 0) {
    return refuse(`input is ${show(request.input)}; allowed: a text, or an array of at least one`)
  }
  const bad = texts.findIndex((text) => typeof text !== "string" || text === "")
  if (bad !== -1) return refuse(`input[${bad}] is ${show(texts[bad])}; allowed: a text that is not empty`)
  const { dimensions, taskType, extra } = request
  if (dimensions !== undefined && !(Number.isSafeInteger(dimensions) && dimensions > 0)) {
    return refuse(`dimensions is ${show(dimensions)}; allowed: a whole number from 1`)
  }
  if (taskType !== undefined && typeof taskType !== "string") {
    return refuse(`taskType is ${show(taskType)}; allowed: a text`)
  }
  if (extra !== undefined && (typeof extra !== "object" || extra === null || Array.isArray(extra))) {
    return refuse(`extra is ${show(extra)}; allowed: an object`)
  }
  return Either.right({ ...request, input: texts })
}

const refuse = (message: string) => Either.left(new InvalidRequestError({ provider: "llmfuse", message }))
