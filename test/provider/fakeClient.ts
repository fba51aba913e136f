/** An HttpClient that answers from a list and keeps what it was sent. */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Effect, Layer } from "effect"

export interface Sent {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any
}

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | ReadableStream<Uint8Array> | undefined
}

const bodyOf = (request: HttpClientRequest.HttpClientRequest): unknown =>
  request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : undefined

/** A layer with a client that gives every request the same answer, and the list of what was sent. */
export const answering = (answer: Answer) => {
  const sent: Array<Sent> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      sent.push({ url: request.url, headers: { ...request.headers }, body: bodyOf(request) })
      const { status = 200, headers = {}, body } = answer
      const isBodyless = body === undefined || body === "" || status === 204
      return HttpClientResponse.fromWeb(request, new Response(isBodyless ? null : body, { status, headers }))
    })
  )
  return { sent, client, layer: Layer.succeed(HttpClient.HttpClient, client) }
}

/** A chat completion with a text. */
export const completion = (text = "Hi.") =>
  JSON.stringify({ model: "m-1", choices: [{ message: { role: "assistant", content: text }, finish_reason: "stop" }] })
