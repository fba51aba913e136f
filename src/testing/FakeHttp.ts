/** An HTTP client without a network, for tests of adapters: answers from a script and records what was sent. */
import * as HttpClient from "@effect/platform/HttpClient"
import { RequestError } from "@effect/platform/HttpClientError"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { type Duration, Effect, Layer } from "effect"

/** An answer of the fake. */
export interface FakeResponse {
  /** Default: 200. */
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A string is sent as it is, anything else as JSON. Default: nothing. */
  readonly body?: unknown
  /** How long it takes, by the clock of the program. Default: no time. */
  readonly latency?: Duration.DurationInput | undefined
}

/** What the fake does with a request: answer, or (`"connection-error"`) not be reached at all. */
export type FakeReply = FakeResponse | "connection-error"

/** A request as it was sent. */
export interface FakeRequest {
  readonly method: string
  readonly url: string
  /** Names in lower case. A key stands here as it is sent. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed where it is JSON, else the text. */
  readonly body: unknown
}

/** A fake HTTP client. */
export interface FakeHttp {
  /** Provide it where an adapter wants an `HttpClient`. */
  readonly layer: Layer.Layer<HttpClient.HttpClient>
  /** The requests so far, oldest first. */
  readonly requests: ReadonlyArray<FakeRequest>
}

const parse = (text: string): unknown => {
  const parsed = Effect.runSyncExit(Effect.try((): unknown => JSON.parse(text)))
  return parsed._tag === "Success" ? parsed.value : text
}

const toWeb = ({ status = 200, headers = {}, body }: FakeResponse): Response => {
  const isText = typeof body === "string"
  const content = body === undefined ? null : isText ? body : JSON.stringify(body)
  return new Response(content, {
    status,
    headers: { ...(body === undefined || isText ? {} : { "content-type": "application/json" }), ...headers }
  })
}

/**
 * A fake client. The script is a reply for each request in order, or a function of the request. A request beyond the
 * script is a defect, so that a test notices it.
 */
export const make = (script: ReadonlyArray<FakeReply> | ((request: FakeRequest) => FakeReply)): FakeHttp => {
  const requests: Array<FakeRequest> = []
  const next = (request: FakeRequest): FakeReply | undefined =>
    typeof script === "function" ? script(request) : script[requests.length - 1]
  const client = HttpClient.make((request, url) =>
    Effect.suspend(() => {
      const text = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      const sent = { method: request.method, url: url.toString(), headers: { ...request.headers }, body: parse(text) }
      requests.push(sent)
      const reply = next(sent)
      if (reply === undefined)
        return Effect.dieMessage(`FakeHttp: no reply in the script for request ${requests.length}`)
      if (reply === "connection-error") {
        return Effect.fail(new RequestError({ request, reason: "Transport", description: "connection refused" }))
      }
      const response = Effect.sync(() => HttpClientResponse.fromWeb(request, toWeb(reply)))
      return reply.latency === undefined ? response : Effect.delay(response, reply.latency)
    })
  )
  return { layer: Layer.succeed(HttpClient.HttpClient, client), requests }
}
