import { inspect } from "node:util"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Exit, Layer, Redacted, Stream } from "effect"
import * as LlmFuseExports from "llmfuse"
import { type FuseEvent, LlmFuse } from "llmfuse"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import type { Provider } from "../../src/provider/Provider.ts"
import * as Redaction from "../../src/provider/Redaction.ts"
import { AzureOpenAi, Groq, OpenAi } from "../../src/provider/vendors.ts"
import { answering, completion } from "./fakeClient.ts"
import { drained, event } from "./streaming.ts"

const key = "fx-0123456789-secret"
const headerValue = "own-header-secret"
const options = { model: "m", headers: { "x-own": headerValue } }

const builders = [
  ["a string", Groq.make({ ...options, apiKey: key })],
  ["a redacted one", OpenAi.make({ ...options, apiKey: Redacted.make(key) })],
  ["Anthropic's", Anthropic.make({ ...options, apiKey: key })],
  ["Gemini's", GeminiNative.make({ ...options, apiKey: key })],
  ["Azure's", AzureOpenAi.make({ ...options, apiKey: key, baseUrl: "https://fx.openai.azure.com" })]
] as const

/** Everything that can be seen of a value: its texts, and all that hangs on it. */
const seen = (value: unknown, depth = 0, known = new Set<unknown>()): string => {
  if (typeof value !== "object" || value === null || depth > 8 || known.has(value)) return String(value)
  known.add(value)
  const own = Reflect.ownKeys(value).map(
    (name) => `${String(name)}: ${seen(Reflect.get(value, name), depth + 1, known)}`
  )
  return [inspect(value, { depth: 9, showHidden: true }), JSON.stringify(value), String(value), ...own].join("\n")
}

const ask = (provider: Provider) => provider.complete({ messages: [{ role: "user", content: "hello" }] })

const echoes = [
  { status: 401, body: JSON.stringify({ error: { message: `Incorrect API key provided: ${key}, ${headerValue}` } }) },
  { status: 401, headers: { "x-request-id": key }, body: `${"x".repeat(285)} ${key}` },
  { status: 502, body: `<html><title>${key}</title>${headerValue}</html>` },
  { status: 302, headers: { location: `https://x.test/?key=${key}` } },
  { status: 200, body: JSON.stringify({ error: { message: `Bearer ${key} is not known`, code: 401 } }) },
  { status: 200, body: `<html><title>${key}</title></html>` },
  { status: 200, body: JSON.stringify({ detail: key }) },
  {
    status: 200,
    body: JSON.stringify({ choices: [{ message: { refusal: `your key ${key}` } }], content: [], stop_reason: key })
  }
]

const chunk = (delta: object, more: object = {}) => event({ choices: [{ index: 0, delta, ...more }] })

/** Streams that hold the key. The filler takes it over the place where an error's words are cut. */
const streamedEchoes = [
  event({ error: { message: `Incorrect API key provided: ${key}, ${headerValue}`, code: 401 } }),
  event({ type: "error", error: { type: "authentication_error", message: `${key} ${headerValue}` } }),
  event(`${key} is not known`, "error"),
  event(`{"${key}`),
  `${event("ping", "ping")}error: ${key} ${headerValue}\n\n`,
  `<html><title>${key} ${headerValue}</title>`,
  `{"detail":"${key} ${headerValue}"}`,
  chunk({ refusal: "x".repeat(280) }) +
    chunk({ refusal: key.slice(0, 9) }) +
    chunk({ refusal: key.slice(9) }) +
    event("[DONE]"),
  chunk({ content: "a" }, { finish_reason: "content_filter" }) + event("[DONE]"),
  [
    { type: "message_start", message: { id: key, model: key } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x".repeat(290) + key.slice(0, 9) } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: key.slice(9) } },
    { type: "message_delta", delta: { stop_reason: "refusal" } },
    { type: "message_stop" }
  ]
    .map((data) => event(data))
    .join("")
]

describe.each(builders)("a key: %s", (_, made) => {
  it.effect("is not seen in the provider", () =>
    Effect.gen(function* () {
      const provider = yield* made.pipe(Effect.provide(answering({ body: completion() }).layer))

      assert.notMatch(seen(provider), /secret/)
    })
  )

  it.effect.each(echoes)("is not seen in an error when it is echoed: %j", (echo) =>
    Effect.gen(function* () {
      const provider = yield* made.pipe(Effect.provide(answering(echo).layer))

      const error = yield* Effect.flip(ask(provider))

      assert.notMatch(seen(error), /secret|0123456789/)
    })
  )

  it.effect.each(streamedEchoes)("is not seen in an error when it is echoed in a stream: %s", (body) =>
    Effect.gen(function* () {
      const headers = { "content-type": "text/event-stream", "x-request-id": key }
      const provider = yield* made.pipe(Effect.provide(answering({ headers, body }).layer))

      const { error } = yield* drained(provider)

      assert.isDefined(error)
      assert.notMatch(seen(error), /secret|012345/)
    })
  )

  it.effect("is not seen in the error of a stream that breaks", () =>
    Effect.gen(function* () {
      const cause = Object.assign(new Error(`${key} ${headerValue}`), { code: "UND_ERR_SOCKET", request: { key } })
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.error(new TypeError("terminated", { cause }))
      })
      const provider = yield* made.pipe(
        Effect.provide(answering({ headers: { "content-type": "text/event-stream" }, body }).layer)
      )

      const { error } = yield* drained(provider)

      assert.strictEqual(error?._tag, "StreamInterruptedError")
      assert.notMatch(seen(error), /secret|0123456789/)
    })
  )

  it.effect("is not seen in the error of a connection", () =>
    Effect.gen(function* () {
      const client = HttpClient.make((request) => {
        const cause = new TypeError(`Headers.append: "${Object.values(request.headers).join()}" is an invalid value`)
        return Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", cause }))
      })
      const provider = yield* made.pipe(Effect.provide(Layer.succeed(HttpClient.HttpClient, client)))

      const error = yield* Effect.flip(ask(provider))

      assert.strictEqual(error._tag, "ConnectionError")
      assert.notMatch(seen(error), /secret|0123456789/)
    })
  )
})

// Every vendor

type AnyOptions = typeof options & {
  readonly apiKey?: string
  readonly baseUrl?: string
  readonly maxResponseBytes?: number
}

interface AnyVendor {
  readonly make: typeof Groq.make
  readonly layer: (options: AnyOptions) => Layer.Layer<unknown, unknown, HttpClient.HttpClient>
}

const isVendor = (value: unknown): value is AnyVendor =>
  typeof value === "function" && "key" in value && String(value.key).startsWith("llmfuse/provider/")

/** Whatever the package exports that makes providers, so that no vendor is forgotten. */
const vendors = Object.entries(LlmFuseExports).flatMap(([name, value]) =>
  isVendor(value) ? [[name, value] as const] : []
)

const secret = /secret|0123456789|012345/

const baseUrl = "https://proxy.example.test/v1"

const urlSecret = "https://user:url-secret-0123456789@proxy.example.test/v1"

/** All that a failure can be looked at by: its value, its cause chain and how a cause is printed. */
const seenOf = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isSuccess(exit)
    ? seen(exit.value)
    : [
        seen(exit.cause),
        Cause.pretty(exit.cause, { renderErrorCause: true }),
        ...[...Cause.failures(exit.cause)].map((it) => seen(it))
      ].join("\n")

const bodies = [
  ...echoes,
  ...streamedEchoes.map((body) => ({ status: 200, headers: { "content-type": "text/event-stream" }, body })),
  { status: 200, body: `${key}${headerValue}`.repeat(100) },
  { status: 429, headers: { "retry-after": key, "x-should-retry": key, date: key }, body: key },
  { status: 400, headers: { "x-amzn-errortype": key }, body: `{"error":{"code":"${key}","param":"${headerValue}"}}` },
  { status: 200, body: `{"data":[{"embedding":"${key}"}],"embeddings":"${key}","model":"${headerValue}"}` }
]

/** Lets the runner report: to look at everything takes its time. */
const aMoment = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

describe("every vendor", () => {
  it("is walked over", () => {
    const names = vendors.map(([name]) => name)

    assert.isAtLeast(names.length, 17)
    assert.includeMembers(names, ["OpenAi", "Anthropic", "Gemini", "GeminiNative", "AzureOpenAi", "Groq"])
  })

  describe.each(vendors)("%s", (name, vendor) => {
    // Most vendors share a wire: each of them is sent some of the bodies, and together they are sent all.
    const place = vendors.findIndex(([it]) => it === name)
    const own = ["Anthropic", "GeminiNative", "AzureOpenAi"].includes(name)
      ? bodies
      : bodies.filter((_, index) => (index + place) % 5 === 0)

    it.effect("shows no secret in its provider, its errors, its streams and its vectors", () =>
      Effect.gen(function* () {
        for (const body of own) {
          yield* aMoment
          const { layer } = answering(body)
          const made = vendor.make({ ...options, apiKey: key, baseUrl, maxResponseBytes: 1500 })
          const provider = yield* Effect.provide(made, layer)

          const answer = yield* Effect.exit(ask(provider))
          const stream = yield* drained(provider)
          const embedded = yield* Effect.exit(provider.embed?.({ input: ["a"] }) ?? Effect.void)

          assert.notMatch(seen(provider), secret)
          if (Exit.isFailure(answer)) assert.notMatch(seenOf(answer), secret)
          if (stream.error !== undefined) assert.notMatch(seen(stream.error), secret)
          if (Exit.isFailure(embedded)) assert.notMatch(seenOf(embedded), secret)
        }
      })
    )

    it.effect("shows no secret in what the fuse tells of it: errors, events and their printed causes", () =>
      Effect.gen(function* () {
        const told: Array<FuseEvent> = []
        const made = vendor.make({ ...options, apiKey: key, baseUrl })
        for (const body of own.slice(0, 5)) {
          yield* aMoment
          const provider = yield* Effect.provide(made, answering(body).layer)
          const fuse = yield* Effect.provide(
            LlmFuse,
            LlmFuse.layer({
              providers: [provider],
              retry: { maxAttempts: 1 },
              onEvent: (event) => {
                told.push(event)
              }
            })
          )

          const answer = yield* Effect.exit(fuse.complete("hello"))
          const stream = yield* Effect.exit(Stream.runDrain(fuse.stream("hello")))

          if (Exit.isFailure(answer)) assert.notMatch(seenOf(answer), secret)
          if (Exit.isFailure(stream)) assert.notMatch(seenOf(stream), secret)
        }

        assert.isAbove(told.length, 4)
        for (const event of told) assert.notMatch(seen(event), secret)
      })
    )

    it.effect("shows no secret where its layer cannot be built", () =>
      Effect.gen(function* () {
        const wrong: ReadonlyArray<AnyOptions> = [
          { ...options, apiKey: `${key} with blanks`, baseUrl },
          { ...options, apiKey: `${key}\u00e4`, baseUrl },
          { ...options, apiKey: key, baseUrl: urlSecret },
          { ...options, apiKey: key, baseUrl: urlSecret.replace("https:", "ftp:") },
          { ...options, apiKey: key, baseUrl, headers: { "x-own": `${headerValue}\n` } },
          { ...options, apiKey: key, baseUrl, model: "" }
        ]
        for (const bad of wrong) {
          const exit = yield* Effect.exit(
            Layer.build(Layer.provide(vendor.layer(bad), answering({}).layer)).pipe(Effect.scoped)
          )

          assert.isTrue(Exit.isFailure(exit))
          assert.notMatch(seenOf(exit), secret)
        }
      }).pipe(Effect.withConfigProvider(ConfigProvider.fromMap(new Map())))
    )

    it.effect("shows no secret in the error of a connection that holds its request", () =>
      Effect.gen(function* () {
        const client = HttpClient.make((request) => {
          const cause = Object.assign(new Error(`${request.url} ${Object.values(request.headers).join()}`), { request })
          return Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport", cause }))
        })
        const made = vendor.make({ ...options, apiKey: key, baseUrl: `${baseUrl}?key=${key}` })
        const provider = yield* Effect.provide(made, Layer.succeed(HttpClient.HttpClient, client))

        const answer = yield* Effect.exit(ask(provider))
        const { error } = yield* drained(provider)
        const embedded = yield* Effect.exit(provider.embed?.({ input: ["a"] }) ?? Effect.void)

        assert.notMatch(seenOf(answer), secret)
        assert.isDefined(error)
        assert.notMatch(seen(error), secret)
        assert.notMatch(seenOf(embedded), secret)
      })
    )
  })

  it.effect("of one's own shows none either", () =>
    Effect.gen(function* () {
      const made = OpenAiCompatible.make({ ...options, name: "mine", apiKey: key, baseUrl })
      for (const body of bodies) {
        const provider = yield* Effect.provide(made, answering(body).layer)

        const answer = yield* Effect.exit(ask(provider))

        if (Exit.isFailure(answer)) assert.notMatch(seenOf(answer), secret)
      }
    })
  )
})

describe("what looks like a secret", () => {
  it.each([
    ["Bearer abcdefghijklmnop1234 is wrong", "Bearer <redacted> is wrong"],
    ["key sk-proj-abcdefghijklmnop1234.", "key <redacted>."],
    ["AIzaSyA0123456789abcdefghijk", "<redacted>"],
    ["see https://user:pass@x.test/a", "see https://<redacted>@x.test/a"],
    ["GET /v1?key=abc&alt=sse", "GET /v1?key=<redacted>&alt=sse"],
    ["ask sales@example.com about sk-1", "ask sales@example.com about sk-1"]
  ])("%s", (text, shown) => {
    assert.strictEqual(Redaction.byShape(text), shown)
  })
})
