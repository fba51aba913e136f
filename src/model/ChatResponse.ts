/** What comes back: a provider's answer, and the response that tells how it was come by. */
import type { Duration } from "effect"
import type { Attempt } from "./LlmError.ts"
import type { OpaqueReasoning } from "./OpaqueReasoning.ts"
import type { RateLimits } from "./RateLimits.ts"
import type { Usage } from "./Usage.ts"

/** Why the model stopped. `unknown`: the provider did not say, or said a word that nobody knows. */
export type FinishReason = "stop" | "length" | "tool-calls" | "content-filter" | "unknown"

/** A call of a tool that the model asks for. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  /** The parsed arguments; absent where the model wrote invalid JSON. */
  readonly arguments?: unknown
  /** The text that the model wrote; present only where it is not valid JSON. */
  readonly rawArguments?: string | undefined
}

/** What a provider answers. Only `text` is needed; a plain string means the same. */
export interface ProviderAnswer {
  readonly text: string
  /** The model that answered, as the provider names it. */
  readonly model?: string | undefined
  readonly finishReason?: FinishReason | undefined
  readonly usage?: Usage | undefined
  readonly toolCalls?: ReadonlyArray<ToolCall> | undefined
  readonly reasoning?: string | undefined
  /** What the model said instead of an answer when it refused. */
  readonly refusal?: string | undefined
  /** The provider's id of the exchange, for its support. */
  readonly requestId?: string | undefined
  /** What the vendor wants back with this answer in the next request; goes into the `AssistantMessage` as it is. */
  readonly opaque?: OpaqueReasoning | undefined
  /** What the provider says is left of its limits, where it says so. */
  readonly rateLimits?: RateLimits | undefined
  /** What of the request had to be left out or changed for this provider, one sentence each. */
  readonly changes?: ReadonlyArray<string> | undefined
}

/** The answer to a call, who gave it, and the whole story of how. */
export interface ChatResponse extends ProviderAnswer {
  /** The name of the provider that answered. */
  readonly provider: string
  /** The model that answered; the empty string where the provider did not say. */
  readonly model: string
  readonly finishReason: FinishReason
  readonly toolCalls: ReadonlyArray<ToolCall>
  /** From the call to the answer, with all waits and failed attempts. */
  readonly latency: Duration.Duration
  /** Every attempt of the call, in order; the last is the one that answered. */
  readonly attempts: ReadonlyArray<Attempt>
  /** What all attempts of the call cost, in US dollars, as far as their prices are known; absent where none is. */
  readonly cost?: number | undefined
  /** Whether the answer comes from an earlier call, or from one that somebody else had under way. */
  readonly cached: boolean
  /** Set on a cached answer that is too old and was given because every provider failed. */
  readonly stale?: boolean | undefined
  /** Set where the fallback answered and no provider. */
  readonly fallback?: boolean | undefined
}
