/** The one place that says what a failed response is. */
import { Duration } from "effect"
import {
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  InvalidRequestError,
  InvalidResponseError,
  ModelNotFoundError,
  OverloadedError,
  type ProviderError,
  QuotaExhaustedError,
  RateLimitError,
  ServerError,
  TimeoutError
} from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import * as ErrorBody from "./ErrorBody.ts"
import * as FailureRules from "./FailureRules.ts"
import { oneLine, type Redact } from "./Redaction.ts"
import * as RetryHint from "./RetryHint.ts"

/** Around an error: who sent it, and with what. */
export interface Context {
  /** The name of the provider. */
  readonly provider: string
  /** The response's headers, names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The time to compare dates with where the response has no `date` header. */
  readonly nowMillis: number
  /** Takes keys out of the vendor's words. */
  readonly redact: Redact
  /** What the vendor says that it used. Default: it does not say. */
  readonly usage?: Usage | undefined
}

/** A response that is no success. */
export interface FailedResponse extends Context {
  /** The HTTP status. */
  readonly status: number
  /** The body as text, capped by who read it. */
  readonly body: string
}

/** An error found where an answer should be: within a response of status 200. */
export interface InBandError extends Context {
  /** The parsed body or event that holds the error. */
  readonly error: unknown
  /** Whether some of the answer came before it. Default: no. */
  readonly isBegun?: boolean | undefined
}

/** The error that a response with a status other than 2xx is. */
export const fromResponse = (response: FailedResponse): ProviderError => {
  const { status } = response
  if (status >= 200 && status < 300) return inBand({ ...response, error: ErrorBody.parse(response.body).json })
  const body = ErrorBody.parse(response.body)
  const cause = status >= 300 && status < 400 ? "a redirect, which is not followed; check baseUrl" : body.message
  return errorOf(response, body, status, `HTTP ${status}`, cause)
}

/**
 * The error that an error object within a 200 is: by the status that it names or its codes stand for, else
 * `InvalidResponseError`. The response's own hints are not read, since it claims to be a success.
 */
export const inBand = (found: InBandError): ProviderError => {
  const body = ErrorBody.fromJson(found.error)
  const status = body.status ?? FailureRules.statusOf(body.codes)
  const { date } = found.headers
  return errorOf(
    { ...found, headers: { ...requestIdsOf(found.headers), date } },
    body,
    status,
    body.status === undefined ? "HTTP 200 with an error" : `HTTP 200 with error ${body.status}`,
    body.message
  )
}

/** The vendor's id of an exchange, from the header in which it sends it; for its support. */
export const requestIdOf = (headers: Context["headers"], redact: Redact): string | undefined =>
  shownId(
    requestIdHeaders.map((name) => headers[name]).find((id) => id !== undefined && id !== ""),
    redact
  )

/** An id as people get to see it: on one line, of at most 200 characters, without keys. */
export const shownId = (id: string | undefined, redact: Redact): string | undefined =>
  id === undefined ? undefined : oneLine(redact(id), 200)

const requestIdHeaders = [
  "x-request-id",
  "request-id",
  "apim-request-id",
  "mistral-correlation-id",
  "inference-id",
  "x-generation-id",
  "x-amzn-requestid"
]

const requestIdsOf = (headers: Context["headers"]): Context["headers"] =>
  Object.fromEntries(requestIdHeaders.map((name) => [name, headers[name]]))

/** Bedrock names the error in a header: `ThrottlingException:http://internal.amazon.com/coral/...`. */
const amazonCode = (headers: Context["headers"]): ReadonlyArray<string> => {
  const name = headers["x-amzn-errortype"]?.split(/[:#]/)[0]
  return name === undefined ? [] : [ErrorBody.normalize(name)]
}

const errorOf = (
  context: Context & Pick<InBandError, "isBegun">,
  body: ErrorBody.ErrorBody,
  status: number | undefined,
  head: string,
  words: string | undefined
): ProviderError => {
  const { provider, headers, nowMillis, redact, usage, isBegun } = context
  const message = body.message ?? ""
  const codes = [...amazonCode(headers), ...body.codes]
  const kind = FailureRules.decide({ status, codes, message, body: body.json, isBegun })
  const hint = RetryHint.read({ status, headers, body: body.json, message, nowMillis })
  const said = words === undefined ? "" : oneLine(redact(words))
  return make[kind]({
    provider,
    message: `${provider}: ${head}${said === "" ? "" : `: ${said}`}`,
    statusCode: status,
    requestId: requestIdOf(headers, redact) ?? shownId(body.requestId, redact),
    retryAfter: hint.retryAfterMillis === undefined ? undefined : Duration.millis(hint.retryAfterMillis),
    shouldRetry: hint.shouldRetry,
    usage
  })
}

type Fields = ConstructorParameters<typeof ServerError>[0]

const make: Readonly<Record<FailureRules.Kind, (fields: Fields) => ProviderError>> = {
  RateLimit: (fields) => new RateLimitError(fields),
  QuotaExhausted: (fields) => new QuotaExhaustedError(fields),
  Overloaded: (fields) => new OverloadedError(fields),
  Server: (fields) => new ServerError(fields),
  Timeout: (fields) => new TimeoutError({ ...fields, phase: "upstream" }),
  Authentication: (fields) => new AuthenticationError(fields),
  ModelNotFound: (fields) => new ModelNotFoundError(fields),
  InvalidRequest: (fields) => new InvalidRequestError(fields),
  ContextLength: (fields) => new ContextLengthError(fields),
  PromptBlocked: (fields) => new ContentPolicyError({ ...fields, stage: "prompt" }),
  ResponseBlocked: (fields) => new ContentPolicyError({ ...fields, stage: "response" }),
  InvalidResponse: (fields) => new InvalidResponseError(fields)
}
