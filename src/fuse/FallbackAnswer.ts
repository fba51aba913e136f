/** The answer that stands in when nobody has answered. */
import { Effect, Predicate } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse, ProviderAnswer } from "../model/ChatResponse.ts"
import type { LlmFuseError } from "../model/LlmError.ts"
import * as Call from "./Call.ts"
import * as Story from "./Story.ts"

/** What a fallback gives: a text, or an answer with all that one can tell. */
export type FallbackValue = string | (ProviderAnswer & { readonly provider?: string | undefined })

/** A text, or a function that makes an answer of the request and the error. */
export type Fallback =
  | string
  | ((
      request: ChatRequest,
      error: LlmFuseError
    ) => FallbackValue | PromiseLike<FallbackValue> | Effect.Effect<FallbackValue, unknown>)

/** Names it where it does not name itself. */
export const fallbackName = "fallback"

/** Runs the fallback, whatever it is made of. What it throws before it returns is a defect. */
export const run = (
  fallback: Fallback,
  request: ChatRequest,
  error: LlmFuseError
): Effect.Effect<FallbackValue, unknown> =>
  Effect.suspend(() => {
    const value = typeof fallback === "string" ? fallback : fallback(request, error)
    return Effect.isEffect(value) ? value : Predicate.isPromiseLike(value) ? settled(value) : Effect.succeed(value)
  })

/** What a promise comes to; a rejection is the failure as it is. */
const settled = (value: PromiseLike<FallbackValue>): Effect.Effect<FallbackValue, unknown> =>
  Effect.async((resume) => {
    value.then(
      (answer) => resume(Effect.succeed(answer)),
      (reason) => resume(Effect.fail(reason))
    )
  })

/** The response that such a value is. Its cost is that of the call's own attempts, whatever it says of itself. */
export const respond = (call: Call.Call, value: FallbackValue): ChatResponse => {
  const { cost: _, ...answer }: Exclude<FallbackValue, string> & { readonly cost?: unknown } =
    typeof value === "string" ? { text: value } : value
  const cost = Story.costOf(call)
  return {
    ...answer,
    provider: answer.provider ?? fallbackName,
    model: answer.model ?? "",
    finishReason: answer.finishReason ?? "stop",
    toolCalls: answer.toolCalls ?? [],
    latency: Call.whole(Call.nowOf(call) - call.startMillis),
    attempts: call.attempts,
    cached: false,
    fallback: true,
    ...(cost === undefined ? {} : { cost })
  }
}

/**
 * Whether a fallback may stand in for an error: not for a mistake in the call itself, and not once the caller holds part
 * of an answer that another would double.
 */
export const appliesTo = (call: Call.Call, error: LlmFuseError): boolean =>
  error._tag !== "UnknownProviderError" && !(call.stream?.isCommitted ?? false)
