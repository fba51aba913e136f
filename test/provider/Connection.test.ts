import type { IncomingMessage, ServerResponse } from "node:http"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, type Layer, Scope, Stream } from "effect"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { served } from "./served.ts"
import { drained, event, only, opened, textsOf } from "./streaming.ts"

const text = (content: string) => event({ choices: [{ index: 0, delta: { content } }] })

const finish = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })

const done = event("[DONE]")

const begin = (response: ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" })

/** A server that answers once as told, its provider, and what becomes of its connections. */
const serving = Effect.fn(function* (answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const asked = yield* Deferred.make<void>()
  const closed = yield* Deferred.make<void>()
  const { url, server } = yield* served((request, response) => {
    response.on("close", () => Deferred.unsafeDone(closed, Effect.void))
    Deferred.unsafeDone(asked, Effect.void)
    answer(response, request)
  })
  let connections = 0
  server.on("connection", () => connections++)
  const provider = yield* OpenAiCompatible.make({ name: "p", model: "m", baseUrl: url })
  return { provider, asked: Deferred.await(asked), closed: Deferred.await(closed), connections: () => connections }
})

const soon = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.timeoutFail(effect, { duration: "5 seconds", onTimeout: () => "late" })

describe.each([
  ["fetch", FetchHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici],
  ["node", NodeHttpClient.layer]
] as const)("over %s", (name, layer: Layer.Layer<HttpClient.HttpClient>) => {
  const live = <E>(title: string, test: () => Effect.Effect<unknown, E, Scope.Scope | HttpClient.HttpClient>) =>
    it.live(title, () => test().pipe(Effect.scoped, Effect.provide(layer)))

  live("an answer is read", () =>
    Effect.gen(function* () {
      const { provider } = yield* serving((response) => {
        begin(response).write(text("a"))
        setTimeout(() => response.end(text("b") + finish + done), 20)
      })

      const result = yield* drained(provider)

      assert.deepStrictEqual(textsOf(result), ["a", "b"])
      assert.strictEqual(only(result, "End")[0]?.finishReason, "stop")
    })
  )

  live("the stream is there when the headers are", () =>
    Effect.gen(function* () {
      const { provider } = yield* serving((response) => begin(response).flushHeaders())

      assert.isDefined(yield* soon(opened(provider)))
    })
  )

  live("closing the scope closes the connection: while the headers are awaited", () =>
    Effect.gen(function* () {
      const { provider, asked, closed } = yield* serving(() => {})
      const fiber = yield* Effect.fork(drained(provider))
      yield* asked

      const exit = yield* soon(Fiber.interrupt(fiber))

      assert.isTrue(Exit.isInterrupted(exit))
      yield* soon(closed)
    })
  )

  live("closing the scope closes the connection: before the body is read", () =>
    Effect.gen(function* () {
      const { provider, closed } = yield* serving((response) => begin(response).write(text("a")))
      const scope = yield* Scope.make()
      assert.isDefined(yield* Scope.extend(opened(provider), scope))

      yield* soon(Scope.close(scope, Exit.void))

      yield* soon(closed)
    })
  )

  live("closing the scope closes the connection: within the body", () =>
    Effect.gen(function* () {
      const { provider, closed } = yield* serving((response) => begin(response).write(text("a")))
      const first = yield* Deferred.make<void>()
      const fiber = yield* opened(provider).pipe(
        Effect.flatMap(Stream.runForEach(() => Deferred.succeed(first, undefined))),
        Effect.scoped,
        Effect.fork
      )
      yield* Deferred.await(first)

      const exit = yield* soon(Fiber.interrupt(fiber))

      assert.isTrue(Exit.isInterrupted(exit))
      yield* soon(closed)
    })
  )

  live("closing the scope closes the connection: of a failed response", () =>
    Effect.gen(function* () {
      const { provider, closed } = yield* serving((response) => {
        response.writeHead(500)
        const write = () => {
          while (response.write("x".repeat(1000)));
          response.once("drain", write)
        }
        write()
      })

      const { error } = yield* soon(drained(provider))

      assert.strictEqual(error?._tag, "ServerError")
      yield* soon(closed)
    })
  )

  live("a reset within the body breaks the stream", () =>
    Effect.gen(function* () {
      const { provider } = yield* serving((response) => begin(response).write(text("a"), () => response.destroy()))

      const result = yield* drained(provider)

      assert.strictEqual(result.error?._tag, "StreamInterruptedError")
      assert.include(result.error?.message, "the connection broke: ")
      assert.property(result.error?.cause, "message")
      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )

  live("a reset after the finish reason does not", () =>
    Effect.gen(function* () {
      const { provider } = yield* serving((response) =>
        begin(response).write(text("a") + finish, () => response.destroy())
      )

      const result = yield* drained(provider)

      assert.strictEqual(result.error, undefined)
      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )

  live("a server that goes on after the terminator is not waited for, and left soon", () =>
    Effect.gen(function* () {
      const { provider, closed } = yield* serving((response) => begin(response).write(text("a") + finish + done))

      const result = yield* soon(drained(provider))

      assert.strictEqual(result.error, undefined)
      yield* soon(closed)
    })
  )

  live("a server that goes on after the finish reason is waited for two seconds, and left", () =>
    Effect.gen(function* () {
      const { provider, closed } = yield* serving((response) => begin(response).write(text("a") + finish))

      const result = yield* soon(drained(provider))

      assert.strictEqual(result.error, undefined)
      assert.deepStrictEqual(textsOf(result), ["a"])
      yield* soon(closed)
    })
  )

  live("reading slowly slows the server down", () =>
    Effect.gen(function* () {
      let written = 0
      const { provider } = yield* serving((response) => {
        begin(response)
        const packet = text("x".repeat(10_000))
        const write = () => {
          for (let isFree = true; isFree && written < 200e6; written += packet.length) isFree = response.write(packet)
          response.once("drain", write)
        }
        write()
      })
      const pull = yield* Effect.flatMap(opened(provider), Stream.toPull)

      yield* pull
      yield* Effect.sleep("300 millis")
      const atFirst = written
      yield* Effect.sleep("300 millis")

      assert.strictEqual(written, atFirst)
      assert.isBelow(written, 50e6)
    })
  )

  // Node's own client opens a connection for every request.
  it.live.skipIf(name === "node")("a connection is used again though the body ends after the terminator", () =>
    Effect.gen(function* () {
      const { provider, connections } = yield* serving((response) => {
        begin(response).write(text("a") + finish + done)
        setTimeout(() => response.end(), 20)
      })

      for (let count = 0; count < 3; count++) {
        yield* drained(provider)
        yield* Effect.sleep("100 millis")
      }

      assert.isAtMost(connections(), 1)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
