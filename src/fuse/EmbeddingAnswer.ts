/** Vectors as a job for a provider. */
import { Effect } from "effect"
import * as Capabilities from "../model/Capabilities.ts"
import type { EmbeddingBatch, EmbeddingResponse, ProviderEmbeddings } from "../model/Embedding.ts"
import { InvalidRequestError, InvalidResponseError, inOwnWords, type ProviderError } from "../model/LlmError.ts"
import * as Pricing from "../model/Pricing.ts"
import type { Usage } from "../model/Usage.ts"
import type { Provider } from "../provider/Provider.ts"
import { usageOf } from "./AnswerCheck.ts"
import * as Attempt from "./Attempt.ts"
import * as AttemptEnd from "./AttemptEnd.ts"
import * as Call from "./Call.ts"
import * as CallEnd from "./CallEnd.ts"
import type { Job } from "./Stages.ts"
import * as Story from "./Story.ts"

/** The space of a provider's vectors. */
export const spaceOf = ({ name, model, embeddingSpace }: Provider): string => embeddingSpace ?? `${name}/${model ?? ""}`

/** The job to embed one batch, in one space. */
export const make = (batch: EmbeddingBatch, space: string): Job<EmbeddingResponse> => ({
  obstacle: (provider) => {
    const what =
      provider.embed === undefined
        ? "cannot embed"
        : spaceOf(provider) === space
          ? undefined
          : `its vectors are of another space (${spaceOf(provider)}, not ${space})`
    const { name } = provider
    return what === undefined
      ? undefined
      : inOwnWords(new InvalidRequestError({ provider: name, reason: "capability", message: `${name}: ${what}` }))
  },
  hasToolResults: () => false,
  expected: () => Pricing.estimateUsage(charactersOf(batch), 0),
  tokens: () => Math.ceil(charactersOf(batch) / Capabilities.charactersPerToken),
  mayRetry: () => true,
  send: (stages, call, begun, time) => {
    const { provider } = stages
    const { name } = provider
    const failed = (failure: ProviderError) =>
      AttemptEnd.failed(stages, call, begun, CallEnd.ownError(call, name, failure))
    const embedding = provider.embed?.(batch) ?? Effect.succeed({ embeddings: [] })
    return Effect.matchEffect(Attempt.withinTime(stages, embedding, call.clock, time), {
      onFailure: failed,
      onSuccess: (handedOver) => {
        const usage = usageOf(handedOver)
        const answer = handedOver.usage === usage ? handedOver : { ...handedOver, usage }
        const problem = problemOf(answer, batch)
        if (problem !== undefined) {
          return failed(new InvalidResponseError({ provider: name, message: `${name}: ${problem}`, usage }))
        }
        if (!Story.wins(begun)) return Effect.interrupt
        const nowMillis = Call.nowOf(call)
        AttemptEnd.succeeded(stages, call, begun, answer, nowMillis)
        return Effect.succeed(respond(call, provider, withLength(answer, batch), space, nowMillis))
      }
    })
  }
})

const charactersOf = ({ input }: EmbeddingBatch): number => input.reduce((sum, text) => sum + text.length, 0)

const problemOf = ({ embeddings }: ProviderEmbeddings, { input }: EmbeddingBatch): string | undefined =>
  !Array.isArray(embeddings) || embeddings.length !== input.length
    ? `${Array.isArray(embeddings) ? embeddings.length : "no"} vectors for ${input.length} texts`
    : embeddings.some((vector) => !Array.isArray(vector) || vector.length === 0 || !vector.every(Number.isFinite))
      ? "a vector that is empty or holds what is no number"
      : undefined

/** The answer, with a word on vectors that are not as long as they were to be. */
const withLength = (answer: ProviderEmbeddings, { dimensions }: EmbeddingBatch): ProviderEmbeddings => {
  const other = answer.embeddings.find(({ length }) => length !== dimensions)
  if (dimensions === undefined || other === undefined) return answer
  const change = `dimensions is ${other.length} instead of ${dimensions}: the model has no other vectors.`
  return { ...answer, changes: [...(answer.changes ?? []), change] }
}

const respond = (
  call: Call.Call,
  { name, model }: Provider,
  answer: ProviderEmbeddings,
  embeddingSpace: string,
  nowMillis: number
): EmbeddingResponse => ({
  ...answer,
  ...costOf(call),
  provider: name,
  model: answer.model ?? model ?? "",
  embeddingSpace,
  latency: Call.whole(nowMillis - call.startMillis),
  attempts: call.attempts
})

const costOf = (call: Call.Call) => {
  const cost = Story.costOf(call)
  return cost === undefined ? {} : { cost }
}

/** The batches of a request that every provider can take. */
export const batchesOf = (batch: EmbeddingBatch, providers: ReadonlyArray<Provider>): ReadonlyArray<EmbeddingBatch> => {
  const size = Math.min(batch.input.length, ...providers.map((it) => it.maxEmbeddingInputs ?? Number.POSITIVE_INFINITY))
  return Array.from({ length: Math.ceil(batch.input.length / size) }, (_, index) => ({
    ...batch,
    input: batch.input.slice(index * size, (index + 1) * size)
  }))
}

/** The responses to batches, as one. */
export const joined = (responses: ReadonlyArray<EmbeddingResponse>): EmbeddingResponse => {
  const last = responses.at(-1) as EmbeddingResponse
  if (responses.length === 1) return last
  const { usage: _, ...rest } = last
  const usage = sumOf(responses)
  const changes = [...new Set(responses.flatMap((it) => it.changes ?? []))]
  return {
    ...rest,
    embeddings: responses.flatMap((it) => it.embeddings),
    ...(usage === undefined ? {} : { usage }),
    ...(changes.length === 0 ? {} : { changes })
  }
}

/** What batches used together. What one of them does not tell is not known of all: never a part for the whole. */
const sumOf = (responses: ReadonlyArray<EmbeddingResponse>): Usage | undefined => {
  const usages = responses.flatMap((it) => usageOf(it) ?? [])
  return usages.length < responses.length ? undefined : usages.reduce(plus)
}

const plus = (one: Usage, other: Usage): Usage => {
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens
  }
  for (const part of parts) {
    const [a, b] = [one[part], other[part]]
    if (a !== undefined && b !== undefined) sum[part] = a + b
  }
  return sum
}

const parts = ["cachedInputTokens", "cacheWriteInputTokens", "cacheWrite1hInputTokens", "reasoningTokens"] as const
