/** The attributes of spans that quote nobody, in the names of OpenTelemetry's GenAI conventions where they exist. */
import { Duration } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse, FinishReason } from "../model/ChatResponse.ts"
import type { EmbeddingBatch } from "../model/Embedding.ts"
import type { Attempt } from "../model/LlmError.ts"
import type { ResponseFormat } from "../model/Tool.ts"
import type { Usage } from "../model/Usage.ts"

/** Attributes by name; what is not known is undefined. */
export type Attributes = Readonly<Record<string, unknown>>

/** What a call asks for. */
export type Asked = ChatRequest | EmbeddingBatch

/** The parameters of a request. */
export const ofRequest = (request: Asked): Attributes =>
  "messages" in request
    ? {
        "gen_ai.request.max_tokens": request.maxTokens,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.top_p": request.topP,
        "gen_ai.request.seed": request.seed,
        "gen_ai.request.reasoning.level": request.reasoning?.effort,
        "gen_ai.output.type": request.responseFormat && outputTypeOf(request.responseFormat)
      }
    : { "gen_ai.embeddings.dimension.count": request.dimensions }

/** The facts of an answer. */
export type Answered = Partial<Pick<ChatResponse, "model" | "requestId" | "finishReason">>

/** What an answer tells beside its text. */
export const ofResponse = ({ model, requestId, finishReason }: Answered): Attributes => ({
  "gen_ai.response.model": model === "" ? undefined : model,
  "gen_ai.response.id": requestId,
  "gen_ai.response.finish_reasons": finishReason && [finishReasonOf(finishReason)]
})

/** What was used. The names are those of the conventions' last release, 1.41. */
export const ofUsage = (usage: Usage | undefined): Attributes => ({
  "gen_ai.usage.input_tokens": usage?.inputTokens,
  "gen_ai.usage.output_tokens": usage?.outputTokens,
  "gen_ai.usage.cache_read.input_tokens": usage?.cachedInputTokens,
  "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWriteInputTokens,
  "gen_ai.usage.reasoning.output_tokens": usage?.reasoningTokens
})

/** What the story of a call tells of an attempt that has ended; one that failed may be billed too. */
export const ofAttempt = ({ outcome, usage, cost, estimated, timeToFirstToken }: Attempt): Attributes => ({
  ...ofUsage(usage),
  "gen_ai.response.time_to_first_chunk": timeToFirstToken && Duration.toSeconds(timeToFirstToken),
  "llmfuse.attempt.outcome": outcome,
  "llmfuse.attempt.estimated": estimated,
  "llmfuse.cost": cost
})

const finishReasons: Partial<Record<FinishReason, string>> = {
  "tool-calls": "tool_call",
  "content-filter": "content_filter"
}

/** Why the model stopped, in the word of the conventions. */
export const finishReasonOf = (reason: FinishReason): string => finishReasons[reason] ?? reason

const outputTypeOf = (format: ResponseFormat): string => (format === "text" ? "text" : "json")
