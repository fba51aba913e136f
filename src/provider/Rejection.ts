/** What a rejected promise, or a connection that broke, is in our words. */
import { Either } from "effect"
import {
  ConnectionError,
  CustomProviderError,
  isLlmFuseError,
  type LlmFuseError,
  type ProviderError,
  TimeoutError
} from "../model/LlmError.ts"
import * as HttpFailure from "./HttpFailure.ts"
import * as Json from "./Json.ts"
import { byShape, oneLine, type Redact } from "./Redaction.ts"

/** What is kept of an error of which more could hold a request with its headers. */
export interface Trace {
  readonly name: string
  readonly message: string
  readonly code?: string
}

/**
 * The error that a rejection describes: one of ours as it is; one with an HTTP status as the response that it reports
 * (openai, `@anthropic-ai/sdk`, `@google/genai`, ai and axios are understood); a timeout, a network failure; else
 * `CustomProviderError`, retryable unless it is a programming error such as `TypeError`. Without `nowMillis`, a
 * `retry-after` that is a date counts only beside a `date` header.
 */
export const toProviderError = (provider: string, reason: unknown, nowMillis = Number.NaN): ProviderError => {
  if (isLlmFuseError(reason) && isProviders(reason)) return reason
  const last = property(reason, "lastError") // of the ai SDK, when its own retries are used up
  if (last !== undefined && last !== reason && statusOf(last) !== undefined) {
    return toProviderError(provider, last, nowMillis)
  }
  const status = statusOf(reason)
  if (status !== undefined) return fromStatus(provider, reason, status, nowMillis)
  return fromTransport(provider, reason, byShape) ?? custom(provider, reason)
}

/** The failure of a connection that an error of `fetch`, undici, Node or an SDK is; `undefined` if it is none. */
export const fromTransport = (
  provider: string,
  reason: unknown,
  redact: Redact
): ConnectionError | TimeoutError | undefined => {
  const telling = tellingOf(reason)
  if (telling === undefined) return undefined
  const cause = trace(telling, redact)
  const why = wordsOf(cause)
  return isTimeout(telling)
    ? new TimeoutError({ provider, phase: "upstream", message: `${provider}: timed out: ${why}`, cause })
    : new ConnectionError({ provider, message: `${provider}: connection failed: ${why}`, cause })
}

/** Why a connection broke that had begun to answer: the trace of what says so, and its words. */
export const breakOf = (reason: unknown, redact: Redact): { readonly trace: Trace; readonly words: string } => {
  const cause = trace(tellingOf(reason) ?? reason, redact)
  return { trace: cause, words: wordsOf(cause) || "it does not say why" }
}

/** An error cut down to what can be shown. */
export const trace = (reason: unknown, redact: Redact): Trace => {
  const code = codeOf(reason)
  return {
    name: Json.text(property(reason, "name")) ?? "Error",
    message: oneLine(redact(Json.text(property(reason, "message")) ?? "")),
    ...(code === undefined ? {} : { code })
  }
}

/** Which of the causes to show: the outermost says no more than "fetch failed"; the one with a code says why. */
const tellingOf = (reason: unknown): unknown => {
  const chain = causesOf(reason).filter((it) => isTimeout(it) || isNetwork(it))
  return chain.find((it) => codeOf(it) !== undefined) ?? chain[0]
}

const wordsOf = ({ code, message }: Trace): string =>
  [code, message].filter((text) => text !== undefined && text !== "").join(": ")

/** What a fuse of its own fails with beside its providers' errors is no provider's error. */
const isProviders = (error: LlmFuseError): error is ProviderError => !ofCalls.includes(error._tag)

const ofCalls: ReadonlyArray<string> = [
  "ThrottledError",
  "CircuitOpenError",
  "DeadlineExceededError",
  "FallbackError",
  "UnknownProviderError",
  "AllProvidersFailedError"
]

const fromStatus = (provider: string, reason: unknown, status: number, nowMillis: number): ProviderError => {
  const response = property(reason, "response")
  const headers = property(response, "headers") ?? property(reason, "headers") ?? property(reason, "responseHeaders")
  const body =
    property(response, "data") ??
    property(reason, "responseBody") ??
    property(reason, "error") ??
    property(reason, "body") ??
    property(reason, "message")
  return HttpFailure.fromResponse({
    provider,
    status,
    headers: recordOf(headers),
    body: (typeof body === "string" ? body : Either.getOrElse(Json.write(enveloped(body)), () => "")).slice(0, 16_384),
    nowMillis,
    redact: byShape
  })
}

/** The openai SDK keeps only what stood within `error`. */
const enveloped = (body: unknown): unknown =>
  Json.isRecord(body) && !("error" in body) && typeof body.message === "string" ? { error: body } : body

/** Headers of `fetch`, axios and node-fetch can be iterated; others are a record. */
const recordOf = (headers: unknown): Record<string, string> => {
  const isIterable = typeof headers === "object" && headers !== null && Symbol.iterator in headers
  const entries = isIterable
    ? [...(headers as Iterable<unknown>)]
    : Json.isRecord(headers)
      ? Object.entries(headers)
      : []
  return Object.fromEntries(
    entries.flatMap((entry) => {
      const [name, value] = Json.list(entry)
      const isText = typeof value === "string" || typeof value === "number"
      return typeof name === "string" && isText ? [[name.toLowerCase(), String(value)]] : []
    })
  )
}

const custom = (provider: string, reason: unknown): CustomProviderError => {
  const words = Json.text(reason) ?? Json.text(property(reason, "message"))
  return new CustomProviderError({
    provider,
    retryable: isLlmFuseError(reason) ? reason.isRetryable : !bugs.some((Bug) => reason instanceof Bug),
    message: `${provider}: ${words === undefined ? "failed" : oneLine(byShape(words))}`,
    cause: isLlmFuseError(reason) || isPlain(reason) ? reason : trace(reason, byShape)
  })
}

const bugs = [TypeError, ReferenceError, SyntaxError, RangeError]

/** An error with nothing hung on it that could hold a request, and no secret in its words. */
const isPlain = (reason: unknown): boolean =>
  reason instanceof Error &&
  reason.cause === undefined &&
  Object.values(reason).every((value) => typeof value !== "object" && typeof value !== "function") &&
  [reason.message, reason.stack, ...Object.values(reason)].every((text) => byShape(String(text)) === String(text))

const statusOf = (reason: unknown): number | undefined =>
  [property(reason, "status"), property(reason, "statusCode"), property(property(reason, "response"), "status")]
    .map(Json.number)
    .find((status) => status !== undefined && status >= 200 && status < 600)

const codeOf = (reason: unknown): string | undefined => Json.text(property(reason, "code"))

const classOf = (reason: unknown): string | undefined => Json.text(property(property(reason, "constructor"), "name"))

/** The error, its causes and what an AggregateError gathers, outermost first. */
const causesOf = (reason: unknown): ReadonlyArray<unknown> => {
  const chain: Array<unknown> = []
  for (let it = reason; typeof it === "object" && it !== null && !chain.includes(it) && chain.length < 8; ) {
    chain.push(it)
    it = property(it, "cause") ?? Json.list(property(it, "errors"))[0]
  }
  return chain
}

const timeoutCodes: ReadonlyArray<string | undefined> = [
  "ETIMEDOUT",
  "ESOCKETTIMEDOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT"
]

const isTimeout = (reason: unknown): boolean =>
  timeoutCodes.includes(codeOf(reason)) ||
  property(reason, "name") === "TimeoutError" ||
  classOf(reason) === "APIConnectionTimeoutError" ||
  property(reason, "_tag") === "TimeoutException" ||
  (codeOf(reason) === "ECONNABORTED" && /^timeout\b/.test(String(property(reason, "message"))))

const networkCode =
  /^(?:ECONN\w+|ENOTFOUND|EAI_\w+|EPIPE|EPROTO|E(?:HOST|NET)(?:UNREACH|DOWN)|EADDRNOTAVAIL|UND_ERR_(?!INVALID)\w+|HPE_\w+|ERR_(?:TLS|SSL|HTTP2|NETWORK)\w*|ERR_STREAM_PREMATURE_CLOSE|CERT_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+|UNABLE_TO_\w+)$/

const isNetwork = (reason: unknown): boolean =>
  networkCode.test(codeOf(reason) ?? "") ||
  classOf(reason) === "APIConnectionError" ||
  (reason instanceof TypeError &&
    /^(?:fetch failed|failed to fetch|load failed|terminated|networkerror\b)/i.test(reason.message))

/** A property of whatever was thrown: even to look at it may throw. */
const property = (value: unknown, key: string): unknown =>
  typeof value === "object" || typeof value === "function"
    ? Either.getOrUndefined(Either.try((): unknown => (value as Record<string, unknown> | null)?.[key]))
    : undefined
