/** One request to a vendor, and the one response to it. */
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import type { HttpClientError } from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { Clock, Effect, Either, Redacted, type Scope } from "effect"
import { ConnectionError, InvalidRequestError, type ProviderError } from "../model/LlmError.ts"
import * as Json from "./Json.ts"
import * as Redaction from "./Redaction.ts"
import * as Rejection from "./Rejection.ts"
import * as Reply from "./Reply.ts"

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
  /** How much is read of the body of a success, in bytes. Default: 64 MiB. */
  readonly maxResponseBytes?: number | undefined
  /** What a body of the vendor's wire says of usage. Default: nothing. */
  readonly usageIn?: Reply.UsageIn | undefined
}

/** A success of which only the head has come. */
export interface Opened {
  readonly head: Reply.Head
  readonly response: HttpClientResponse
}

/** The version that providers are told in `user-agent`; the package's. */
export const version = "0.1.0"

/**
 * A function that posts a body as JSON and reads what comes back. It fails with the error that a failed response is,
 * `EmptyResponseError` for an empty body, `InvalidResponseError` for one that is no JSON, and `ConnectionError` where
 * there was no response. The client's redirects and status filters do no harm; it makes no span for the request.
 */
export const make = (
  client: HttpClient.HttpClient,
  endpoint: Endpoint
): ((body: unknown) => Effect.Effect<Reply.Reply, ProviderError>) => {
  const post = poster(client, endpoint, "application/json")
  return (body) => Effect.flatMap(post(body), ({ head, response }) => Reply.read(head, response))
}

/**
 * A function that posts a body as JSON and yields the response when its headers are there, its body unread. It fails as
 * that of `make` does. The request is aborted when the scope closes.
 */
export const open = (
  client: HttpClient.HttpClient,
  endpoint: Endpoint
): ((body: unknown) => Effect.Effect<Opened, ProviderError, Scope.Scope>) =>
  poster(HttpClient.withScope(client), endpoint, "text/event-stream, application/json")

const poster = <R>(client: HttpClient.HttpClient.With<HttpClientError, R>, endpoint: Endpoint, accept: string) => {
  const quiet = HttpClient.withTracerDisabledWhen(client, () => true)
  const redact = redactOf(endpoint)
  const { name: provider, maxResponseBytes: maxBytes = Reply.maxSuccessBytes, usageIn } = endpoint
  const opened = (response: HttpClientResponse): Effect.Effect<Opened, ProviderError> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
      const head = Reply.headOf({ provider, redact, nowMillis, maxBytes, usageIn }, response)
      return Reply.isSuccess(head) ? Effect.succeed({ head, response }) : Reply.failure(head, response)
    })
  return (body: unknown): Effect.Effect<Opened, ProviderError, R> =>
    Either.match(Json.write(body), {
      onLeft: () => Effect.fail(requestError(endpoint, "it cannot be written as JSON")),
      onRight: (json) =>
        quiet.execute(request(endpoint, json, accept)).pipe(
          Effect.catchAll((error) => withoutSuccess(endpoint, error)),
          Effect.flatMap(opened)
        )
    })
}

const request = (endpoint: Endpoint, json: string, accept: string): HttpClientRequest.HttpClientRequest => {
  const { key } = endpoint
  return HttpClientRequest.post(endpoint.url, {
    headers: {
      accept,
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

/** Keys are unwrapped only where a text is about to be shown. */
const redactOf =
  (endpoint: Endpoint): Redaction.Redact =>
  (text) =>
    Redaction.make([
      ...(endpoint.key === undefined ? [] : [Redacted.value(endpoint.key.value)]),
      // Shorter values are flags and names, which would take letters out of every message.
      ...Object.values(endpoint.ownHeaders ?? {}).filter((value) => value.length >= 8)
    ])(text)

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
