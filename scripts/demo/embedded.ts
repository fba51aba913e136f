/** Providers on this machine that speak OpenAI's chat completions over real HTTP, with canned answers. */
import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"

/** What a provider sends back. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

/** How a provider behaves: its reply to a request. */
export type Behaviour = () => Reply

/** Embedded providers that are running. Disposing of them stops the server and cuts what is open. */
export interface EmbeddedProviders extends AsyncDisposable {
  /** The address to give a client for one of them. */
  readonly baseUrl: (name: string) => string
  /** Changes how one of them behaves from now on. */
  readonly change: (name: string, behaviour: Behaviour) => void
}

/** Starts a provider for each name, on a free port of the loopback interface. */
export const startEmbedded = async (initially: Readonly<Record<string, Behaviour>>): Promise<EmbeddedProviders> => {
  const behaviours = new Map(Object.entries(initially))
  const server = createServer(async (request, response) => {
    request.resume()
    await sleep(40)
    const reply = (behaviours.get(nameIn(request)) ?? unknownPath)()
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
    response.end(JSON.stringify(reply.body))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: (name) => `http://127.0.0.1:${port}/${name}/v1`,
    change: (name, behaviour) => behaviours.set(name, behaviour),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close")
      server.close()
      server.closeAllConnections()
      await closed
    }
  }
}

/** Answers, always with the same text. */
export const answering =
  (text: string): Behaviour =>
  () => ({
    status: 200,
    body: {
      id: "chatcmpl-embedded",
      object: "chat.completion",
      created: Math.floor(Date.now() / 1000),
      model: "canned",
      choices: [{ index: 0, message: { role: "assistant", content: text, refusal: null }, finish_reason: "stop" }],
      usage: { prompt_tokens: 12, completion_tokens: 24, total_tokens: 36 }
    }
  })

/** Has an outage, in the words of one that happens. */
export const overloaded: Behaviour = () => ({
  status: 503,
  body: {
    error: {
      message: "The server is currently overloaded, please retry later.",
      type: "service_unavailable_error",
      param: null,
      code: "server_is_overloaded"
    }
  }
})

/** Limits the rate of one request and says how long to wait; from then on it behaves as told. */
export const limitingOnce = (waitSeconds: number, afterwards: Behaviour): Behaviour => {
  let isFirst = true
  return () => {
    if (!isFirst) return afterwards()
    isFirst = false
    return {
      status: 429,
      headers: { "retry-after": String(waitSeconds) },
      body: {
        error: {
          message: `Rate limit reached. Please try again in ${waitSeconds}s.`,
          type: "requests",
          param: null,
          code: "rate_limit_exceeded"
        }
      }
    }
  }
}

const unknownPath: Behaviour = () => ({ status: 404, body: { error: { message: "Unknown path", type: "not_found" } } })

/** The name of the provider in a path such as `/alpha/v1/chat/completions`. */
const nameIn = ({ method, url }: IncomingMessage): string =>
  (method === "POST" && url?.match(/^\/([^/]+)\/v1\/chat\/completions$/)?.[1]) || ""
