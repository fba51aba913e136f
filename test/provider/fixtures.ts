/** The recorded shapes of `test/fixtures`: what a vendor sends, and what it means. */
import { readdirSync, readFileSync } from "node:fs"
import type { ProviderError } from "../../src/model/LlmError.ts"

export interface Fixture {
  readonly name: string
  readonly provider: string
  readonly wire: "openai-chat" | "anthropic-messages" | "gemini" | "bedrock-converse"
  readonly status: number
  readonly request: { readonly url: string; readonly stream?: boolean }
  readonly headers: Readonly<Record<string, string>>
  /** The body, or the packets that it comes in. */
  readonly body: string | ReadonlyArray<string>
  /** What the packets are written in; absent: as text. */
  readonly encoding?: "base64"
  /** How the connection ends if it does not end as it should. */
  readonly connection?: "close" | "reset"
  readonly expect: Expectation
}

export interface Expectation {
  readonly outcome: "text" | "tool_calls" | "refusal" | "empty" | "error"
  readonly text?: string
  /** The pieces of the text. */
  readonly deltas?: ReadonlyArray<string>
  /** The text that came before the error. */
  readonly partialText?: string
  readonly reasoning?: string
  readonly toolCalls?: ReadonlyArray<unknown>
  readonly finishReason?: string
  readonly errorKind?: string
  readonly retryable?: boolean
  readonly retryAfterMillis?: number
  readonly usage?: Readonly<Record<string, number>> | null
}

const folder = new URL("../fixtures/", import.meta.url)

const all: ReadonlyArray<Fixture> = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .sort()
  .map((file): Fixture => JSON.parse(readFileSync(new URL(file, folder), "utf8")))

const isStream = (fixture: Fixture): boolean => fixture.status < 400 && fixture.request.stream === true

/** Every fixture that is no stream. */
export const fixtures: ReadonlyArray<Fixture> = all.filter((fixture) => !isStream(fixture))

/** Every fixture that is a stream. */
export const streams: ReadonlyArray<Fixture> = all.filter(isStream)

/** The packets that a body comes in. */
export const packetsOf = ({ body, encoding }: Fixture): ReadonlyArray<Uint8Array> =>
  (typeof body === "string" ? [body] : body).map((packet) => new Uint8Array(Buffer.from(packet, encoding ?? "utf8")))

/** The body in one piece. */
export const bodyOf = (fixture: Fixture): string =>
  typeof fixture.body === "string" ? fixture.body : fixture.body.join("")

const tags: Readonly<Record<string, ProviderError["_tag"]>> = {
  RateLimit: "RateLimitError",
  Quota: "QuotaExhaustedError",
  Overloaded: "OverloadedError",
  ServerError: "ServerError",
  Timeout: "TimeoutError",
  Auth: "AuthenticationError",
  NotFound: "ModelNotFoundError",
  BadRequest: "InvalidRequestError",
  ContextLength: "ContextLengthError",
  ContentFiltered: "ContentPolicyError",
  InvalidResponse: "InvalidResponseError"
}

/**
 * Where a fixture's reading is not ours, and why. The failure table decides; the fixtures name kinds that are coarser,
 * or policies that are options here.
 */
export const differences: Readonly<Record<string, Partial<Expectation> & { tag?: string; why: string }>> = {
  "openai-200-empty-body": { tag: "EmptyResponseError", why: "a 200 with nothing in it has an error of its own" },
  "openai-reasoning-ate-the-budget": { outcome: "text", why: "the token limit is no error: the empty text came" },
  "gemini-max-tokens-all-thoughts": { outcome: "text", why: "the token limit is no error: the empty text came" },
  "groq-stream-x-groq-error": { tag: "OverloadedError", why: "a text that is an error is read as its code" },
  "lmstudio-stream-error-event": { tag: "InvalidResponseError", why: "an error with neither code nor type" },
  "openrouter-stream-error-with-usage-then-done": {
    tag: "InvalidRequestError",
    why: "an error event counts, whatever came before it"
  }
}

/** The tag of the error that a fixture stands for; `undefined` if it is an answer. */
export const tagOf = ({ name, expect, connection }: Fixture): string | undefined => {
  const difference = differences[name]
  const outcome = difference?.outcome ?? expect.outcome
  if (difference?.tag !== undefined) return difference.tag
  if (outcome === "refusal") return "ContentPolicyError"
  if (outcome === "empty") return "EmptyResponseError"
  if (outcome === "error" && connection !== undefined && expect.errorKind === "InvalidResponse") {
    return "StreamInterruptedError"
  }
  return outcome === "error" ? tags[expect.errorKind ?? ""] : undefined
}

/** The finish reason in our words. */
export const finishOf = (expect: Expectation): string =>
  ({ tool_calls: "tool-calls", content_filter: "content-filter" })[expect.finishReason ?? ""] ??
  expect.finishReason ??
  "unknown"

const anthropicStart = { outputTokens: 1, cachedInputTokens: 0, cacheWriteInputTokens: 0 }

/** What vendors said of usage in streams that failed, where the fixture leaves it out, or counts otherwise than we do. */
const told: Readonly<Record<string, object>> = {
  "anthropic-stream-api-error-midway": { inputTokens: 25, ...anthropicStart },
  "anthropic-stream-overloaded-midway": { inputTokens: 25, ...anthropicStart },
  "anthropic-stream-rate-limit-midway": { inputTokens: 25, ...anthropicStart },
  "anthropic-stream-truncated": { inputTokens: 25, ...anthropicStart },
  "deepseek-stream-insufficient-system-resource": { inputTokens: 9, outputTokens: 2, cachedInputTokens: 0 },
  "gemini-stream-safety-midway": { inputTokens: 8, outputTokens: 2 },
  // More reasoning than completion counts as reasoning beside it.
  "openrouter-stream-error-with-usage-then-done": {
    inputTokens: 43,
    outputTokens: 21,
    cachedInputTokens: 0,
    reasoningTokens: 11
  }
}

/** The usage in our words. */
export const usageOf = ({ name, expect }: Fixture): object | undefined => {
  if (told[name] !== undefined) return told[name]
  if (expect.usage === null || expect.usage === undefined) return undefined
  const { totalTokens: _total, ...usage } = expect.usage
  return usage
}
