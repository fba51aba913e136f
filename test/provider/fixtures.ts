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
  readonly body: string | ReadonlyArray<string>
  readonly expect: Expectation
}

export interface Expectation {
  readonly outcome: "text" | "tool_calls" | "refusal" | "empty" | "error"
  readonly text?: string
  readonly reasoning?: string
  readonly toolCalls?: ReadonlyArray<unknown>
  readonly finishReason?: string
  readonly errorKind?: string
  readonly retryable?: boolean
  readonly retryAfterMillis?: number
  readonly usage?: Readonly<Record<string, number>> | null
}

const folder = new URL("../fixtures/", import.meta.url)

/** Every fixture that is no stream. */
export const fixtures: ReadonlyArray<Fixture> = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .sort()
  .map((file): Fixture => JSON.parse(readFileSync(new URL(file, folder), "utf8")))
  .filter((fixture) => fixture.status >= 400 || fixture.request.stream !== true)

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
  "openai-reasoning-ate-the-budget": { outcome: "text", why: "the token limit is no error: the empty text came" }
}

/** The tag of the error that a fixture stands for; `undefined` if it is an answer. */
export const tagOf = ({ name, expect }: Fixture): string | undefined => {
  const difference = differences[name]
  const outcome = difference?.outcome ?? expect.outcome
  if (difference?.tag !== undefined) return difference.tag
  if (outcome === "refusal") return "ContentPolicyError"
  if (outcome === "empty") return "EmptyResponseError"
  return outcome === "error" ? tags[expect.errorKind ?? ""] : undefined
}

/** The finish reason in our words. */
export const finishOf = (expect: Expectation): string =>
  ({ tool_calls: "tool-calls", content_filter: "content-filter" })[expect.finishReason ?? ""] ??
  expect.finishReason ??
  "unknown"
