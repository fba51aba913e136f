import { inspect } from "node:util"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import type { Provider } from "../../src/provider/Provider.ts"
import * as Redaction from "../../src/provider/Redaction.ts"
import { AzureOpenAi, Groq, OpenAi } from "../../src/provider/vendors.ts"
import { answering, completion } from "./fakeClient.ts"

const key = "fx-0123456789-secret"
const headerValue = "own-header-secret"
const options = { model: "m", headers: { "x-own": headerValue } }

const builders = [
  ["a string", Groq.make({ ...options, apiKey: key })],
  ["a redacted one", OpenAi.make({ ...options, apiKey: Redacted.make(key) })],
  ["Anthropic's", Anthropic.make({ ...options, apiKey: key })],
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
