/** LlmFuse: keeps LLM calls answered when providers fail. */
export {
  type ClientCallOptions,
  ClientClosedError,
  type ClientOptions,
  type ClientProvider,
  ConfigurationError,
  FuseClient
} from "./FuseClient.ts"
export type { CacheOptions } from "./fuse/CacheOptions.ts"
export type { Recovery } from "./fuse/CallStream.ts"
export type { Fallback, FallbackValue } from "./fuse/FallbackAnswer.ts"
export type { CallOptions, Options, ProviderInput, RetryOptions } from "./fuse/FuseOptions.ts"
export type { LatencyHealth, ProviderHealth } from "./fuse/Health.ts"
export type { HedgeOptions, PercentileDelay } from "./fuse/HedgeRule.ts"
export type { ObjectResponse } from "./fuse/ObjectAnswer.ts"
export type { Timeouts } from "./fuse/Timeouts.ts"
export { LlmFuse, type ObjectOptions, type Service } from "./LlmFuse.ts"
export type { Capabilities } from "./model/Capabilities.ts"
export type {
  ChatEvent,
  Finished,
  ReasoningDelta,
  Restarted,
  Started,
  StreamEnd,
  StreamPart,
  TextDelta,
  ToolCallDelta,
  WholeToolCall
} from "./model/ChatEvent.ts"
export type { ChatRequest } from "./model/ChatRequest.ts"
export type { ChatResponse, FinishReason, ProviderAnswer, ToolCall } from "./model/ChatResponse.ts"
export type { EmbeddingBatch, EmbeddingRequest, EmbeddingResponse, ProviderEmbeddings } from "./model/Embedding.ts"
export * as FailoverPolicy from "./model/FailoverPolicy.ts"
export {
  AllProvidersFailedError,
  type Attempt,
  type AttemptOutcome,
  AuthenticationError,
  type CandidateError,
  CircuitOpenError,
  ConnectionError,
  ContentPolicyError,
  ContextLengthError,
  CostLimitError,
  CustomProviderError,
  DeadlineExceededError,
  EmptyResponseError,
  FallbackError,
  InvalidRequestError,
  InvalidResponseError,
  isLlmFuseError,
  type LlmFuseError,
  ModelNotFoundError,
  OverloadedError,
  type ProviderError,
  QuotaExhaustedError,
  RateLimitError,
  ServerError,
  StreamInterruptedError,
  ThrottledError,
  TimeoutError,
  UnknownProviderError
} from "./model/LlmError.ts"
export type {
  AssistantMessage,
  Content,
  FilePart,
  ImagePart,
  Message,
  Part,
  Source,
  SystemMessage,
  TextPart,
  ToolMessage,
  UserMessage
} from "./model/Message.ts"
export type { OpaqueReasoning } from "./model/OpaqueReasoning.ts"
export type { Price, Rates, Tier } from "./model/Price.ts"
export * as Pricing from "./model/Pricing.ts"
export type { RateLeft, RateLimits } from "./model/RateLimits.ts"
export type { JsonSchema, Reasoning, ResponseFormat, Shape, Tool, ToolChoice } from "./model/Tool.ts"
export type { Usage } from "./model/Usage.ts"
export { shared as builtInPrices } from "./observability/BuiltInPrices.ts"
export type { EventsDropped, ObservedEvent } from "./observability/EventHub.ts"
export type * from "./observability/FuseEvent.ts"
export * as Metrics from "./observability/Metrics.ts"
export type { MetricsOptions } from "./observability/MetricsOptions.ts"
export * as Prometheus from "./observability/Prometheus.ts"
export * as AdaptiveRate from "./pipeline/AdaptiveRate.ts"
export { attemptTimeout } from "./pipeline/AttemptTimeout.ts"
export * as Bulkhead from "./pipeline/Bulkhead.ts"
export * as Cache from "./pipeline/Cache.ts"
export { type CacheStore, CacheStoreError } from "./pipeline/CacheStore.ts"
export * as CircuitBreaker from "./pipeline/CircuitBreaker.ts"
export type { CircuitState } from "./pipeline/CircuitState.ts"
export * as Deadline from "./pipeline/Deadline.ts"
export { failover } from "./pipeline/Failover.ts"
export { fallback } from "./pipeline/Fallback.ts"
export * as Hedge from "./pipeline/Hedge.ts"
export * as Latency from "./pipeline/Latency.ts"
export * as Limiter from "./pipeline/Limiter.ts"
export { type Hooks, type Retrying, retry } from "./pipeline/Retry.ts"
export * as RetryBudget from "./pipeline/RetryBudget.ts"
export * as RetryPolicy from "./pipeline/RetryPolicy.ts"
export * as TokenBucket from "./pipeline/TokenBucket.ts"
export { Anthropic } from "./provider/Anthropic.ts"
export { GeminiNative } from "./provider/GeminiNative.ts"
export * as OpenAiCompatible from "./provider/OpenAiCompatible.ts"
export * as Provider from "./provider/Provider.ts"
export {
  AzureOpenAi,
  Cerebras,
  DeepSeek,
  Fireworks,
  Gemini,
  Groq,
  LlamaCpp,
  LmStudio,
  Mistral,
  Ollama,
  OpenAi,
  OpenRouter,
  Together,
  Vllm,
  Xai
} from "./provider/vendors.ts"
