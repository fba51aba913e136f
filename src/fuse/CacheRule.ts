/** Which answers are kept, and what becomes of one that was. */
import { Duration, Either } from "effect"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { Attempt } from "../model/LlmError.ts"
import type { Codec } from "../pipeline/CacheStore.ts"
import * as Json from "../provider/Json.ts"
import * as Story from "./Story.ts"

/**
 * Whether an answer may be given again to who asks the same: it is complete (the model said that it was done, or which
 * tools to call, with arguments that can be read), and a provider's own. Never one that was cut off, filtered, refused
 * or ended for no known reason.
 */
export const isKept = (response: ChatResponse): boolean => {
  const { finishReason, text, toolCalls, refusal, cached, fallback } = response
  if (cached || (refusal !== undefined && refusal !== "")) return false
  if (fallback === true) return false
  if (toolCalls.some(({ rawArguments }) => rawArguments !== undefined)) return false
  return finishReason === "stop"
    ? text !== "" || toolCalls.length > 0
    : finishReason === "tool-calls" && toolCalls.length > 0
}

/** An answer that was kept, as it is served: nobody was asked for it, it cost nothing, and this is how long it took. */
export const servedFromCache = <Response extends ChatResponse>(
  response: Response,
  latency: Duration.Duration
): Response => {
  const served = { ...response, cached: true, attempts: [], latency }
  return response.cost === undefined ? served : { ...served, cost: 0 }
}

/** An answer that was kept and is out of date, instead of the error of a call: with the call's attempts and their cost. */
export const servedStale = <Response extends ChatResponse>(
  response: Response,
  latency: Duration.Duration,
  { attempts }: { readonly attempts: ReadonlyArray<Attempt> }
): Response => {
  const served = { ...servedFromCache(response, latency), attempts, stale: true }
  const cost = Story.costOf({ attempts })
  return cost === undefined ? served : { ...served, cost }
}

/** An answer as text, for a store. The story of its call (`attempts`, `latency`) is not kept. */
export const codec: Codec<ChatResponse> = {
  encode: ({ attempts: _, latency: __, ...kept }) => Json.write(kept),
  decode: (text) =>
    Either.flatMap(Json.parse(text), (value) =>
      isAnswer(value)
        ? Either.right({ ...value, attempts: [], latency: Duration.zero })
        : Either.left("not the text of an answer")
    )
}

const isAnswer = (value: unknown): value is Omit<ChatResponse, "attempts" | "latency"> =>
  Json.isRecord(value) &&
  ["text", "provider", "model", "finishReason"].every((name) => typeof value[name] === "string") &&
  Array.isArray(value.toolCalls) &&
  value.toolCalls.every(
    (call) => Json.isRecord(call) && typeof call.id === "string" && typeof call.name === "string"
  ) &&
  typeof value.cached === "boolean"
