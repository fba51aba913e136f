import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { StreamInterruptedError } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"
import { collect, makeFuse } from "../fuse.ts"
import { exportedSpans } from "./exportedSpans.ts"

describe("the events of a call's span", () => {
  it.effect("tell of retries, of failing over, and of the providers that were not asked", () =>
    Effect.gen(function* () {
      const spans = exportedSpans()
      const fuse = yield* makeFuse({
        providers: [
          FakeProvider.make("shut"),
          FakeProvider.make("full", { limits: { requestsPerMinute: 1, burst: 1, maxWait: 0 } }),
          FakeProvider.make("down", { errors: outage("down", 9) }),
          FakeProvider.make("gemini")
        ],
        retry: { maxAttempts: 2, baseDelay: "1 second", jitter: "none" }
      })
      yield* fuse.isolate("shut")
      yield* fuse.complete("hi", { providers: ["full"] })

      yield* spans.traced(fuse.ask("hi"))

      const attempt = (provider: string, number: number, error: string) => ({
        "gen_ai.provider.name": provider,
        "llmfuse.attempt.number": number,
        "error.type": error
      })
      const failedOver = (from: string, to: string, error: string) => [
        "llmfuse.failed_over",
        { "llmfuse.from": from, "llmfuse.to": to, "error.type": error }
      ]
      assert.deepStrictEqual(spans.eventsOfCall(), [
        ["llmfuse.rejected", attempt("shut", 0, "CircuitOpenError")],
        failedOver("shut", "full", "CircuitOpenError"),
        ["llmfuse.rejected", { ...attempt("full", 0, "ThrottledError"), "llmfuse.limiter.wait_ms": 60_000 }],
        failedOver("full", "down", "ThrottledError"),
        ["llmfuse.retry_scheduled", { ...attempt("down", 1, "OverloadedError"), "llmfuse.retry.delay_ms": 1000 }],
        failedOver("down", "gemini", "OverloadedError")
      ])
    })
  )

  it.effect("stand at their time within the span", () =>
    Effect.gen(function* () {
      const spans = exportedSpans()
      const slow = FakeProvider.make("slow", { latency: "1 hour" })
      const fuse = yield* makeFuse({ providers: [slow, FakeProvider.make("quick")], hedge: { delay: "9 seconds" } })

      yield* spans.traced(fuse.ask("hi"))

      const call = spans.spans().find(({ name }) => name === "chat")
      assert.deepStrictEqual(spans.eventsOfCall(), [
        ["llmfuse.hedged", { "llmfuse.from": "slow", "llmfuse.to": "quick" }]
      ])
      assert.strictEqual((call?.events[0]?.time[0] ?? 0) - (call?.startTime[0] ?? 0), 9)
    })
  )

  it.effect("tell of a stream that begins afresh", () =>
    Effect.gen(function* () {
      const spans = exportedSpans()
      const cut = new StreamInterruptedError({ provider: "groq", partial: "" })
      const groq = FakeProvider.make("groq", { streams: [["One ", cut]] })
      const fuse = yield* makeFuse({
        providers: [groq, FakeProvider.make("gemini")],
        retry: { maxAttempts: 1 },
        recovery: "restart"
      })

      yield* spans.traced(collect(fuse.stream("hi")))

      const between = { "llmfuse.from": "groq", "llmfuse.to": "gemini", "error.type": "StreamInterruptedError" }
      assert.deepStrictEqual(spans.eventsOfCall(), [
        ["llmfuse.failed_over", between],
        ["llmfuse.stream_restarted", between]
      ])
    })
  )

  it.effect("tell of answers that stand in: the fallback's, and one that was kept", () =>
    Effect.gen(function* () {
      const broken = exportedSpans()
      const kept = exportedSpans()
      const groq = FakeProvider.make("groq", { errors: outage("groq", 1), reply: { text: "ok", finishReason: "stop" } })
      const fuse = yield* makeFuse({
        providers: [groq],
        retry: { maxAttempts: 1 },
        fallback: "instead",
        cache: { ttl: "1 hour" }
      })

      yield* broken.traced(fuse.ask("hi"))
      yield* fuse.ask("hi")
      yield* kept.traced(fuse.ask("hi"))

      assert.deepStrictEqual(broken.eventsOfCall(), [
        ["llmfuse.fallback_used", { "error.type": "AllProvidersFailedError" }]
      ])
      assert.deepStrictEqual(kept.eventsOfCall(), [
        ["llmfuse.served_from_cache", { "gen_ai.provider.name": "groq", "llmfuse.stale": false }]
      ])
    })
  )

  it.effect("take nothing from those who listen", () =>
    Effect.gen(function* () {
      const told = (use: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) =>
        Effect.gen(function* () {
          const providers = [FakeProvider.make("down", { errors: outage("down", 9) }), FakeProvider.make("gemini")]
          const fuse = yield* makeFuse({ providers })
          yield* use(fuse.ask("hi"))
          return fuse.events.map(({ _tag }) => _tag)
        })

      const traced = yield* told(exportedSpans().traced)
      const untraced = yield* told((effect) => effect)

      assert.deepStrictEqual(traced, untraced)
    })
  )
})
