/** A provider on the loopback interface that misbehaves as told, for tests over real sockets. Needs Node. */
/// <reference lib="esnext.disposable" preserve="true" />
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { Effect, Either, Fiber, FiberId, type Scope } from "effect"
import type { FaultBehaviour } from "./FaultBehaviour.ts"
import { receive } from "./FaultHttp.ts"
import { FaultLog, type LogEntry } from "./FaultLog.ts"
import { openAiWire } from "./FaultOpenAi.ts"
import { play } from "./FaultPlayer.ts"
import { behaviourFor, type FaultRequest, type FaultScript, phases } from "./FaultScript.ts"
import { sixtyWords } from "./FaultText.ts"

/**
 * A server that speaks OpenAI's chat completions (`POST .../chat/completions`) and Anthropic's Messages
 * (`POST .../messages`), streams included, and does with each request what its script says. Time is real, whatever the
 * clock of the program.
 *
 * @example
 * await using server = await FaultServer.start({
 *   "busy-model": [{ status: 429, headers: { "retry-after": "2" } }, {}],
 *   "cut-model": { cut: { how: "close", after: { words: 40 } } }
 * })
 * const provider = OpenAiCompatible.make({ name: "busy", baseUrl: server.url, model: "busy-model" })
 */
export class FaultServer {
  /** The text of an answer unless its behaviour has another: sixty words. */
  static readonly sixtyWords = sixtyWords

  /**
   * Behaviour by time, for a place in a script: `phases([{ status: 503 }, { from: "60 seconds" }])` is down for a minute
   * after the start of the server.
   */
  static readonly phases = phases

  readonly #script: FaultScript
  readonly #log = new FaultLog()
  readonly #sockets = new Set<Socket>()
  readonly #fibers = new Set<Fiber.RuntimeFiber<void>>()
  readonly #server: Server
  #url = ""
  #accepted = 0
  #stopping: Promise<void> | undefined

  private constructor(script: FaultScript) {
    this.#script = script
    this.#server = createServer((request, response) => this.#handle(request, response))
    // A server that closes idle connections would cut the client's next request by chance.
    Object.assign(this.#server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 })
    this.#server.on("connection", (socket) => {
      this.#accepted++
      this.#sockets.add(socket)
      socket.once("close", () => this.#sockets.delete(socket))
    })
  }

  /** Starts a server on a free port of 127.0.0.1. Default of `script`: every model is healthy. */
  static start(script: FaultScript = () => ({})): Promise<FaultServer> {
    const server = new FaultServer(script)
    return new Promise((resolve, reject) => {
      server.#server.once("error", reject)
      server.#server.listen(0, "127.0.0.1", () => {
        server.#url = `http://127.0.0.1:${(server.#server.address() as AddressInfo).port}/v1`
        resolve(server)
      })
    })
  }

  /** The same for Effect programs: the server stops when the scope closes. */
  static make(script?: FaultScript): Effect.Effect<FaultServer, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.promise(() => FaultServer.start(script)),
      (server) => Effect.promise(() => server.stop())
    )
  }

  /** The base URL for a client, such as `http://127.0.0.1:41234/v1`. */
  get url(): string {
    return this.#url
  }

  /** The requests so far, oldest first. An entry tells how it ended as soon as it has. */
  get requests(): ReadonlyArray<FaultRequest> {
    return this.#log.requests
  }

  /** The connections that are open now, and how many have been accepted so far. */
  get connections(): { readonly open: number; readonly accepted: number } {
    return { open: this.#sockets.size, accepted: this.#accepted }
  }

  /** Resolves when no request is under way: each in `requests` tells how it ended. */
  idle(): Promise<void> {
    return this.#log.idle()
  }

  /** Stops: cuts what is open, ends what is waiting, and holds nothing. */
  stop(): Promise<void> {
    this.#stopping ??= Promise.all([
      new Promise((resolve) => this.#server.close(resolve)),
      ...Array.from(this.#sockets, (socket) => new Promise((resolve) => socket.once("close", resolve).destroy()))
    ]).then(() => Effect.runPromise(Effect.asVoid(Fiber.interruptAll(this.#fibers))))
    return this.#stopping
  }

  /** Stops the server at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #handle(message: IncomingMessage, response: ServerResponse): void {
    let entry: LogEntry | undefined
    const playing = Effect.gen(this, function* () {
      const incoming = yield* receive(message)
      if (incoming === undefined) return refuse(response)
      entry = this.#log.begin(incoming.request)
      const { model, stream } = entry.request
      const exchange = { ...incoming, model, stream, id: `fault_${this.requests.length}` }
      yield* playOrSay(this.#behaviourFor(entry.request), exchange, response, entry)
    })
    const fiber = Effect.runFork(playing)
    this.#fibers.add(fiber)
    response.on("error", () => undefined)
    response.once("close", () => {
      entry?.end(this.#stopping === undefined ? "aborted" : "stopped")
      fiber.unsafeInterruptAsFork(FiberId.none)
      this.#fibers.delete(fiber)
    })
  }

  #behaviourFor(request: FaultRequest): FaultBehaviour {
    return Either.getOrElse(
      Either.try(() => behaviourFor(this.#script, request)),
      (error) => unplayable("the script failed", error)
    )
  }
}

const unplayable = (what: string, error: unknown): FaultBehaviour => ({
  status: 500,
  error: { message: `FaultServer: ${what}: ${error}` }
})

/** A behaviour that cannot be played (a header that is none, a text that throws) is told, or at least ends. */
const playOrSay: typeof play = (behaviour, exchange, response, entry) =>
  Effect.catchAllDefect(play(behaviour, exchange, response, entry), (error) => {
    if (!response.headersSent) return play(unplayable("it cannot be played", error), exchange, response, entry)
    return Effect.sync(() => {
      entry.end("cut")
      response.destroy()
    })
  })

const refuse = (response: ServerResponse): void => {
  response.writeHead(404, { "content-type": "application/json" })
  response.end(JSON.stringify(openAiWire.error(404, { message: "Unknown path.", type: "not_found_error" })))
}
