import { readFileSync } from "node:fs"
import type { RequestListener } from "node:http"
import { inspect } from "node:util"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, type Layer, Redacted, Stream } from "effect"
import * as Exchange from "../../src/provider/Exchange.ts"
import { answering, completion } from "./fakeClient.ts"
import { served } from "./served.ts"

const key = "fx-very-secret-key"

const endpoint: Exchange.Endpoint = {
  name: "vendor",
  url: "https://llm.example.test/v1/chat/completions",
  key: { header: "authorization", prefix: "Bearer ", value: Redacted.make(key) }
}

const post = (answer: Parameters<typeof answering>[0], own: Partial<Exchange.Endpoint> = {}) =>
  Exchange.make(answering(answer).client, { ...endpoint, ...own })({ a: 1 })

const failing = (client: HttpClient.HttpClient) => Effect.flip(Exchange.make(client, endpoint)({ a: 1 }))

const broken = (cause: unknown) =>
  HttpClient.make((request) => Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", cause })))

describe("requests", () => {
  it.effect("carry the key, the body and who asks", () =>
    Effect.gen(function* () {
      const { client, sent } = answering({ body: completion() })

      yield* Exchange.make(client, endpoint)({ a: 1 })

      assert.strictEqual(sent[0]?.url, endpoint.url)
      assert.deepStrictEqual(sent[0]?.body, { a: 1 })
      assert.deepInclude(sent[0]?.headers, {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "user-agent": `llmfuse/${Exchange.version}`
      })
    })
  )

  it.effect("let the user's headers win, in whichever letters", () =>
    Effect.gen(function* () {
      const { client, sent } = answering({ body: completion() })

      yield* Exchange.make(client, { ...endpoint, ownHeaders: { "User-Agent": "mine/1", "X-Title": "t" } })({})

      assert.deepInclude(sent[0]?.headers, { "user-agent": "mine/1", "x-title": "t" })
    })
  )

  it("tell the version of the package", () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

    assert.strictEqual(Exchange.version, version)
  })

  it.effect("that cannot be written are not sent", () =>
    Effect.gen(function* () {
      const { client, sent } = answering({})

      const error = yield* Effect.flip(Exchange.make(client, endpoint)({ n: 1n }))

      assert.strictEqual(error._tag, "InvalidRequestError")
      assert.lengthOf(sent, 0)
    })
  )

  it.effect("make no span and carry no trace", () =>
    Effect.gen(function* () {
      const { client, sent } = answering({ body: completion() })

      yield* Exchange.make(client, endpoint)({}).pipe(Effect.withSpan("outer"))

      assert.notProperty(sent[0]?.headers ?? {}, "traceparent")
    })
  )
})

describe("successes", () => {
  it.effect.each([200, 201, 202])("%d is one", (status) =>
    Effect.gen(function* () {
      const reply = yield* post({ status, headers: { "x-request-id": "r1" }, body: ` \n\n ${completion()}` })

      assert.strictEqual(reply.requestId, "r1")
      assert.property(reply.json, "choices")
    })
  )

  it.effect.each([
    ["", "EmptyResponseError"],
    ["  \n ", "EmptyResponseError"],
    ['{"choices":[{"mess', "InvalidResponseError"],
    ["     .", "InvalidResponseError"],
    ["<html><title>Sign in</title></html>", "InvalidResponseError"],
    ['data: {"a":1}\n\n', "InvalidResponseError"],
    ['{"error":{"code":502,"message":"x"}}', "ServerError"],
    ['[{"error":{"code":429,"message":"x"}}]', "RateLimitError"],
    ['{"code":"The service is currently unavailable","error":"x"}', "OverloadedError"],
    ['{"error":"no idea"}', "InvalidResponseError"],
    ['{"type":"error","error":{"type":"overloaded_error"}}', "OverloadedError"]
  ])("a body %j is none", ([body, tag]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(post({ body, headers: { "retry-after": "55", "x-request-id": "r1" } }))

      assert.strictEqual(error._tag as string, tag)
      assert.strictEqual(error.retryAfter, undefined)
      assert.strictEqual(error.requestId, "r1")
    })
  )

  it.effect("a 204 is empty", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(post({ status: 204 })))._tag, "EmptyResponseError")
    })
  )

  it.effect.each(['{"error":null,"choices":[]}', '{"error":"","choices":[]}', '{"error":{},"choices":[]}'])(
    "an error that says nothing is none: %s",
    (body) =>
      Effect.gen(function* () {
        assert.property((yield* post({ body })).json, "choices")
      })
  )
})

describe("failures", () => {
  it.effect("of a redirect that was not followed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(post({ status: 307, headers: { location: "https://x.test/" } }))

      assert.strictEqual(error._tag, "InvalidRequestError")
    })
  )

  it.effect("are read up to 16 KiB", () =>
    Effect.gen(function* () {
      let pulled = 0
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          pulled++
          controller.enqueue(new TextEncoder().encode("x".repeat(4096)))
        }
      })

      const error = yield* Effect.flip(post({ status: 500, body }))

      assert.strictEqual(error._tag, "ServerError")
      assert.isBelow(pulled, 10)
    })
  )

  it.effect("whose body breaks off are known by their status", () =>
    Effect.gen(function* () {
      const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.error(new Error("reset")) })

      assert.strictEqual((yield* Effect.flip(post({ status: 429, body })))._tag, "RateLimitError")
    })
  )

  it.live(
    "whose body never comes are known by their status",
    () =>
      Effect.gen(function* () {
        const body = new ReadableStream<Uint8Array>({})

        const error = yield* Effect.flip(post({ status: 429, headers: { "retry-after": "7" }, body }))

        assert.strictEqual(error._tag, "RateLimitError")
      }),
    10_000
  )

  it.effect("that a client's filter took for its own are read", () =>
    Effect.gen(function* () {
      const { client } = answering({
        status: 429,
        headers: { "retry-after": "7" },
        body: '{"error":{"message":"slow"}}'
      })

      const error = yield* failing(HttpClient.filterStatusOk(client))

      assert.strictEqual(error.message, "vendor: HTTP 429: slow")
    })
  )
})

describe("connections", () => {
  it.effect("that break say why, and hold no request", () =>
    Effect.gen(function* () {
      const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })

      const error = yield* failing(broken(new TypeError("fetch failed", { cause })))

      assert.strictEqual(error._tag, "ConnectionError")
      assert.strictEqual(error.message, "vendor: connection failed: ECONNREFUSED: connect ECONNREFUSED")
      assert.deepStrictEqual(error.cause, { name: "Error", message: "connect ECONNREFUSED", code: "ECONNREFUSED" })
    })
  )

  it.effect.each([new Error(`odd: Bearer ${key}`), undefined, "text", { key }])(
    "that fail oddly show no key: %s",
    (cause) =>
      Effect.gen(function* () {
        const error = yield* failing(broken(cause))

        assert.strictEqual(error._tag, "ConnectionError")
        assert.notInclude(inspect(error, { depth: 9, showHidden: true }), key)
      })
  )

  it.effect("that break within a success are no answer", () =>
    Effect.gen(function* () {
      const cause = Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" })
      const client = HttpClient.make((request) => {
        const response = HttpClientResponse.fromWeb(request, new Response("{"))
        const broken = new HttpClientError.ResponseError({ request, response, reason: "Decode", cause })
        const stream = Stream.concat(response.stream, Stream.fail(broken))
        return Effect.succeed(Object.create(response, { stream: { value: stream } }))
      })

      assert.strictEqual((yield* failing(client))._tag, "ConnectionError")
    })
  )
})

const over = (url: string) =>
  Effect.map(HttpClient.HttpClient, (client) => Exchange.make(client, { name: "vendor", url })({}))

describe.each([
  ["fetch", FetchHttpClient.layer],
  ["undici", NodeHttpClient.layerUndici],
  ["node", NodeHttpClient.layer]
] as const)("over %s", (_, layer: Layer.Layer<HttpClient.HttpClient>) => {
  const scenario = (listener: RequestListener) =>
    Effect.gen(function* () {
      const { url } = yield* served(listener)
      return yield* Effect.either(yield* over(url))
    }).pipe(Effect.scoped, Effect.provide(layer))

  it.live("an answer is read", () =>
    Effect.gen(function* () {
      const result = yield* scenario((request, response) =>
        response.end(JSON.stringify({ agent: request.headers["user-agent"] }))
      )

      assert.deepStrictEqual(yield* Effect.map(result, ({ json }) => json), { agent: `llmfuse/${Exchange.version}` })
    })
  )

  it.live("a failure with an endless body is read and left", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        yield* scenario((_, response) => {
          response.writeHead(429, { "retry-after": "2" })
          const write = () => {
            while (response.write("x".repeat(1000)));
            response.once("drain", write)
          }
          write()
        })
      )

      assert.strictEqual(error._tag, "RateLimitError")
    })
  )

  it.live("a reset before the headers is a connection that failed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(yield* scenario((request) => request.socket.destroy()))

      assert.strictEqual(error._tag, "ConnectionError")
    })
  )

  it.live("a reset within the body is a connection that failed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        yield* scenario((_, response) => {
          response.writeHead(200, { "content-type": "application/json", "content-length": "1000" })
          response.write('{"choices":', () => response.destroy())
        })
      )

      assert.strictEqual(error._tag, "ConnectionError")
    })
  )

  it.live("a refused connection is one that failed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(yield* over("http://127.0.0.1:1/"))

      assert.strictEqual(error._tag, "ConnectionError")
    }).pipe(Effect.provide(layer))
  )

  it.live("an interrupted request is closed", () =>
    Effect.gen(function* () {
      let closed = false
      const { url } = yield* served((request) =>
        request.socket.on("close", () => {
          closed = true
        })
      )
      const fiber = yield* Effect.fork(yield* over(url))
      yield* Effect.sleep("100 millis")

      const exit = yield* Fiber.interrupt(fiber)
      yield* Effect.sleep("50 millis")

      assert.isTrue(Exit.isInterrupted(exit))
      assert.isTrue(closed)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
