import { createGzip } from "node:zlib"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type { HttpClient } from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, type Layer } from "effect"
import { LlmFuse } from "llmfuse"
import type { ProviderError } from "../../src/model/LlmError.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import * as Body from "../../src/provider/Body.ts"
import type { VendorOptions } from "../../src/provider/Endpoint.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import * as HttpFailure from "../../src/provider/HttpFailure.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import type { Provider } from "../../src/provider/Provider.ts"
import * as Reply from "../../src/provider/Reply.ts"
import { type Answer, answering, completion } from "./fakeClient.ts"
import { served } from "./served.ts"
import { bodyIn, drained, event } from "./streaming.ts"

interface Own extends Pick<VendorOptions, "maxResponseBytes"> {
  readonly baseUrl?: string
}

const options = { name: "vendor", model: "m", apiKey: "fx-key", baseUrl: "https://llm.example.test/v1" }

const makers = {
  OpenAiCompatible: (own: Own) => OpenAiCompatible.make({ ...options, ...own }),
  Anthropic: (own: Own) => Anthropic.make({ ...options, ...own }),
  GeminiNative: (own: Own) => GeminiNative.make({ ...options, ...own })
} as const

const adapters = ["OpenAiCompatible", "Anthropic", "GeminiNative"] as const

const ask = (provider: Provider) => provider.complete({ messages: [{ role: "user", content: "hello" }] })

const asked = (answer: Answer, own: Own = {}, adapter: keyof typeof makers = "OpenAiCompatible") =>
  Effect.flatMap(Effect.orDie(Effect.provide(makers[adapter](own), answering(answer).layer)), ask)

const streamed = (answer: Answer, own: Own = {}, adapter: keyof typeof makers = "OpenAiCompatible") =>
  Effect.flatMap(Effect.orDie(Effect.provide(makers[adapter](own), answering(answer).layer)), drained)

const json = { "content-type": "application/json" }
const events = { "content-type": "text/event-stream" }

const limitIs = (bytes: number) => `vendor: HTTP 200 with a body of more than ${bytes} bytes (maxResponseBytes)`

/** A body that never ends, and how much of it was taken. */
const endless = (piece: string) => {
  const bytes = new TextEncoder().encode(piece)
  const taken = { bytes: 0, isCancelled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        taken.bytes += bytes.length
        controller.enqueue(bytes)
      },
      cancel: () => {
        taken.isCancelled = true
      }
    },
    { highWaterMark: 0 }
  )
  return { taken, body }
}

/** A stream's body is closed behind everybody's back. */
const aMoment = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

describe("a gathered body", () => {
  it("has room for exactly as much as is said", () => {
    const body = Body.make(4)

    assert.isTrue(body.take(new TextEncoder().encode("ab")))
    assert.isTrue(body.take(new TextEncoder().encode("cd")))
    assert.isFalse(body.isOverfull())
    assert.isFalse(body.take(new TextEncoder().encode("e")))
    assert.isTrue(body.isOverfull())
    assert.strictEqual(body.text(), "abcd")
  })

  it("takes a million pieces of one byte in little room and time", () => {
    const body = Body.make(10_000_000)

    for (let count = 0; count < 1_000_000; count++) body.take(Uint8Array.of(0x61))

    assert.lengthOf(body.text(), 1_000_000)
  })

  it("leaves what it was given as it is", () => {
    const first = Uint8Array.of(0x61, 0x62, 0x63).subarray(0, 1)
    const body = Body.make(10)

    body.take(first)
    body.take(Uint8Array.of(0x78))

    assert.strictEqual(body.text(), "ax")
    assert.deepStrictEqual([...new Uint8Array(first.buffer)], [0x61, 0x62, 0x63])
  })
})

describe("maxResponseBytes", () => {
  it.effect("lets a body pass that is as long, and not one that is longer", () =>
    Effect.gen(function* () {
      const body = completion("ä")
      const bytes = new TextEncoder().encode(body).length

      yield* asked({ body }, { maxResponseBytes: bytes })
      const error = yield* Effect.flip(asked({ body }, { maxResponseBytes: bytes - 1 }))

      assert.strictEqual(error._tag, "InvalidResponseError")
      assert.strictEqual(error.message, limitIs(bytes - 1))
    })
  )

  it("is 64 MiB where it is not set", () => {
    assert.strictEqual(Reply.maxSuccessBytes, 64 * 1024 * 1024)
  })

  it.effect.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("is refused if it is %d", (maxResponseBytes) =>
    Effect.gen(function* () {
      for (const adapter of adapters) {
        const made = makers[adapter]({ maxResponseBytes })
        const error = yield* Effect.flip(Effect.provide(made, answering({}).layer))

        assert.include(String(error), `vendor.maxResponseBytes is ${maxResponseBytes}; allowed: a whole number from 1`)
      }
    })
  )

  it.effect.each(adapters)("ends an endless body: %s", (adapter) =>
    Effect.gen(function* () {
      const { taken, body } = endless("x".repeat(10_000))

      const error = yield* Effect.flip(asked({ headers: json, body }, { maxResponseBytes: 100_000 }, adapter))

      assert.strictEqual(error._tag, "InvalidResponseError")
      assert.strictEqual(error.message, limitIs(100_000))
      assert.isBelow(taken.bytes, 130_000)
      assert.isTrue(taken.isCancelled)
    })
  )

  it.effect("ends an endless body of vectors", () =>
    Effect.gen(function* () {
      const { taken, body } = endless("0.1,".repeat(1000))
      const made = makers.OpenAiCompatible({ maxResponseBytes: 100_000 })
      const provider = yield* Effect.provide(made, answering({ headers: json, body }).layer)

      const error = yield* Effect.flip(
        provider.embed?.({ input: ["a"] }) ?? Effect.dieMessage("the provider cannot embed")
      )

      assert.strictEqual(error.message, limitIs(100_000))
      assert.isTrue(taken.isCancelled)
    })
  )

  it.effect.each(adapters)("ends an endless body that answers a stream: %s", (adapter) =>
    Effect.gen(function* () {
      for (const piece of ["[1,\n", `{"a":"${"x".repeat(5000)}`, "<html>\n\n"]) {
        const { taken, body } = endless(piece.repeat(20))

        const { parts, error } = yield* streamed({ headers: json, body }, { maxResponseBytes: 100_000 }, adapter)
        yield* aMoment

        assert.deepStrictEqual(parts, [])
        assert.strictEqual(error?._tag, "InvalidResponseError")
        assert.strictEqual(error?.message, limitIs(100_000))
        assert.isTrue(taken.isCancelled)
      }
    })
  )

  it.effect("lets an answer pass in one piece, longer than any event, where a stream was asked for", () =>
    Effect.gen(function* () {
      const text = "x".repeat(3_000_000)

      const { parts, error } = yield* streamed({ headers: json, body: completion(text) })

      assert.isUndefined(error)
      assert.deepInclude(parts[0], { _tag: "TextDelta", text })
    })
  )

  it.effect("does not count the events of a stream, which are handed out as they come", () =>
    Effect.gen(function* () {
      const chunk = (content: string, more = {}) => event({ choices: [{ index: 0, delta: { content }, ...more }] })
      const body = [...Array(50).fill(chunk("x".repeat(100))), chunk("", { finish_reason: "stop" }), event("[DONE]")]

      const { error } = yield* streamed({ headers: events, body: bodyIn(body) }, { maxResponseBytes: 1000 })

      assert.isUndefined(error)
    })
  )
})

describe("what of a stream is kept until its end", () => {
  const words = "x".repeat(2000)
  const anthropic = (type: string, index: number) => [
    event({ type: "message_start", message: { id: "1" } }),
    event({
      type: "content_block_start",
      index: 0,
      content_block: { type: index === 0 ? "thinking" : "tool_use", id: "1", name: "f" }
    }),
    ...Array(100).fill(
      event({
        type: "content_block_delta",
        index: 0,
        delta: { type, [type.replace("_delta", "").replace("input_", "partial_")]: words }
      })
    )
  ]
  const gemini = (part: object) => Array(100).fill(event({ candidates: [{ content: { parts: [part] } }] }))
  const valueByValue = (partial: object) => [
    event({ candidates: [{ content: { parts: [{ functionCall: { name: "f", willContinue: true } }] } }] }),
    ...gemini({ functionCall: { partialArgs: [partial], willContinue: true } })
  ]
  const openAi = (delta: object) => Array(100).fill(event({ choices: [{ index: 0, delta }] }))

  it.effect.each([
    ["Anthropic's thoughts", "Anthropic", anthropic("thinking_delta", 0)],
    ["Anthropic's signatures", "Anthropic", anthropic("signature_delta", 0)],
    ["Anthropic's calls", "Anthropic", anthropic("input_json_delta", 1)],
    ["Gemini's signatures", "GeminiNative", gemini({ text: "a", thoughtSignature: words })],
    ["Gemini's ids", "GeminiNative", gemini({ functionCall: { id: words, name: "f" } })],
    ["Gemini's values", "GeminiNative", valueByValue({ jsonPath: "$.a", stringValue: words })],
    ["the places of Gemini's values", "GeminiNative", valueByValue({ jsonPath: `$.${words}`, numberValue: 1 })],
    [
      "OpenAI's calls",
      "OpenAiCompatible",
      openAi({ tool_calls: [{ index: 0, id: "1", function: { name: "f", arguments: words } }] })
    ]
  ] as const)("is no more than maxResponseBytes: %s", ([, adapter, body]) =>
    Effect.gen(function* () {
      const { error } = yield* streamed({ headers: events, body: bodyIn(body) }, { maxResponseBytes: 100_000 }, adapter)

      assert.strictEqual(error?._tag, "InvalidResponseError")
      assert.strictEqual(error?.message, limitIs(100_000))
    })
  )
})

const deep = (depth: number, inner = "1") => `${"[".repeat(depth)}${inner}${"]".repeat(depth)}`

/** Values that break what recurses into them, joins them or makes texts of them. */
const hostile = [
  ["deep lists", deep(100_000)],
  ["deep objects", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`],
  ["an object that cannot be a text", '{"toString":1,"valueOf":2,"toJSON":3,"__proto__":4,"constructor":null}'],
  ["lone surrogates", '"\\ud800 \\udc00\\ud800"'],
  ["NUL bytes", '"\\u0000a\\u0000"'],
  ["a huge number", "1e999"],
  ["a long list", `[${"0,".repeat(150_000)}0]`],
  ["a long text", `"${"retry in 1".repeat(30_000)}!"`]
] as const

/** Where a value is put that nobody expects there. */
const places = [
  (value: string) => value,
  (value: string) => `{"error":${value}}`,
  (value: string) => `{"error":{"message":${value},"code":${value},"type":${value}}}`,
  (value: string) => `{"error":{"code":429,"message":"x","metadata":{"raw":${value},"headers":${value}}}}`,
  (value: string) => `{"error":{"code":429,"retry_after":${value},"details":[{"retryDelay":${value}},${value}]}}`,
  (value: string) =>
    `{"error":{"code":429,"metadata":{"headers":{"Retry-After":${value},"x-ratelimit-reset":${value}}}}}`,
  (value: string) => `{"detail":[{"loc":[${value},"b"],"msg":${value}}]}`,
  (value: string) =>
    `{"choices":[{"message":{"content":${value},"tool_calls":${value}},"finish_reason":${value}}],"usage":${value}}`,
  (value: string) =>
    `{"choices":[{"message":{"tool_calls":[{"id":${value},"function":{"name":"f","arguments":${value}}}]}}]}`,
  (value: string) => `{"content":[{"type":"tool_use","id":"a","name":"f","input":${value}}],"usage":${value}}`,
  (value: string) => `{"content":${value},"stop_reason":${value},"model":${value}}`,
  (value: string) => `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${value}}}]}}]}`,
  (value: string) => `{"candidates":${value},"usageMetadata":${value},"promptFeedback":${value}}`,
  (value: string) => `[{"candidates":[]},${value}]`
]

describe("hostile bodies", () => {
  describe.each(adapters)("to %s", (adapter) => {
    it.effect.each(hostile)("%s give an answer or an error, wherever they stand", ([, value]) =>
      Effect.gen(function* () {
        for (const place of places) {
          const body = place(value)
          const ways: ReadonlyArray<Effect.Effect<ProviderError | undefined, unknown>> = [
            streamed({ headers: json, body }, {}, adapter).pipe(Effect.map(({ error }) => error)),
            streamed({ headers: events, body: event(body) }, {}, adapter).pipe(Effect.map(({ error }) => error)),
            streamed({ headers: events, body: event(body, "error") }, {}, adapter).pipe(
              Effect.map(({ error }) => error)
            ),
            asked({ status: 429, body }, {}, adapter).pipe(Effect.flip)
          ]
          // Each of them for every place and some adapter: all for all would take a minute.
          const turn = (places.indexOf(place) + adapters.indexOf(adapter)) % ways.length

          const answer = yield* Effect.either(asked({ body }, {}, adapter))
          const error = yield* ways[turn] ?? Effect.succeed(undefined)
          yield* aMoment

          assert.isTrue(answer._tag === "Right" || answer.left.message.length < 400)
          assert.isTrue(error === undefined || error.message.length < 400)
        }
      })
    )

    it.effect("an endless line is no event, and is left", () =>
      Effect.gen(function* () {
        for (const begin of ["data: ", "", "event: ", ": "]) {
          const { taken, body } = endless(`${begin}${"x".repeat(100_000)}`)

          const { error } = yield* streamed({ headers: events, body }, {}, adapter)
          yield* aMoment

          assert.strictEqual(error?._tag, "InvalidResponseError")
          assert.isTrue(taken.isCancelled)
          assert.isBelow(taken.bytes, 2_000_000)
        }
      })
    )

    it.effect("bytes that are no UTF-8, or another charset, are read as far as they can be", () =>
      Effect.gen(function* () {
        const broken = new Uint8Array([...new TextEncoder().encode('{"error":"'), 0xff, 0xc3, 0x28, 0x22, 0x7d])
        const wide = new Uint8Array(Buffer.from(completion(), "utf16le"))
        for (const bytes of [broken, wide]) {
          const headers = { "content-type": "application/json; charset=utf-16" }

          const error = yield* Effect.flip(asked({ headers, body: bodyIn([bytes]) }, {}, adapter))
          const { error: inStream } = yield* streamed({ headers, body: bodyIn([bytes]) }, {}, adapter)

          assert.strictEqual(error._tag, "InvalidResponseError")
          assert.strictEqual(inStream?._tag, "InvalidResponseError")
          // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
          assert.notMatch(error.message, /[\u0000-\u001f]/)
        }
      })
    )
  })

  it("an error within an error within an error is read in bounded depth", () => {
    const raw = `${'{"error":{"metadata":{"raw":'.repeat(50_000)}1${"}}}".repeat(50_000)}`

    const error = HttpFailure.inBand({
      provider: "vendor",
      headers: {},
      nowMillis: 0,
      redact: (text) => text,
      error: JSON.parse(raw)
    })

    assert.strictEqual(error._tag, "InvalidResponseError")
  })

  it("a wait of a million digits is read in an instant", () => {
    const started = performance.now()

    const error = HttpFailure.inBand({
      provider: "vendor",
      headers: {},
      nowMillis: 0,
      redact: (text) => text,
      error: { error: { code: 429, message: "x", retry_after: `${"1".repeat(1_000_000)}!` } }
    })

    assert.strictEqual(error._tag, "RateLimitError")
    assert.isBelow(performance.now() - started, 5000)
  })

  it.effect("a page of a million unclosed titles is read in an instant", () =>
    Effect.gen(function* () {
      const started = performance.now()

      const error = yield* Effect.flip(asked({ body: `<html>${"<title ".repeat(1_000_000)}` }))

      assert.strictEqual(error._tag, "InvalidResponseError")
      assert.isBelow(performance.now() - started, 10_000)
    })
  )

  it.effect("a flood of headers says no more than one header", () =>
    Effect.gen(function* () {
      const flood = Object.fromEntries(
        Array.from({ length: 5000 }, (_, index) => [`x-ratelimit-reset-${index}`, `${index}s`])
      )
      const body = `{"error":{"code":429,"metadata":{"headers":${JSON.stringify(flood)}}}}`

      const error = yield* Effect.flip(asked({ status: 429, headers: flood }))
      const inBand = yield* Effect.flip(asked({ body }))

      assert.deepStrictEqual(error.retryAfter, Duration.seconds(4999))
      assert.deepStrictEqual(inBand.retryAfter, Duration.seconds(4999))
    })
  )
})

const over = (url: string, own: Own = {}) => makers.OpenAiCompatible({ baseUrl: url, ...own })

/** So many bytes of zeros, compressed as they go. */
const bomb = (bytes: number) => {
  const gzip = createGzip({ level: 1 })
  const zeros = Buffer.alloc(1024 * 1024)
  let left = bytes
  const write = () => {
    while (left > 0) {
      left -= zeros.length
      if (!gzip.write(zeros)) return gzip.once("drain", write)
    }
    return gzip.end()
  }
  write()
  return gzip
}

describe("over the network", () => {
  it.live(
    "a gigabyte of zeros in a few kilobytes is left at the limit",
    () =>
      Effect.gen(function* () {
        let isLeft = false
        const { url } = yield* served((_, response) => {
          response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
          const gzip = bomb(1024 ** 3)
          response.on("close", () => {
            isLeft = !response.writableFinished
            gzip.destroy()
          })
          gzip.pipe(response)
        })
        const provider = yield* over(url, { maxResponseBytes: 4_000_000 })
        const before = process.memoryUsage().rss

        const error = yield* Effect.flip(ask(provider))
        const after = process.memoryUsage().rss
        yield* Effect.sleep("200 millis")

        assert.strictEqual(error._tag, "InvalidResponseError")
        assert.strictEqual(error.message, limitIs(4_000_000))
        assert.isBelow(after - before, 200_000_000)
        assert.isTrue(isLeft)
      }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)),
    60_000
  )

  const clients: ReadonlyArray<readonly [string, Layer.Layer<HttpClient>]> = [
    ["fetch", FetchHttpClient.layer],
    ["undici", NodeHttpClient.layerUndici],
    ["node", NodeHttpClient.layer]
  ]

  describe.each(clients)("by %s", (_, layer) => {
    it.live("a body that is too long ends its request", () =>
      Effect.gen(function* () {
        let isLeft = false
        const { url } = yield* served((_, response) => {
          response.on("close", () => {
            isLeft = true
          })
          const write = () => {
            while (response.write(" ".repeat(10_000)));
            response.once("drain", write)
          }
          write()
        })

        const error = yield* Effect.flip(ask(yield* over(url, { maxResponseBytes: 50_000 })))
        yield* Effect.sleep("200 millis")

        assert.strictEqual(error.message, limitIs(50_000))
        assert.isTrue(isLeft)
      }).pipe(Effect.scoped, Effect.provide(layer))
    )

    it.live("a body that trickles for ever ends with the time of its attempt", () =>
      Effect.gen(function* () {
        let isLeft = false
        const { url } = yield* served((_, response) => {
          const timer = setInterval(() => response.write(" "), 20)
          response.on("close", () => {
            isLeft = true
            clearInterval(timer)
          })
        })
        const provider = yield* over(url)
        const fuse = yield* Effect.provide(
          LlmFuse,
          LlmFuse.layer({ providers: [provider], retry: { maxAttempts: 1 }, timeouts: { attempt: "400 millis" } })
        )

        const error = yield* Effect.flip(fuse.complete("hello"))
        yield* Effect.sleep("200 millis")

        assert.strictEqual(error._tag, "AllProvidersFailedError")
        assert.include(error.message, "400")
        assert.isTrue(isLeft)
      }).pipe(Effect.scoped, Effect.provide(layer))
    )

    it.live("a flood of headers is an error of the connection, or none", () =>
      Effect.gen(function* () {
        const { url } = yield* served((_, response) => {
          for (let index = 0; index < 20_000; index++) response.setHeader(`x-flood-${index}`, "x".repeat(100))
          response.end(completion())
        })

        const result = yield* Effect.either(ask(yield* over(url)))

        assert.isTrue(result._tag === "Right" || result.left._tag === "ConnectionError")
      }).pipe(Effect.scoped, Effect.provide(layer))
    )
  })
})
