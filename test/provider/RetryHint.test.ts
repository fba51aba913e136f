import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as RetryHint from "../../src/provider/RetryHint.ts"

const now = Date.parse("2026-11-30T00:00:00Z")

const read = (source: Partial<RetryHint.Source>) =>
  RetryHint.read({ status: 429, headers: {}, body: undefined, message: "", nowMillis: now, ...source }).retryAfterMillis

const max = 2 ** 31 - 1

describe("headers", () => {
  it.each([
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": " 1.5 " }, 1500],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "0.0004" }, 1],
    [{ "retry-after": "30s" }, 30_000],
    [{ "retry-after-ms": "1250", "retry-after": "2" }, 1250],
    [{ "retry-after-ms": "1250.4" }, 1251],
    [{ "x-ms-retry-after-ms": "700", "retry-after": "1" }, 700],
    [{ "retry-after-ms": "NaN", "retry-after": "3" }, 3000],
    [{ "retry-after": "Mon, 30 Nov 2026 00:02:00 GMT" }, 120_000],
    [{ "retry-after": "Monday, 30-Nov-26 00:02:00 GMT" }, 120_000],
    [{ "retry-after": "Sun, 29 Nov 2026 23:59:00 GMT" }, 0],
    // A clock that is wrong here is wrong in both dates there.
    [{ "retry-after": "Mon, 30 Nov 2026 01:00:05 GMT", date: "Mon, 30 Nov 2026 01:00:00 GMT" }, 5000],
    [{ "retry-after": "Mon, 30 Nov 2026 00:00:05 GMT", date: "yesterday" }, 5000]
  ] as const)("%j is a wait of %d ms", (headers, millis) => {
    assert.strictEqual(read({ headers }), millis)
  })

  it.each([
    "soon",
    "",
    "-1",
    "NaN",
    "Infinity",
    "1e9",
    "0x10",
    "12 monkeys",
    "2026",
    "Foo-1",
    "Mon, 99 Nov 2026 00:02:00 GMT"
  ])("%j in retry-after is no hint or a sane one", (value) => {
    const wait = read({ headers: { "retry-after": value } })

    assert.isTrue(wait === undefined || (value === "2026" && wait === 2_026_000), String(wait))
  })

  it.each(["99999999999", "9".repeat(400)])("%s seconds are as long as a timer can wait", (value) => {
    assert.strictEqual(read({ headers: { "retry-after": value } }), max)
  })

  it("the provider's word on retrying is read, and nothing else for it", () => {
    const wordOf = (word: string) =>
      RetryHint.read({ status: 500, headers: { "x-should-retry": word }, body: {}, message: "", nowMillis: now })
        .shouldRetry

    assert.deepStrictEqual(["true", "False", "yes", ""].map(wordOf), [true, false, undefined, undefined])
  })

  it("a success has no hint", () => {
    assert.strictEqual(read({ status: 200, headers: { "retry-after": "55" } }), undefined)
  })
})

describe("resets", () => {
  it.each([
    [{ "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s" }, 360_000],
    [{ "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms" }, 120],
    [{ "x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "20.5" }, 20_500],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now / 1000 + 30) }, 30_000],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now + 30_000) }, 30_000],
    [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now - 30_000) }, 0],
    [
      { "anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-11-30T00:00:12Z" },
      12_000
    ],
    [{ "x-ratelimit-reset-tokens": "37" }, 37_000],
    [{ "x-ratelimit-reset-tokens": "-1" }, undefined],
    [{ "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6m0s" }, undefined]
  ] as const)("%j is a wait of %s ms", (headers, millis) => {
    assert.strictEqual(read({ headers }), millis)
  })

  it("only the buckets that are used up count, and of them the last to refill", () => {
    const headers = {
      "x-ratelimit-remaining-requests": "9",
      "x-ratelimit-reset-requests": "24h0m0s",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1s",
      "x-ratelimit-remaining-images": "0",
      "x-ratelimit-reset-images": "3s"
    }

    assert.strictEqual(read({ headers }), 3000)
  })

  it("they are no hint where no limit was hit", () => {
    const headers = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s" }

    assert.deepStrictEqual(
      [400, 500, 503].map((status) => read({ status, headers })),
      [undefined, undefined, undefined]
    )
  })
})

describe("bodies", () => {
  it.each([
    [{ error: { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.4s" }] } }, 34_400],
    [[{ error: { details: [{ retryDelay: "21s" }] } }], 21_000],
    [{ cloudflare_error: true, retry_after: 120 }, 120_000],
    [{ error: { availability: { retry_after: 12 } } }, 12_000],
    [{ error: { metadata: { retry_after_seconds: 4 } } }, 4000],
    [{ error: { metadata: { headers: { "Retry-After": "9" } } } }, 9000],
    [{ error: { metadata: { headers: { "X-RateLimit-Remaining": 0, "X-RateLimit-Reset": now + 5 } } } }, 5],
    [{ retry_after: -3 }, undefined],
    [{ retry_after: Number.NaN }, undefined],
    [{ retry_after: Number.POSITIVE_INFINITY }, max],
    [{ retry_after: null }, undefined],
    [{ error: "text" }, undefined]
  ])("%j is a wait of %s ms", (body, millis) => {
    assert.strictEqual(read({ body }), millis)
  })

  it("a header wins over the body, the body over the message", () => {
    const body = { retry_after: 2 }
    const message = "try again in 3s"

    assert.strictEqual(read({ headers: { "retry-after": "1" }, body, message }), 1000)
    assert.strictEqual(read({ body, message }), 2000)
  })
})

describe("messages", () => {
  it.each([
    ["Please try again in 7.66s. Need more tokens?", 7660],
    ["Please try again in 644ms.", 644],
    ["try again in 9m38.016s", 578_016],
    ["Please retry in 10h17m5.723541104s.", 37_025_724],
    ["Your quota will reset after 2m 13s.", 133_000],
    ["Please retry after 37 seconds.", 37_000],
    ["Retry after: 5 minutes", 300_000],
    ["Limits reset in 1 hour and 5 minutes", 3_900_000],
    ["Available again in about 2 days", 172_800_000],
    ["Please wait for 20 seconds", 20_000],
    ["try again in 2m59.56s.", 179_560]
  ])("%s", (message, millis) => {
    assert.strictEqual(read({ message }), millis)
  })

  it.each([
    "If you created it within the last 5 minutes, please wait a moment and try again.",
    "Please try again later.",
    "retry after 37 monkeys",
    "The server took 20s to answer",
    "try again in -5s"
  ])("no wait: %s", (message) => {
    assert.strictEqual(read({ message }), undefined)
  })

  it("they count only where waiting can help", () => {
    assert.strictEqual(read({ status: 400, message: "try again in 5s" }), undefined)
    assert.strictEqual(read({ status: 503, message: "try again in 5s" }), 5000)
  })

  it("a message of any length is read in an instant", () => {
    const message = `try again in ${"1s ".repeat(50_000)}${"9".repeat(50_000)}`

    assert.strictEqual(read({ message }), 50_000_000)
  })
})

it("whatever is sent, a wait is absent or a time that a timer can wait", () => {
  const word = fc.oneof(
    fc.string(),
    fc.double().map(String),
    fc.bigInt().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString())
  )
  const name = fc.constantFrom(
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "x-ratelimit-reset-tokens",
    "date",
    "anthropic-ratelimit-requests-reset"
  )

  fc.assert(
    fc.property(fc.dictionary(name, word), fc.jsonValue(), word, fc.integer(), (headers, body, message, nowMillis) => {
      const wait = read({ headers, body: { error: { availability: { retry_after: body } } }, message, nowMillis })

      return wait === undefined || (Number.isInteger(wait) && wait >= 0 && wait <= max)
    })
  )
})
