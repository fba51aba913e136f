import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { ThrottledError } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import * as RateHeaders from "../../src/provider/RateHeaders.ts"
import { makeFuse } from "../fuse.ts"

const nowMillis = Date.parse("2026-11-30T10:00:00Z")
const read = (headers: Record<string, string>) => RateHeaders.read({ headers, nowMillis })

describe("what is left of a vendor's limits", () => {
  it("is read from the headers of OpenAI, whose resets are Go durations", () => {
    const left = read({
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-remaining-tokens": "149984",
      "x-ratelimit-reset-tokens": "6m0s"
    })

    assert.deepStrictEqual(left, {
      requests: { remaining: 59, resetMillis: 1000 },
      tokens: { remaining: 149_984, resetMillis: 360_000 }
    })
  })

  it("is read from those of Anthropic, whose resets are dates, by the vendor's own clock", () => {
    const left = read({
      date: "Mon, 30 Nov 2026 09:59:00 GMT",
      "anthropic-ratelimit-requests-remaining": "0",
      "anthropic-ratelimit-requests-reset": "2026-11-30T10:00:00Z",
      "anthropic-ratelimit-tokens-remaining": "1000"
    })

    assert.deepStrictEqual(left, { requests: { remaining: 0, resetMillis: 60_000 }, tokens: { remaining: 1000 } })
  })

  it("is read from those of Cerebras, which name the window", () => {
    const tokens = read({ "x-ratelimit-remaining-tokens-minute": "7", "x-ratelimit-reset-tokens-minute": "10.5" })
    const requests = read({ "x-ratelimit-remaining-requests-day": "9", "x-ratelimit-reset-requests-day": "60" })

    assert.deepStrictEqual(tokens, { tokens: { remaining: 7, resetMillis: 10_500 } })
    assert.deepStrictEqual(requests, { requests: { remaining: 9, resetMillis: 60_000 } })
  })

  it("is unknown where no header says it, or none that makes sense", () => {
    assert.isUndefined(read({}))
    assert.isUndefined(read({ "x-ratelimit-remaining-requests": "-1", "x-ratelimit-remaining-tokens": "many" }))
  })
})

describe("a limit that the vendor has corrected", () => {
  const answering = (rateLimits: Parameters<typeof FakeProvider.make>[1]) => FakeProvider.make("groq", rateLimits)

  it.effect("lets nothing go before the reset when the vendor says that nothing is left", () =>
    Effect.gen(function* () {
      const groq = answering({
        limits: { requestsPerMinute: 600, burst: 10 },
        reply: { text: "ok", rateLimits: { requests: { remaining: 0, resetMillis: 20_000 } } }
      })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")] })

      yield* fuse.complete("1")
      const next = yield* fuse.complete("2")

      assert.strictEqual(next.provider, "gemini")
      const error = next.attempts[0]?.error
      assert.instanceOf(error, ThrottledError)
      assert.strictEqual(Duration.toMillis(error.wait), 20_000)
    })
  )

  it.effect("is never raised above its own", () =>
    Effect.gen(function* () {
      const groq = answering({
        limits: { requestsPerMinute: 1, burst: 2 },
        reply: { text: "ok", rateLimits: { requests: { remaining: 5000 } } }
      })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")] })

      const providers: Array<string> = []
      for (const text of ["1", "2", "3"]) providers.push((yield* fuse.complete(text)).provider)

      assert.deepStrictEqual(providers, ["groq", "groq", "gemini"])
    })
  )
})
