import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration } from "effect"
import { AllProvidersFailedError, RateLimitError } from "../../src/model/LlmError.ts"
import * as Rejection from "../../src/provider/Rejection.ts"

const key = "sk-fx0123456789abcdefghij"

const of = (reason: unknown, now?: number) => Rejection.toProviderError("custom", reason, now)

const withFields = (message: string, fields: object) => Object.assign(new Error(message), fields)

const waitOf = (reason: unknown, now?: number) => {
  const { retryAfter } = of(reason, now)
  return retryAfter === undefined ? undefined : Duration.toMillis(retryAfter)
}

describe("errors with a status", () => {
  const openai = withFields("429 Rate limit reached", {
    status: 429,
    headers: new Headers({ "retry-after": "7", "x-request-id": "req_1" }),
    error: { message: "Rate limit reached", type: "tokens", code: "rate_limit_exceeded" }
  })
  const axios = withFields("Request failed with status code 429", {
    code: "ERR_BAD_REQUEST",
    config: { headers: { Authorization: `Bearer ${key}` } },
    response: {
      status: 429,
      headers: { "Retry-After": "3" },
      data: { error: { message: "You exceeded your quota", code: "insufficient_quota" } }
    }
  })
  const ai = withFields("Too long", {
    statusCode: 400,
    responseHeaders: { "x-request-id": "r" },
    responseBody: '{"error":{"message":"Too long","code":"context_length_exceeded"}}',
    requestBodyValues: { prompt: "private" }
  })

  it.each([
    ["openai", openai, "RateLimitError", 7000],
    ["axios", axios, "QuotaExhaustedError", 3000],
    ["ai", ai, "ContextLengthError", undefined],
    [
      "ai, after its own retries",
      withFields("Failed after 3 attempts", { lastError: ai }),
      "ContextLengthError",
      undefined
    ],
    [
      "@anthropic-ai/sdk",
      withFields("529", { status: 529, error: { type: "error", error: { type: "overloaded_error", message: "x" } } }),
      "OverloadedError",
      undefined
    ],
    [
      "@google/genai",
      withFields('{"error":{"code":429,"details":[{"retryDelay":"21s"}]}}', { status: 429 }),
      "RateLimitError",
      21_000
    ],
    [
      "google details within what openai keeps",
      withFields("429", { status: 429, error: { code: 429, message: "x", details: [{ retryDelay: "5s" }] } }),
      "RateLimitError",
      5000
    ],
    ["a bare status", { status: 503 }, "OverloadedError", undefined],
    ["a text body", withFields("x", { status: 401, body: "no" }), "AuthenticationError", undefined]
  ])("%s", (_, reason, tag, wait) => {
    assert.strictEqual(of(reason)._tag, tag)
    assert.strictEqual(waitOf(reason), wait)
  })

  it("nothing of the request is kept", () => {
    for (const reason of [openai, axios, ai]) {
      const error = of(reason)

      assert.strictEqual(error.cause, undefined)
      assert.notMatch(inspect(error, { depth: 9 }), /sk-fx|private/)
    }
    assert.strictEqual(of(openai).requestId, "req_1")
    assert.strictEqual(of(openai).message, "custom: HTTP 429: Rate limit reached")
  })

  it("a date needs something to compare it with", () => {
    const reason = { status: 429, headers: { "retry-after": "Mon, 30 Nov 2026 00:00:09 GMT" } }
    const dated = { ...reason, headers: { ...reason.headers, date: "Mon, 30 Nov 2026 00:00:00 GMT" } }

    assert.strictEqual(waitOf(reason), undefined)
    assert.strictEqual(waitOf(reason, Date.parse("2026-11-30T00:00:00Z")), 9000)
    assert.strictEqual(waitOf(dated), 9000)
  })

  it.each([
    [
      "a circle",
      (() => {
        const data: Record<string, unknown> = {}
        data.self = data
        return data
      })()
    ],
    ["a bigint", { n: 1n }],
    ["a function", () => 1]
  ])("a body that is %s does no harm", (_, body) => {
    assert.strictEqual(of({ status: 500, body })._tag, "ServerError")
  })

  it("a number that is no HTTP status is none", () => {
    assert.strictEqual(of({ status: 7 })._tag, "CustomProviderError")
    assert.strictEqual(of({ status: "429" })._tag, "CustomProviderError")
  })
})

describe("connections", () => {
  const fetchFailed = (cause: unknown) => new TypeError("fetch failed", { cause })

  it.each([
    ["ECONNREFUSED", withFields("connect ECONNREFUSED 127.0.0.1:1", { code: "ECONNREFUSED" })],
    ["ECONNRESET", fetchFailed(withFields("read ECONNRESET", { code: "ECONNRESET" }))],
    ["ENOTFOUND", fetchFailed(withFields("getaddrinfo ENOTFOUND x.test", { code: "ENOTFOUND" }))],
    ["EAI_AGAIN", withFields("x", { code: "EAI_AGAIN" })],
    ["EPIPE", withFields("x", { code: "EPIPE" })],
    ["UND_ERR_SOCKET", fetchFailed(withFields("other side closed", { code: "UND_ERR_SOCKET" }))],
    ["UND_ERR_CONNECT_TIMEOUT", fetchFailed(withFields("x", { code: "UND_ERR_CONNECT_TIMEOUT" }))],
    ["CERT_HAS_EXPIRED", fetchFailed(withFields("certificate has expired", { code: "CERT_HAS_EXPIRED" }))],
    ["ECONNREFUSED", fetchFailed(Object.assign(new AggregateError([withFields("x", { code: "ECONNREFUSED" })])))]
  ])("%s is a connection that failed", (code, reason) => {
    const error = of(reason)

    assert.strictEqual(error._tag, "ConnectionError")
    assert.include(error.message, code)
    assert.deepInclude(error.cause, { code })
  })

  it("fetch that failed without saying why is one too", () => {
    assert.strictEqual(of(new TypeError("fetch failed"))._tag, "ConnectionError")
    assert.strictEqual(of(new TypeError("terminated"))._tag, "ConnectionError")
  })

  it.each([
    ["a DOMException", new DOMException("The operation was aborted due to timeout", "TimeoutError")],
    ["a name", withFields("x", { name: "TimeoutError" })],
    ["ETIMEDOUT", withFields("x", { code: "ETIMEDOUT" })],
    ["UND_ERR_HEADERS_TIMEOUT", fetchFailed(withFields("x", { code: "UND_ERR_HEADERS_TIMEOUT" }))],
    ["UND_ERR_BODY_TIMEOUT", withFields("x", { code: "UND_ERR_BODY_TIMEOUT" })],
    ["axios", withFields("timeout of 10ms exceeded", { code: "ECONNABORTED" })],
    ["effect", new Cause.TimeoutException("x")]
  ])("a timeout by %s is one of the provider's", (_, reason) => {
    const error = of(reason)

    assert.strictEqual(error._tag, "TimeoutError")
    assert.strictEqual(error.failureCase, "upstream")
  })

  it("causes that point at each other end", () => {
    const one: Error = new Error("one")
    one.cause = withFields("two", { cause: one })

    assert.strictEqual(of(one)._tag, "CustomProviderError")
  })
})

describe("others", () => {
  it("an error of ours stays itself", () => {
    const error = new RateLimitError({ provider: "inner" })

    assert.strictEqual(of(error), error)
  })

  it("a fuse within a provider fails as a custom error that says as much", () => {
    const inner = new AllProvidersFailedError({ errors: { a: new RateLimitError({ provider: "a" }) }, attempts: [] })

    const error = of(inner)

    assert.strictEqual(error._tag, "CustomProviderError")
    assert.isTrue(error.isRetryable)
    assert.strictEqual(error.cause, inner)
  })

  it.each([
    [new Error("out of luck"), "custom: out of luck", true],
    ["out of luck", "custom: out of luck", true],
    [{ message: "out of luck" }, "custom: out of luck", true],
    [undefined, "custom: failed", true],
    [null, "custom: failed", true],
    [42, "custom: failed", true],
    [new TypeError("x is not a function"), "custom: x is not a function", false],
    [new ReferenceError("x"), "custom: x", false],
    [new SyntaxError("x"), "custom: x", false],
    [new RangeError("x"), "custom: x", false]
  ])("%s", (reason, message, retryable) => {
    const error = of(reason)

    assert.strictEqual(error._tag, "CustomProviderError")
    assert.strictEqual(error.message, message)
    assert.strictEqual(error.isRetryable, retryable)
  })

  it("a plain error is kept as the cause, one that holds a request is not", () => {
    const plain = new Error("plain")
    const laden = withFields("laden", { request: { headers: { authorization: `Bearer ${key}` } } })

    assert.strictEqual(of(plain).cause, plain)
    assert.deepStrictEqual(of(laden).cause, { name: "Error", message: "laden" })
  })

  it.each([
    [new Error(`bad key ${key}`)],
    [withFields("x", { apiKey: key })],
    [withFields("x", { config: { key } })],
    [new Error("x", { cause: new Error(key) })],
    [`Bearer ${key}`],
    [`https://user:${key}@x.test/?key=${key}`]
  ])("no key is shown of %s", (reason) => {
    const error = of(reason)

    assert.notInclude(`${inspect(error, { depth: 9, showHidden: true })}${JSON.stringify(error)}`, key)
  })

  it("something that throws when looked at is an error like any other", () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("no")
        }
      }
    )

    assert.strictEqual(of(hostile)._tag, "CustomProviderError")
  })
})
