import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Option } from "effect"
import {
  AuthenticationError,
  CircuitOpenError,
  DeadlineExceededError,
  FallbackError,
  isLlmFuseError,
  ThrottledError,
  UnknownProviderError
} from "../../src/model/LlmError.ts"
import * as Rejection from "../../src/provider/Rejection.ts"

const of = (reason: unknown) => Rejection.toProviderError("custom", reason)

const withFields = (message: string, fields: object) => Object.assign(new Error(message), fields)

const same = (text: string) => text

describe("a network failure", () => {
  it.each(
    `ECONNREFUSED ECONNRESET ECONNABORTED ENOTFOUND EAI_AGAIN EAI_FAIL EPIPE EPROTO EHOSTUNREACH EHOSTDOWN ENETUNREACH
    ENETDOWN EADDRNOTAVAIL UND_ERR_SOCKET UND_ERR_CLOSED HPE_INVALID_CONSTANT ERR_TLS ERR_TLS_CERT_ALTNAME_INVALID
    ERR_SSL_WRONG_VERSION_NUMBER ERR_HTTP2_STREAM_ERROR ERR_NETWORK ERR_STREAM_PREMATURE_CLOSE CERT_HAS_EXPIRED
    SELF_SIGNED_CERT_IN_CHAIN DEPTH_ZERO_SELF_SIGNED_CERT UNABLE_TO_VERIFY_LEAF_SIGNATURE`.split(/\s+/)
  )("is one with the code %s", (code) => {
    assert.strictEqual(of(withFields("x", { code }))._tag, "ConnectionError")
    assert.strictEqual(of(withFields("x", { code: `X${code}` }))._tag, "CustomProviderError")
    assert.strictEqual(of(withFields("x", { code: `${code}-X` }))._tag, "CustomProviderError")
  })

  it.each(["UND_ERR_INVALID_ARG", "ERR_BAD_REQUEST", "ENOENT", "CERT_", ""])("is none with the code %j", (code) => {
    assert.strictEqual(of(withFields("x", { code }))._tag, "CustomProviderError")
  })

  it.each(["fetch failed", "Failed to fetch", "Load failed", "terminated", "NetworkError when attempting"])(
    "is a TypeError that says %s",
    (words) => {
      assert.strictEqual(of(new TypeError(words))._tag, "ConnectionError")
      assert.strictEqual(of(new TypeError(`x ${words}`))._tag, "CustomProviderError")
      assert.strictEqual(of(new Error(words))._tag, "CustomProviderError")
    }
  )

  it("is no TypeError that says a longer word", () => {
    assert.strictEqual(of(new TypeError("NetworkErrors"))._tag, "CustomProviderError")
  })

  it("is an SDK's error of that class", () => {
    class APIConnectionError extends Error {}
    class APIConnectionTimeoutError extends APIConnectionError {}

    assert.strictEqual(of(new APIConnectionError("x"))._tag, "ConnectionError")
    assert.strictEqual(of(new APIConnectionTimeoutError("x"))._tag, "TimeoutError")
  })

  it("is told by the outermost cause that has a code", () => {
    const inner = withFields("inner", { code: "EPIPE" })
    const outer = new TypeError("fetch failed", { cause: withFields("outer", { code: "ECONNRESET", cause: inner }) })

    assert.strictEqual(of(outer).message, "custom: connection failed: ECONNRESET: outer")
    assert.strictEqual(of(new TypeError("fetch failed")).message, "custom: connection failed: fetch failed")
    assert.strictEqual(of(withFields("", { code: "EPIPE" })).message, "custom: connection failed: EPIPE")
  })

  it.each([
    [7, "ConnectionError"],
    [8, "CustomProviderError"]
  ])("behind %d others is %s", (depth, tag) => {
    const root: Error = withFields("x", { code: "EPIPE" })
    const chain = Array.from({ length: depth }).reduce<Error>((cause) => new Error("y", { cause }), root)

    assert.strictEqual(of(chain)._tag, tag)
  })
})

describe("a timeout", () => {
  it.each(["ETIMEDOUT", "ESOCKETTIMEDOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"])("is %s", (code) => {
    assert.strictEqual(of(withFields("slow", { code })).message, `custom: timed out: ${code}: slow`)
    assert.strictEqual(of(withFields("slow", { code }))._tag, "TimeoutError")
  })

  it.each([
    ["timeout of 5ms exceeded", "ECONNABORTED", "TimeoutError"],
    ["a timeout", "ECONNABORTED", "ConnectionError"],
    ["timeouts", "ECONNABORTED", "ConnectionError"],
    ["timeout of 5ms exceeded", "ECONNRESET", "ConnectionError"]
  ])("or not: %s, %s", (words, code, tag) => {
    assert.strictEqual(of(withFields(words, { code }))._tag, tag)
  })
})

describe("a connection that broke", () => {
  it("says why, or that it does not", () => {
    assert.strictEqual(Rejection.breakOf(withFields("a", { code: "EPIPE" }), same).words, "EPIPE: a")
    assert.strictEqual(Rejection.breakOf(new Error("a"), same).words, "a")
    assert.strictEqual(Rejection.breakOf(new Error(""), same).words, "it does not say why")
    assert.strictEqual(Rejection.breakOf(undefined, same).words, "it does not say why")
    const terminated = new TypeError("terminated", { cause: withFields("a", { code: "ECONNRESET" }) })
    assert.strictEqual(Rejection.breakOf(terminated, same).words, "ECONNRESET: a")
  })

  it("leaves a name, a message and a code", () => {
    const cause = withFields("a\nb", { name: "N", code: "EPIPE", request: {} })

    assert.deepStrictEqual(Rejection.breakOf(cause, same).trace, { name: "N", message: "a b", code: "EPIPE" })
    assert.deepStrictEqual(Rejection.trace({ name: 1 }, same), { name: "Error", message: "" })
  })
})

describe("what a fuse of its own fails with", () => {
  it.each([
    new ThrottledError({ provider: "a", wait: Duration.zero }),
    new CircuitOpenError({ provider: "a", openUntil: DateTime.unsafeMake(0) }),
    new DeadlineExceededError({ provider: "a", deadline: Duration.zero }),
    new FallbackError({ provider: "a", error: "b" }),
    new UnknownProviderError({ provider: "a", known: [] })
  ])("is a custom error: $_tag", (inner) => {
    assert.isTrue(isLlmFuseError(inner))
    assert.strictEqual(of(inner)._tag, "CustomProviderError")
    assert.strictEqual(of(inner).cause, inner)
    assert.strictEqual(of(inner).isRetryable, inner.isRetryable)
  })
})

describe("a status", () => {
  it.each([
    [200, "InvalidResponseError"],
    [199, "CustomProviderError"],
    [599, "ServerError"],
    [600, "CustomProviderError"],
    [Number.NaN, "CustomProviderError"]
  ])("of %d is %s", (status, tag) => {
    assert.strictEqual(of({ status })._tag, tag)
  })

  it("is the outermost, and one of the last error only where that has one", () => {
    assert.strictEqual(of({ status: 401, statusCode: 500, response: { status: 503 } })._tag, "AuthenticationError")
    assert.strictEqual(of({ statusCode: 401, response: { status: 503 } })._tag, "AuthenticationError")
    assert.strictEqual(of({ status: 401, lastError: { status: 503 } })._tag, "OverloadedError")
    assert.strictEqual(of({ status: 401, lastError: new Error("x") })._tag, "AuthenticationError")
    const own: Record<string, unknown> = { status: 401 }
    own.lastError = own
    assert.strictEqual(of(own)._tag, "AuthenticationError")
  })

  const waitOf = (reason: unknown) =>
    Option.getOrUndefined(Option.map(Option.fromNullable(of(reason).retryAfter), Duration.toMillis))

  it.each([
    [{ response: { headers: { "Retry-After": "5" } }, headers: { "retry-after": "7" } }, 5000],
    [{ headers: { "retry-after": 5 }, responseHeaders: { "retry-after": "7" } }, 5000],
    [{ responseHeaders: { "retry-after": "5" } }, 5000],
    [{ headers: new Map([["Retry-After", "5"]]) }, 5000],
    [{ headers: { "retry-after": true } }, undefined],
    [{ headers: { "retry-after": ["5"] } }, undefined],
    [{ headers: [[null, "5"], "x", ["retry-after"]] }, undefined],
    [{ headers: null }, undefined],
    [{ headers: "retry-after" }, undefined]
  ])("comes with a wait: %j", (reason, wait) => {
    assert.strictEqual(waitOf({ status: 429, ...reason }), wait)
  })

  it.each([
    [{ response: { data: "a" }, responseBody: "b" }, "a"],
    [{ responseBody: "a", error: "b" }, "a"],
    [{ error: { message: "a" }, body: "b" }, "a"],
    [{ error: { error: { message: "a" }, message: "b" } }, "a"],
    [{ error: { message: { detail: "a" } } }, "a"],
    [{ error: ["a"] }, "a"],
    [{ error: { detail: "a" } }, "a"],
    [{ body: "a", message: "b" }, "a"],
    [{ message: "a" }, "a"]
  ])("comes with words: %j", (reason, words) => {
    assert.strictEqual(of({ status: 400, ...reason }).message, `custom: HTTP 400: ${words}`)
  })

  it("comes without words where its body cannot be written", () => {
    const circle: Record<string, unknown> = {}
    circle.circle = circle

    assert.strictEqual(of({ status: 500, body: circle }).message, "custom: HTTP 500")
  })

  it("comes with a body of which only the beginning is read", () => {
    const body = (length: number) => `${" ".repeat(length)}{"code":"model_not_found"}`

    assert.strictEqual(of({ status: 400, body: body(16_384 - 25) })._tag, "ModelNotFoundError")
    assert.strictEqual(of({ status: 400, body: body(16_384 - 24) })._tag, "InvalidRequestError")
  })
})

describe("an error of someone's own", () => {
  it("is kept as the cause only where nothing hangs on it and no secret stands in it", () => {
    const key = "sk-0123456789abcdefghij"
    const quiet = withFields("x", { note: "n", count: 1 })
    const laden = withFields("x", { note: "n", call: () => 1 })
    const telling = Object.assign(new Error("x"), { stack: `at https://me:${key}@x.test` })

    assert.strictEqual(of(quiet).cause, quiet)
    assert.deepStrictEqual(of(laden).cause, { name: "Error", message: "x" })
    assert.deepStrictEqual(of(telling).cause, { name: "Error", message: "x" })
    const silent = Object.assign(new Error(key), { stack: "" })
    assert.deepStrictEqual(of(silent).cause, { name: "Error", message: "<redacted>" })
    assert.deepStrictEqual(of(withFields("x", { nothing: null })).cause, { name: "Error", message: "x" })
  })

  it("may be a function", () => {
    assert.strictEqual(of(Object.assign(() => 1, { status: 503 }))._tag, "OverloadedError")
  })

  it("of ours is retried as it says", () => {
    assert.isFalse(of(new AuthenticationError({ provider: "a" })).isRetryable)
  })
})
