import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, TestClock } from "effect"
import { AllProvidersFailedError, FuseClient, OverloadedError } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, overloaded, rateLimited } from "./errors.ts"
import { collect, makeFuse } from "./fuse.ts"

const retry = { maxAttempts: 1 }

describe("health", () => {
  it.effect("of providers that have not been asked says that nothing is wrong", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { model: "llama" }), FakeProvider.make("gemini")]
      })

      assert.deepStrictEqual(yield* fuse.health, [
        {
          provider: "groq",
          model: "llama",
          state: "Closed",
          since: DateTime.unsafeMake(0),
          failureRate: 0,
          latency: {},
          timeToFirstToken: {},
          inFlight: 0,
          queued: 0,
          cost: 0
        },
        {
          provider: "gemini",
          state: "Closed",
          since: DateTime.unsafeMake(0),
          failureRate: 0,
          latency: {},
          timeToFirstToken: {},
          inFlight: 0,
          queued: 0,
          cost: 0
        }
      ])
    })
  )

  it.effect("counts the attempts in flight, without limits too", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq", { latency: "1 second" })] })
      const inFlight = Effect.map(fuse.health, ([groq]) => groq?.inFlight)

      const calls = yield* Effect.fork(
        Effect.all(
          [1, 2, 3].map(() => fuse.complete("hi")),
          { concurrency: 3 }
        )
      )
      const left = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* inFlight, 4)
      yield* Fiber.interrupt(left)
      assert.strictEqual(yield* inFlight, 3)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(calls)
      assert.strictEqual(yield* inFlight, 0)
    })
  )

  it.effect("counts an attempt that runs out of time as in flight until then", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { latency: "1 hour" })],
        timeouts: { attempt: "2 seconds" },
        retry: { maxAttempts: 1 }
      })

      const fiber = yield* Effect.fork(Effect.exit(fuse.complete("hi")))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* fuse.health)[0]?.inFlight, 1)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.strictEqual((yield* fuse.health)[0]?.inFlight, 0)
    })
  )

  it.effect("tells an open circuit, the share of failures and the last error with its time", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [overloaded("groq"), ...outage("groq", 1)] })
      const fuse = yield* makeFuse({
        providers: [groq],
        retry,
        breaker: { failureThreshold: 2, resetTimeout: "30 seconds" }
      })
      yield* TestClock.adjust("5 seconds")
      yield* Effect.exit(fuse.complete("1"))
      yield* TestClock.adjust("1 second")
      yield* Effect.exit(fuse.complete("2"))

      const [health] = yield* fuse.health

      assert.deepInclude(health, {
        state: "Open",
        since: DateTime.unsafeMake(6000),
        openUntil: DateTime.unsafeMake(36_000),
        failureRate: 1
      })
      assert.instanceOf(health?.lastError?.error, OverloadedError)
      assert.deepStrictEqual(health?.lastError?.at, DateTime.unsafeMake(6000))
    })
  )

  it.effect("tells the latency: median, 95th percentile, and an average in which the latest count most", () =>
    Effect.gen(function* () {
      const latencies = [...Array.from({ length: 19 }, () => 1000), 5000]
      let call = 0
      const fuse = yield* makeFuse({
        providers: [
          {
            name: "groq",
            complete: () => Effect.delay(Effect.succeed("ok"), Duration.millis(latencies[call++] ?? 0))
          }
        ]
      })
      for (const _ of latencies) {
        const fiber = yield* Effect.fork(fuse.complete("hi"))
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.join(fiber)
      }

      const [health] = yield* fuse.health

      assert.deepStrictEqual(health?.latency, {
        p50: Duration.millis(1000),
        p95: Duration.millis(1000),
        average: Duration.millis(1800)
      })
    })
  )

  it.effect("tells the time to the first token of streams", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        streams: Array.from({ length: 20 }, () => [
          { wait: "2 seconds" } as const,
          "one ",
          { wait: "5 seconds" } as const,
          "two"
        ])
      })
      const fuse = yield* makeFuse({ providers: [groq] })
      for (let call = 0; call < 20; call++) yield* collect(fuse.stream("hi"))

      const [health] = yield* fuse.health

      assert.deepStrictEqual(health?.timeToFirstToken, { p50: Duration.seconds(2), p95: Duration.seconds(2) })
    })
  )

  it.effect("tells what our limits leave, and how many are in flight", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        latency: "10 seconds",
        limits: { requestsPerMinute: 60, burst: 5, tokensPerMinute: 1000, concurrency: 3 }
      })
      const fuse = yield* makeFuse({ providers: [groq] })
      const fiber = yield* Effect.fork(fuse.complete({ messages: [{ role: "user", content: "hi" }], maxTokens: 100 }))
      yield* Effect.repeatN(Effect.yieldNow(), 9)

      const [health] = yield* fuse.health
      yield* Fiber.interrupt(fiber)
      const [after] = yield* fuse.health

      assert.deepInclude(health, { requestsLeft: 4, tokensLeft: 900, inFlight: 1, queued: 0 })
      assert.deepInclude(after, { inFlight: 0 })
    })
  )

  it("a client tells it too", async () => {
    const client = FuseClient.make({ providers: [FakeProvider.make("groq")] })

    const [health] = await client.health()
    await client.close()

    assert.deepInclude(health, { provider: "groq", state: "Closed" })
  })
})

describe("the report of a call that nobody answered", () => {
  it.effect("says when the first of them may answer again, from when each of them has said it", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [rateLimited("groq", "30 seconds")] })
      const gemini = FakeProvider.make("gemini", { errors: outage("gemini", 1), latency: "25 seconds" })
      const fuse = yield* makeFuse({ providers: [groq, gemini], retry })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert(error instanceof AllProvidersFailedError)
      assert.deepStrictEqual(error.retryAt, DateTime.unsafeMake(30_000))
    })
  )

  it.effect("has a line for each provider with attempts, waits and the reason, and says when to try again", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9), latency: "2 seconds" })
      const gemini = FakeProvider.make("gemini", { errors: [rateLimited("gemini", "1 minute")] })
      const fuse = yield* makeFuse({ providers: [groq, gemini, FakeProvider.make("out")] })
      yield* fuse.isolate("out")

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert.instanceOf(error, AllProvidersFailedError)
      assert.strictEqual(
        error.toString(),
        [
          "AllProvidersFailedError: no provider answered",
          "  groq: 3 attempts in 6s, waited 3s: OverloadedError: overloaded",
          "  gemini: 1 attempt in 0: RateLimitError: rate limited",
          "  out: not asked: CircuitOpenError: circuit isolated by hand",
          "  try again at 1970-01-01T00:01:09.000Z"
        ].join("\n")
      )
    })
  )
})
