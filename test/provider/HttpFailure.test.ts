import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import * as fc from "fast-check"
import { isLlmFuseError, type ProviderError } from "../../src/model/LlmError.ts"
import * as HttpFailure from "../../src/provider/HttpFailure.ts"
import * as Redaction from "../../src/provider/Redaction.ts"

const context = { provider: "p", headers: {}, nowMillis: 0, redact: (text: string) => text }

const read = (status: number, body: unknown, headers: Record<string, string> = {}): ProviderError =>
  HttpFailure.fromResponse({
    ...context,
    headers,
    status,
    body: typeof body === "string" ? body : JSON.stringify(body)
  })

const kindOf = (error: ProviderError) =>
  error._tag === "ContentPolicyError" ? `${error._tag}:${error.stage}` : error._tag.replace(/Error$/, "")

describe("the status decides where the body says nothing", () => {
  it.each([
    [400, "InvalidRequest"],
    [401, "Authentication"],
    [402, "QuotaExhausted"],
    [403, "Authentication"],
    [404, "ModelNotFound"],
    [405, "InvalidRequest"],
    [408, "Timeout"],
    [409, "Server"],
    [413, "InvalidRequest"],
    [418, "InvalidRequest"],
    [422, "InvalidRequest"],
    [424, "Server"],
    [429, "RateLimit"],
    [498, "Overloaded"],
    [500, "Server"],
    [501, "Server"],
    [502, "Server"],
    [503, "Overloaded"],
    [504, "Timeout"],
    [520, "Server"],
    [521, "Server"],
    [522, "Timeout"],
    [523, "Server"],
    [524, "Timeout"],
    [525, "Server"],
    [526, "Server"],
    [529, "Overloaded"],
    [301, "InvalidRequest"]
  ])("%d is %s", (status, kind) => {
    assert.deepStrictEqual(
      ["", "{}", "null", "<html><title>t</title></html>", "no JSON", "[]"].map((body) => kindOf(read(status, body))),
      Array.from({ length: 6 }, () => `${kind}`)
    )
  })
})

/** Bodies of vendors that are in no fixture, or in other words. */
describe("the body decides where it says more", () => {
  it.each([
    [
      400,
      { error: { message: "Your request exceeds the model's context window.", type: "invalid_request_error" } },
      "ContextLength"
    ],
    [
      400,
      { error: { message: "This model's maximum prompt length is 131072 but the request contains 537812 tokens." } },
      "ContextLength"
    ],
    [400, { error: { message: "Input is too long for requested model." } }, "ContextLength"],
    [
      400,
      { error: { message: "The input (9000 tokens) is longer than the model's context length (8192 tokens)." } },
      "ContextLength"
    ],
    [400, { message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000" }, "ContextLength"],
    [403, { error: { message: "The prompt is too long for this model: 40000 tokens." } }, "ContextLength"],
    [
      422,
      { error: { message: "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000" } },
      "ContextLength"
    ],
    [413, { error: { message: "Request body too large for gpt-4o.", code: "tokens_limit_reached" } }, "ContextLength"],
    [500, { error: { code: 500, message: "Context size has been exceeded.", type: "server_error" } }, "ContextLength"],
    [
      429,
      { error: { message: "Rate limit: Limit 6000, Requested 7001.", code: "rate_limit_exceeded" } },
      "ContextLength"
    ],
    [
      429,
      { error: { message: "Rate limit: Limit 6000, Used 5990, Requested 7.", code: "rate_limit_exceeded" } },
      "RateLimit"
    ],
    [
      400,
      {
        error: {
          message: "max_tokens is too large: 90000. This model supports at most 16384 completion tokens.",
          param: "max_tokens"
        }
      },
      "InvalidRequest"
    ],
    [400, { error: { message: "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes" } }, "InvalidRequest"],
    [
      429,
      { error: { message: "Billing hard limit has been reached", code: "billing_hard_limit_reached" } },
      "QuotaExhausted"
    ],
    [403, { error: { message: "Key limit exceeded (daily limit).", code: 403 } }, "QuotaExhausted"],
    [
      429,
      { error: { message: "You exceeded your current quota, please check your plan and billing details." } },
      "QuotaExhausted"
    ],
    [429, { error: { message: "Rate limit reached on tokens per day (TPD): Limit 100, Used 99" } }, "QuotaExhausted"],
    [429, { error: { message: "Rate limit reached on tokens per minute (TPM); 1000 per day left" } }, "RateLimit"],
    [429, { message: "You have reached your weekly usage limit" }, "QuotaExhausted"],
    [
      429,
      { error: { message: "That model is currently overloaded with other requests.", type: "server_error" } },
      "Overloaded"
    ],
    [500, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "Overloaded"],
    [429, { message: "", type: "", code: "queue_exceeded" }, "Overloaded"],
    [400, { error: { message: "Model Not Exist", type: "invalid_request_error" } }, "ModelNotFound"],
    [
      400,
      { error: { message: "The model `x` has been decommissioned.", code: "model_decommissioned" } },
      "ModelNotFound"
    ],
    [
      403,
      { error: { message: "Project `p` does not have access to model `m`", code: "model_not_found" } },
      "ModelNotFound"
    ],
    [
      400,
      { error: { message: "API key expired. Please renew the API key.", details: [{ reason: "API_KEY_INVALID" }] } },
      "Authentication"
    ],
    [403, { error: { message: "Request blocked by the network policy of your organization" } }, "Authentication"],
    [
      403,
      { error: { message: "Your input was flagged", metadata: { reasons: ["x"], flagged_input: "…" } } },
      "ContentPolicyError:prompt"
    ],
    [400, { error: { message: "Rejected", code: "content_policy_violation" } }, "ContentPolicyError:prompt"],
    [
      400,
      { error: { message: "Your request was rejected as a result of our safety system." } },
      "ContentPolicyError:prompt"
    ],
    [
      400,
      {
        type: "error",
        error: { type: "invalid_request_error", message: "Output blocked by content filtering policy" }
      },
      "ContentPolicyError:response"
    ],
    [400, { error: { message: "an internal error occurred", type: "internal_error" } }, "Server"],
    [400, { error: { message: "Failed to call a function.", code: "tool_use_failed" } }, "InvalidResponse"],
    [501, { error: { code: 501, status: "UNIMPLEMENTED", message: "no" } }, "InvalidRequest"],
    [
      502,
      {
        error: {
          message: "Provider returned error",
          code: 502,
          metadata: {
            raw: '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum","code":"context_length_exceeded"}}'
          }
        }
      },
      "ContextLength"
    ]
  ])("%d %j is %s", (status, body, kind) => {
    assert.strictEqual(kindOf(read(status, body)), kind)
  })

  it("a header names Bedrock's errors", () => {
    const error = read(429, { message: "later" }, { "x-amzn-errortype": "ModelNotReadyException:http://x/" })

    assert.strictEqual(error._tag, "OverloadedError")
  })

  it("a body that was cut still says its code and its message", () => {
    const body = JSON.stringify({
      error: { message: 'Too "long"\nfor it', code: "context_length_exceeded", prompt: "x".repeat(99) }
    })

    const error = read(400, body.slice(0, -20))

    assert.strictEqual(error._tag, "ContextLengthError")
    assert.strictEqual(error.message, 'p: HTTP 400: Too "long" for it')
  })
})

describe("errors within a 200", () => {
  const inBand = (error: unknown, headers = {}) => HttpFailure.inBand({ ...context, headers, error })

  it.each([
    [{ error: { message: "x", code: 502 } }, "Server"],
    [{ error: { message: "x", code: "429" } }, "RateLimit"],
    [{ error: { message: "x", type: "server_error" }, status_code: 503 }, "Overloaded"],
    [{ error: { message: "Overloaded", type: "overloaded_error", details: null }, type: "error" }, "Overloaded"],
    [{ error: { message: "x", type: "rate_limit_error" } }, "RateLimit"],
    [{ error: { message: "x", type: "authentication_error", code: "invalid_request_error" } }, "Authentication"],
    [{ error: { message: "x", code: "insufficient_quota" } }, "QuotaExhausted"],
    [{ error: { message: "x", type: "NotFoundError" } }, "ModelNotFound"],
    [{ error: { message: "x", status: "DEADLINE_EXCEEDED" } }, "Timeout"],
    [{ code: "Some resource has been exhausted", error: "Too many requests" }, "RateLimit"],
    [{ code: "The service is currently unavailable", error: "try later" }, "Overloaded"],
    [[{ error: { code: 503, message: "x", status: "UNAVAILABLE" } }], "Overloaded"],
    [{ error: "over_capacity" }, "Overloaded"],
    [{ error: { message: "The model has crashed" } }, "InvalidResponse"],
    [{ error: {} }, "InvalidResponse"],
    [undefined, "InvalidResponse"]
  ])("%j is %s", (error, kind) => {
    assert.strictEqual(kindOf(inBand(error)), kind)
  })

  it("the wait in the error is read, those of the success around it are not", () => {
    const error = { error: { code: 429, message: "try again in 450ms" } }

    assert.strictEqual(Duration.toMillis(inBand(error, { "retry-after": "55" }).retryAfter ?? 0), 450)
    assert.strictEqual(inBand({ error: { code: 429 } }, { "retry-after": "55" }).retryAfter, undefined)
  })
})

describe("what is said", () => {
  it("the message is one line with the provider, the status and the vendor's words", () => {
    const error = read(429, { error: { message: "Slow\n\n  down,\u0007 please" } })

    assert.strictEqual(error.message, "p: HTTP 429: Slow down, please")
  })

  it("long words are cut", () => {
    assert.strictEqual(read(500, "word ".repeat(1000)).message.length, "p: HTTP 500: ".length + 300)
  })

  it("of a page only the title is told", () => {
    const page = `\n<!DOCTYPE html><html><head><title>api.example.com | 520:\n unknown</title></head><body>${"x".repeat(9999)}`

    assert.strictEqual(read(520, page).message, "p: HTTP 520: api.example.com | 520: unknown")
    assert.strictEqual(read(520, "<html><body>secret</body></html>").message, "p: HTTP 520: an HTML page")
  })

  it.each([
    [{ detail: [{ type: "extra_forbidden", loc: ["body", "foo"], msg: "Extra inputs" }] }, "body.foo: Extra inputs"],
    [{ message: { detail: [{ loc: ["body"], msg: "bad" }] }, object: "error" }, "body: bad"],
    [{ fault: { faultstring: "Invalid", detail: { errorcode: "x" } } }, "Invalid"],
    [{ error: "Too Many Requests", message: "You have exceeded" }, "You have exceeded"],
    [{ title: "Error 522", detail: "No answer in time" }, "No answer in time"],
    ["plain words", "plain words"],
    [{ error: { message: "Provider returned error", metadata: { raw: "busy" } } }, "Provider returned error: busy"]
  ])("%j says %s", (body, words) => {
    assert.strictEqual(read(422, body).message, `p: HTTP 422: ${words}`)
  })

  it.each([
    ["x-request-id"],
    ["request-id"],
    ["apim-request-id"],
    ["mistral-correlation-id"],
    ["inference-id"],
    ["x-generation-id"],
    ["x-amzn-requestid"]
  ])("the id in %s is kept", (header) => {
    assert.strictEqual(read(500, "", { [header]: "req_1" }).requestId, "req_1")
  })

  it("an id in the body is kept where no header has one", () => {
    assert.strictEqual(read(401, { message: "Unauthorized", request_id: "r1" }).requestId, "r1")
  })

  it("the provider's word on retrying outranks the table", () => {
    assert.isFalse(read(429, "", { "x-should-retry": "false" }).isRetryable)
    assert.isTrue(read(400, "", { "x-should-retry": "true" }).isRetryable)
  })

  it("a redirect does not show where to", () => {
    const error = read(302, "<a href='https://x.test/?key=abc'>", { location: "https://x.test/?key=abc" })

    assert.strictEqual(error.message, "p: HTTP 302: a redirect, which is not followed; check baseUrl")
  })
})

describe("keys", () => {
  const key = 'sk-fx"odd/key+0123456789'
  const redact = Redaction.make([key])
  const echoes = [
    { error: { message: `Incorrect API key provided: ${key}.`, code: "invalid_api_key" } },
    { error: { message: "x", metadata: { raw: `Bearer ${key} refused` } } },
    `no JSON: ${key}`,
    `no JSON: ${encodeURIComponent(key)}`,
    `{"error":{"message":"cut ${JSON.stringify(key).slice(1, -1)}`,
    `<html><title>${key}</title></html>`,
    { message: `${"x".repeat(290)} ${key}` },
    { request_id: key },
    { detail: [{ loc: [key], msg: key }] }
  ]

  it.each(echoes.map((body) => [body]))("an echo in %j is taken out", (body) => {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    const headers = { "x-request-id": "id" }
    const error = HttpFailure.fromResponse({ ...context, headers, status: 401, body: text, redact })
    const inBand = HttpFailure.inBand({ ...context, error: typeof body === "string" ? { error: body } : body, redact })

    for (const it of [error, inBand]) {
      const shown = `${inspect(it, { depth: 9, showHidden: true })} ${JSON.stringify(it)} ${String(it)}`
      for (const part of [key, "odd/key", "odd%2Fkey", "0123456789"]) assert.notInclude(shown, part)
    }
  })
})

it("whatever comes, it is an error with a wait that a timer can wait", () => {
  const anything = fc.oneof(fc.string(), fc.json(), fc.constantFrom("<html>", "[", "{", "null", '{"error":null}'))
  const headers = fc.dictionary(
    fc.constantFrom("retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "x-ratelimit-reset", "date"),
    fc.string()
  )

  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), headers, anything, (status, headers, body) => {
      const error = HttpFailure.fromResponse({ ...context, status, headers, body })
      const wait = error.retryAfter === undefined ? 0 : Duration.toMillis(error.retryAfter)

      return isLlmFuseError(error) && wait >= 0 && wait <= 2 ** 31 - 1 && !error.message.includes("\n")
    })
  )
})
