import { assert, describe, it } from "@effect/vitest"
import * as RetryHint from "../../src/provider/RetryHint.ts"

const now = Date.parse("2026-11-30T00:00:00Z")

const hint = (source: Partial<RetryHint.Source>) =>
  RetryHint.read({ status: 429, headers: {}, body: undefined, message: "", nowMillis: now, ...source })

const read = (source: Partial<RetryHint.Source>) => hint(source).retryAfterMillis

const max = 2 ** 31 - 1

describe("a unit", () => {
  it.each([
    [3_000_000, "ns nano nanos nanosecond nanoseconds"],
    [3000, "us µs μs micro micros microsecond microseconds"],
    [3, "ms msec msecs milli millis millisecond milliseconds MS"],
    [0.003, "s sec secs second seconds S"],
    [0.00005, "m min mins minute minutes"],
    [0.0000008333333, "h hr hrs hour hours"],
    [0.0000000347222, "d day days Days"]
  ])("%d of them are 3 ms: %s", (count, words) => {
    const number = count.toFixed(13)
    const others = words.split(" ").filter((unit) => read({ headers: { "retry-after": `${number} ${unit}` } }) !== 3)

    assert.deepStrictEqual(others, [])
  })

  it("is no word that only holds one", () => {
    const words = "xns nsx xus usx xms msx xs sx xm mx xh hx xd dx xnanos nanox xmicro microx xmillis millix".split(" ")

    assert.deepStrictEqual(
      words.filter((unit) => read({ headers: { "retry-after": `5 ${unit}` } }) !== undefined),
      []
    )
  })
})

describe("a date", () => {
  it.each([
    ["Mon, 30 Nov 2026 00:00:05 GMT", 5000],
    ["  Mon, 30 Nov 2026 00:00:05 GMT ", 5000],
    ["Mon,30 Nov 2026 00:00:05 gmt", 5000],
    ["2026-11-30T00:00:05Z", 5000],
    ["2026-11-30T00:00:05.25Z", 5250],
    ["2026-11-30T00:02Z", 120_000],
    ["2026-11-30T01:00:05+01:00", 5000],
    ["2026-11-29T23:00:05-01:00", 5000],
    ["2026-11-30T01:00:05+0100", 5000],
    ["on Mon, 30 Nov 2026 00:00:05 GMT", undefined],
    ["Mon, 30 Nov 2026 00:00:05 GMT (soon)", undefined],
    ["2026-11-30T00:00:05Z (soon)", undefined],
    ["2026-11-30T00:00:05", undefined]
  ])("%j is a wait of %s ms", (value, wait) => {
    assert.strictEqual(read({ headers: { "retry-after": value } }), wait)
  })
})

describe("a reset", () => {
  it.each([
    ["1000000000", 0],
    ["999999999", max],
    ["100000000000", 0],
    ["99999999999", max],
    ["5", 5000],
    ["5s", 5000]
  ])("of %s is a wait of %d ms", (reset, wait) => {
    assert.strictEqual(read({ headers: { "x-ratelimit-reset": reset } }), wait)
  })

  it.each([
    [{ "ratelimit-reset": "5", "ratelimit-remaining": "0" }, 5000],
    [{ "x-x-ratelimit-reset": "5" }, undefined],
    [{ "x-ratelimit-resets": "5" }, undefined],
    [{ "x-anthropic-ratelimit-a-reset": "5" }, undefined],
    [{ "anthropic-ratelimit-a-reset-b": "2026-11-30T00:00:05Z" }, undefined],
    [
      {
        "anthropic-ratelimit-tokens-reset": "2026-11-30T00:00:05Z",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-30T00:00:09Z",
        "anthropic-ratelimit-requests-remaining": "7"
      },
      5000
    ],
    [
      {
        "x-ratelimit-reset-a": "soon",
        "x-ratelimit-remaining-a": "0",
        "x-ratelimit-reset-b": "5",
        "x-ratelimit-remaining-b": "0",
        "x-ratelimit-reset-c": "4",
        "x-ratelimit-remaining-c": "0"
      },
      5000
    ],
    [{ "x-ratelimit-reset-a": "9", "x-ratelimit-remaining-a": "5", "x-ratelimit-reset-b": "7" }, undefined]
  ])("%j is a wait of %s ms", (headers, wait) => {
    assert.strictEqual(read({ headers }), wait)
  })

  it("counts only where a limit was hit", () => {
    const counts = (status: number | undefined) => read({ status, headers: { "x-ratelimit-reset": "5" } })

    assert.deepStrictEqual([undefined, 429, 400, 428, 430, 503].map(counts), [
      5000,
      5000,
      undefined,
      undefined,
      undefined,
      undefined
    ])
  })
})

describe("a body", () => {
  it.each([
    [{ error: { retry_after: 5 } }, 5000],
    [{ error: { retry_after_ms: 5 } }, 5],
    [{ error: { retry_after_seconds: "5" } }, 5000],
    [{ error: { availability: { retry_after: 5 } } }, 5000],
    [{ error: { metadata: { retry_after: 5 } } }, 5000],
    [{ error: { details: { retry_after: 5 } } }, 5000],
    [{ retry_after: 5 }, 5000],
    [{ retry_after: 0 }, 0],
    [{ error: { retry_after: -1 }, retry_after: 2 }, 2000],
    [{ retry_after: ["5"] }, undefined],
    [{ error: { details: [{ retryDelay: "5s" }, { retryDelay: "9s" }] } }, 5000],
    [[{ error: { details: [{ retryDelay: "5s" }] } }], 5000],
    [{ error: { metadata: { headers: { "Retry-After": 5 } } } }, 5000],
    [{ error: { metadata: { headers: { "retry-after": [5] } } } }, undefined],
    [{ error: { metadata: { headers: { "X-RateLimit-Reset": "5" } } } }, 5000]
  ])("%j is a wait of %s ms", (body, wait) => {
    assert.strictEqual(read({ body }), wait)
  })
})

describe("words", () => {
  it.each([
    "Try again in 5s",
    "retry after 5 seconds",
    "Retrying in 5s",
    "please retry for 5s",
    "resets in 5s",
    "reset after 5s",
    "available in 5s",
    "available again in 5s",
    "wait 5s",
    "wait: 5s",
    "try again in about 5s",
    "try again in approximately 5s",
    "try again in ~5s",
    "try again in ~ 5s",
    "try again in 4s, 1000ms",
    "try again in 4s and 1000ms",
    "try again in 4s1000ms",
    "try again in 4.5 s, 0.5s"
  ])("%s", (message) => {
    assert.strictEqual(read({ message }), 5000)
  })

  it("count where the provider is busy or has hit a limit", () => {
    const counts = (status: number | undefined) => read({ status, message: "try again in 5s" }) === 5000

    assert.deepStrictEqual([undefined, 402, 429, 498, 500, 599, 400, 401, 403, 428, 430, 497].map(counts), [
      true,
      true,
      true,
      true,
      true,
      true,
      false,
      false,
      false,
      false,
      false,
      false
    ])
  })
})

describe("a success", () => {
  it("gives no hint, a redirect does", () => {
    const headers = { "retry-after": "5", "x-should-retry": "true" }

    assert.deepStrictEqual(hint({ status: 299, headers }), { retryAfterMillis: undefined, shouldRetry: undefined })
    assert.deepStrictEqual(hint({ status: 300, headers }), { retryAfterMillis: 5000, shouldRetry: true })
    assert.deepStrictEqual(hint({ status: undefined, headers }), { retryAfterMillis: 5000, shouldRetry: true })
  })
})
