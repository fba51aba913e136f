import { assert, describe, it } from "@effect/vitest"
import type { ProviderError } from "../../src/model/LlmError.ts"
import * as HttpFailure from "../../src/provider/HttpFailure.ts"

const context = { provider: "p", nowMillis: 0, redact: (text: string) => text }

const read = (status: number, body: string, headers: Record<string, string> = {}): ProviderError =>
  HttpFailure.fromResponse({ ...context, headers, status, body })

const inBand = (error: unknown, headers: Record<string, string> = {}): ProviderError =>
  HttpFailure.inBand({ ...context, headers, error })

describe("what is shown of a failed response", () => {
  it.each([
    [500, "", "p: HTTP 500"],
    [500, '{"message":"busy"}', "p: HTTP 500: busy"],
    [299, '{"error":"busy"}', "p: HTTP 200 with an error: busy"],
    [200, '{"error":{"code":429}}', "p: HTTP 200 with error 429"],
    [200, "[", "p: HTTP 200 with an error"],
    [300, "moved", "p: HTTP 300: a redirect, which is not followed; check baseUrl"],
    [399, "moved", "p: HTTP 399: a redirect, which is not followed; check baseUrl"],
    [400, "moved", "p: HTTP 400: moved"],
    [199, "early", "p: HTTP 199: early"]
  ])("%d %s: %s", (status, body, message) => {
    assert.strictEqual(read(status, body).message, message)
  })

  it.each([
    [500, "", 500],
    [200, '{"error":{"code":429}}', 429],
    [200, '{"error":{"type":"rate_limit_error"}}', 429],
    [200, '{"error":"busy"}', undefined]
  ])("%d %s has the status %s", (status, body, expected) => {
    assert.strictEqual(read(status, body).statusCode, expected)
  })
})

describe("the id of an exchange", () => {
  it("is the first that is there", () => {
    assert.strictEqual(read(500, "", { "x-request-id": "a", "request-id": "b" }).requestId, "a")
    assert.strictEqual(read(500, "", { "x-request-id": "", "request-id": "b" }).requestId, "b")
    assert.strictEqual(read(500, "", { "x-request-id": "" }).requestId, undefined)
  })

  it("is kept of an error within a success", () => {
    assert.strictEqual(inBand({ error: { code: 429 } }, { "x-amzn-requestid": "a" }).requestId, "a")
  })

  it.each([200, 201])("of %d characters is cut to 200", (length) => {
    const { requestId } = read(500, `{"request_id":"${"x".repeat(length)}"}`)

    assert.strictEqual(requestId, length === 200 ? "x".repeat(200) : `${"x".repeat(199)}…`)
  })
})

describe("Bedrock's header", () => {
  it.each(["ThrottlingException", "ThrottlingException:http://x", "ThrottlingException#x"])("%s is a code", (name) => {
    const wrong = name.replace("Throttling", "ServiceQuotaExceeded")

    assert.strictEqual(read(400, "", { "x-amzn-errortype": wrong })._tag, "QuotaExhaustedError")
    assert.strictEqual(read(429, "", { "x-amzn-errortype": name })._tag, "RateLimitError")
  })
})
