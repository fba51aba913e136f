/** One request to a vendor, and the one response to it. */
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import type { HttpClientError } from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { Clock, Effect, Either, Redacted, Stream } from "effect"
import {
  ConnectionError,
  EmptyResponseError,
  InvalidRequestError,
  InvalidResponseError,
  type ProviderError
} from "../model/LlmError.ts"
import * as ErrorBody from "./ErrorBody.ts"
import * as HttpFailure from "./HttpFailure.ts"
import * as Json from "./Json.ts"
import * as Redaction from "./Redaction.ts"
import * as Rejection from "./Rejection.ts"

/** Whom to ask. */
export interface Endpoint {
  /** The name of the provider, for its errors. */
  readonly name: string
  /** The whole address. */
  readonly url: string
  /** The header that carries the key, what stands before the key in it, and the key. Absent: no key is sent. */
  readonly key?: { readonly header: string; readonly prefix: string; readonly value: Redacted.Redacted } | undefined
  /** What the vendor's wire asks for. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The user's own; they win over all others. */
  readonly ownHeaders?: Readonly<Record<string, string>> | undefined
}

/** A success: a body that is JSON and no error. */
export interface Reply extends HttpFailure.Context {
  /** The HTTP status, a 2xx. */
  readonly status: number
  readonly json: unknown
  /** The vendor's id of the exchange. */
  readonly requestId: string | undefined
}

/** The version that providers are told in `user-agent`; the package's. */
export const version = "0.1.0"

/** How much of a failed response is read, in bytes: 16 KiB. */
export const maxErrorBytes = 16_384

/**
 * A function that posts a body as JSON and reads what comes back. It fails with the error that a failed response is,
 * `EmptyResponseError` for an empty body, `InvalidResponseError` for one that is no JSON, and `ConnectionError` where
 * there was no response. The client's redirects and status filters do no harm; it makes no span for the request.
 */
export const make = (
  client: HttpClient.HttpClient,
  endpoint: Endpoint
): ((body: unknown) => Effect.Effect<Reply, ProviderError>) => {
  const quiet = HttpClient.withTracerDisabledWhen(client, () => true)
  return (body) =>
    Either.match(Json.write(body), {
      onLeft: () => Effect.fail(requestError(endpoint, "it cannot be written as JSON")),
      onRight: (json) =>
        quiet.execute(request(endpoint, json)).pipe(
          Effect.catchAll((error) => withoutSuccess(endpoint, error)),
          Effect.flatMap((response) => read(endpoint, response))
        )
    })
}

const request = (endpoint: Endpoint, json: string): HttpClientRequest.HttpClientRequest => {
  const { key } = endpoint
  return HttpClientRequest.post(endpoint.url, {
    headers: {
      accept: "application/json",
      "user-agent": `llmfuse/${version}`,
      ...endpoint.headers,
      ...(key === undefined ? {} : { [key.header]: `${key.prefix}${Redacted.value(key.value)}` }),
      ...lowerCase(endpoint.ownHeaders)
    },
    body: HttpBody.text(json, "application/json")
  })
}

const lowerCase = (headers: Endpoint["ownHeaders"]): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))

/** A client that filters statuses fails with the response: then it is read as if it had not. */
const withoutSuccess = (
  endpoint: Endpoint,
  error: HttpClientError
): Effect.Effect<HttpClientResponse, ProviderError> =>
  error._tag === "ResponseError" && error.reason === "StatusCode"
    ? Effect.succeed(error.response)
    : error._tag === "RequestError" && error.reason !== "Transport"
      ? Effect.fail(requestError(endpoint, "the client cannot send it"))
      : Effect.fail(brokenConnection(endpoint, error))

const read = (endpoint: Endpoint, response: HttpClientResponse): Effect.Effect<Reply, ProviderError> =>
  response.status >= 200 && response.status < 300
    ? Effect.matchEffect(response.text, {
        onFailure: (error) => Effect.fail(unreadable(endpoint, response, error)),
        onSuccess: (text) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => replyOf(contextOf(endpoint, response, now), response, text))
      })
    : Effect.flatMap(Effect.zip(capped(response), Clock.currentTimeMillis), ([body, now]) =>
        Effect.fail(HttpFailure.fromResponse({ ...contextOf(endpoint, response, now), status: response.status, body }))
      )

const contextOf = (endpoint: Endpoint, response: HttpClientResponse, nowMillis: number): HttpFailure.Context => ({
  provider: endpoint.name,
  headers: response.headers,
  nowMillis,
  redact: redactOf(endpoint)
})

/** Keys are unwrapped only where a text is about to be shown. */
const redactOf =
  (endpoint: Endpoint): Redaction.Redact =>
  (text) =>
    Redaction.make([
      ...(endpoint.key === undefined ? [] : [Redacted.value(endpoint.key.value)]),
      // Shorter values are flags and names, which would take letters out of every message.
      ...Object.values(endpoint.ownHeaders ?? {}).filter((value) => value.length >= 8)
    ])(text)

/**
 * The first 16 KiB of a failed response. Where the body breaks off or does not come within 5 seconds, the status and
 * what came decide: they say more than the break.
 */
const capped = (response: HttpClientResponse): Effect.Effect<string> =>
  Effect.suspend(() => {
    const bytes = new Uint8Array(maxErrorBytes)
    let size = 0
    const isFull = (chunk: Uint8Array): boolean => {
      const part = chunk.subarray(0, maxErrorBytes - size)
      bytes.set(part, size)
      size += part.length
      return size === maxErrorBytes
    }
    return response.stream.pipe(
      Stream.takeUntil(isFull),
      Stream.runDrain,
      Effect.timeout("5 seconds"),
      Effect.ignore,
      Effect.map(() => new TextDecoder().decode(bytes.subarray(0, size)))
    )
  })

const replyOf = (
  context: HttpFailure.Context,
  response: HttpClientResponse,
  text: string
): Either.Either<Reply, ProviderError> => {
  const { provider, headers, redact } = context
  const requestId = HttpFailure.requestIdOf(headers)
  const fields = { provider, statusCode: response.status, requestId: requestId && redact(requestId) }
  if (text.trim() === "") {
    return Either.left(
      new EmptyResponseError({ ...fields, message: `${provider}: HTTP ${response.status} with an empty body` })
    )
  }
  return Either.match(Json.parse(text), {
    onLeft: () => {
      const page = /^\s*</.test(text) ? `: ${Redaction.oneLine(redact(ErrorBody.parse(text).message ?? ""))}` : ""
      const message = `${provider}: HTTP ${response.status} with a body that is no JSON${page}`
      return Either.left(new InvalidResponseError({ ...fields, message }))
    },
    onRight: (json) =>
      holdsError(json)
        ? Either.left(HttpFailure.inBand({ ...context, error: json }))
        : Either.right({ ...context, status: response.status, json, requestId: fields.requestId })
  })
}

/** OpenRouter, xAI and Gemini report errors under status 200, as an object, a text, or an array with the object. */
const holdsError = (json: unknown): boolean => {
  const root = Array.isArray(json) ? json[0] : json
  const error = Json.at(root, "error")
  const isSet = Json.isRecord(error) ? Object.keys(error).length > 0 : Json.text(error) !== undefined
  return isSet || Json.at(root, "type") === "error" || Json.at(root, "object") === "error"
}

const requestError = (endpoint: Endpoint, why: string): InvalidRequestError =>
  new InvalidRequestError({ provider: endpoint.name, message: `${endpoint.name}: the request was not sent: ${why}` })

/** The client's error is left behind: it holds the request with its headers, and the address in its message. */
const brokenConnection = (endpoint: Endpoint, error: HttpClientError): ProviderError => {
  const provider = endpoint.name
  const redact = redactOf(endpoint)
  const known = Rejection.fromTransport(provider, error.cause, redact)
  if (known !== undefined) return known
  const cause = Rejection.trace(error.cause ?? { name: error._tag, message: error.description }, redact)
  return new ConnectionError({ provider, message: `${provider}: connection failed: ${cause.message}`, cause })
}

const unreadable = (endpoint: Endpoint, response: HttpClientResponse, error: HttpClientError): ProviderError => {
  const provider = endpoint.name
  const redact = redactOf(endpoint)
  const broken = Rejection.fromTransport(provider, error.cause, redact)
  if (broken !== undefined) return broken
  const message = `${provider}: HTTP ${response.status} with a body that cannot be read`
  const cause = Rejection.trace(error.cause, redact)
  return new InvalidResponseError({ provider, message, statusCode: response.status, cause })
}
