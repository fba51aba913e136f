/** Talks to a fault server as clients do: `fetch` for answers, `node:http` for connections, `node:net` for packets. */
import { connect } from "node:net"
import type { FaultServer, FaultWireName } from "llmfuse/testing"

/** A request for an answer. */
export interface Ask {
  readonly model?: string
  readonly wire?: FaultWireName
  readonly stream?: boolean
  readonly signal?: AbortSignal
  readonly headers?: Record<string, string>
}

/** What came of it. */
export interface Got {
  readonly status: number
  readonly headers: Headers
  /** What came of the body, even if it broke off. */
  readonly body: string
  /** How reading the body failed. */
  readonly error: unknown
  /** Milliseconds from the request to the headers, to the first text, to the end. */
  readonly headersMillis: number
  readonly textMillis: number
  readonly endMillis: number
}

const paths = { "openai-chat": "/chat/completions", "anthropic-messages": "/messages" } as const

/** Sends a request; for a stream it asks for usage too. */
export const post = (server: FaultServer, ask: Ask = {}): Promise<Response> => {
  const { model = "m", wire = "openai-chat", stream = true, signal, headers = {} } = ask
  const options = wire === "openai-chat" && stream ? { stream_options: { include_usage: true } } : {}
  return fetch(server.url + paths[wire], {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, stream, ...options, messages: [{ role: "user", content: "hi" }] }),
    ...(signal === undefined ? {} : { signal })
  })
}

/** Sends a request and reads what comes until it ends or breaks. Rejects if no headers come. */
export const ask = async (server: FaultServer, request: Ask = {}): Promise<Got> => {
  const start = performance.now()
  const response = await post(server, request)
  const headersMillis = performance.now() - start
  let body = ""
  let error: unknown
  let textMillis = Number.NaN
  try {
    for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      body += text
      if (Number.isNaN(textMillis) && /"content":"\w|text_delta/.test(body)) textMillis = performance.now() - start
    }
  } catch (reason) {
    error = reason
  }
  const { status, headers } = response
  return { status, headers, body, error, headersMillis, textMillis, endMillis: performance.now() - start }
}

/** The data of the events of a stream, parsed where it is JSON. */
export const eventsOf = (body: string): Array<unknown> =>
  body
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => parse(line.slice("data: ".length)))

const parse = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch {
    return data
  }
}

/** The text of a stream's events, on either wire. */
export const textOf = (body: string): string =>
  eventsOf(body)
    // biome-ignore lint/suspicious/noExplicitAny: events are whatever the server sent
    .map((event: any) => event?.choices?.[0]?.delta?.content ?? event?.delta?.text ?? "")
    .join("")

/** The first words of a text. */
export const firstWords = (text: string, count: number): string => text.split(" ").slice(0, count).join(" ")

/** Sends a request over a bare socket and collects the packets until the server closes. */
export const packetsOf = (server: FaultServer, model: string): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ model, stream: true })
    const packets: Array<string> = []
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => {
      socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n`)
      socket.write(`content-length: ${body.length}\r\n\r\n${body}`)
    })
    socket.on("data", (packet) => packets.push(packet.toString("latin1")))
    socket.on("error", reject)
    socket.on("close", () => resolve(packets))
  })
