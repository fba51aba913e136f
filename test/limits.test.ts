import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Stream, TestClock } from "effect"
import { type ChatRequest, type Options, Provider, StreamInterruptedError, ThrottledError } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, rateLimited } from "./errors.ts"
import { makeFuse, tagsOf } from "./fuse.ts"

const request = (characters: number, maxTokens = 0): ChatRequest => ({
  messages: [{ role: "user", content: "x".repeat(characters) }],
  ...(maxTokens === 0 ? {} : { maxTokens })
})

/** Answers, and says that so many tokens were used. */
const using = (name: string, tokens: number, more: Partial<Parameters<typeof FakeProvider.make>[1]> = {}) =>
  FakeProvider.make(name, { reply: { text: `from ${name}`, usage: { inputTokens: tokens, outputTokens: 0 } }, ...more })

describe("tokens per minute", () => {
  const limits = { tokensPerMinute: 1000, maxWait: "10 seconds" } as const

  it.effect("are reserved before a request goes out: parallel bursts do not overshoot (litellm#8430)", () =>
    Effect.gen(function* () {
      const groq = using("groq", 400)
      const fuse = yield* makeFuse({
        providers: [groq, FakeProvider.make("gemini")],
        limits: undefined,
        retry: { maxAttempts: 1 }
      })
      const limited = yield* makeFuse({ providers: [using("groq", 400, { limits }), FakeProvider.make("gemini")] })

      const calls = Array.from({ length: 5 }, () => limited.complete(request(0, 400)))
      const fiber = yield* Effect.fork(Effect.all(calls, { concurrency: "unbounded" }))
      yield* TestClock.adjust("1 minute")
      const providers = (yield* Fiber.join(fiber)).map(({ provider }) => provider)

      assert.strictEqual(providers.filter((name) => name === "groq").length, 2)
      assert.strictEqual((yield* fuse.ask("hi")).provider, "groq")
    })
  )

  it.effect("what was reserved too much goes back when the provider says what it used", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [using("groq", 10, { limits }), FakeProvider.make("gemini")] })

      const providers: Array<string> = []
      for (const _ of [1, 2, 3, 4, 5]) providers.push((yield* fuse.complete(request(0, 900))).provider)

      assert.deepStrictEqual(providers, ["groq", "groq", "groq", "groq", "groq"])
    })
  )

  it.effect("what was used beyond the estimate is missing afterwards, a minute's worth at most", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [using("groq", 3000, { limits }), FakeProvider.make("gemini")] })

      const first = yield* fuse.complete(request(45))
      const second = yield* fuse.complete(request(45))

      assert.deepStrictEqual([first.provider, second.provider], ["groq", "gemini"])
      const [attempt] = second.attempts
      assert.instanceOf(attempt?.error, ThrottledError)
      assert.strictEqual(attempt.error.limit, "tokens")
      assert.approximately(Duration.toMillis(attempt.error.wait), 60_600, 10)
    })
  )

  it.effect("a failed request gives its tokens back", () =>
    Effect.gen(function* () {
      const groq = using("groq", 900, { limits, errors: outage("groq", 1) })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")], retry: { maxAttempts: 1 } })

      const first = yield* fuse.complete(request(0, 900))
      const second = yield* fuse.complete(request(0, 900))

      assert.deepStrictEqual([first.provider, second.provider], ["gemini", "groq"])
    })
  )

  it.effect("a stream that broke keeps what was reserved, for it has used tokens", () =>
    Effect.gen(function* () {
      const groq = using("groq", 900, {
        limits,
        streams: [["half ", new StreamInterruptedError({ provider: "groq", partial: "" })]]
      })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")], retry: { maxAttempts: 1 } })

      yield* Effect.exit(Stream.runDrain(fuse.stream(request(0, 900))))
      const next = yield* fuse.complete(request(0, 900))

      assert.strictEqual(next.provider, "gemini")
    })
  )

  it.effect("a request larger than a minute's tokens is never sent there", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [using("groq", 1, { limits }), FakeProvider.make("gemini")] })

      const response = yield* fuse.complete(request(45_000))

      assert.strictEqual(response.provider, "gemini")
    })
  )

  it.effect("are counted by an estimator of one's own", () =>
    Effect.gen(function* () {
      const estimateTokens = ({ messages }: ChatRequest) => messages.length * 600
      const groq = FakeProvider.make("groq", { limits: { ...limits, estimateTokens } })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")] })

      const responses = [yield* fuse.complete("1"), yield* fuse.complete("2")]

      assert.deepStrictEqual(
        responses.map(({ provider }) => provider),
        ["groq", "gemini"]
      )
    })
  )

  it.effect("limit embeddings too", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        limits: { tokensPerMinute: 100 },
        embed: ({ input }) => ({ embeddings: input.map(() => [1]) })
      })
      const fuse = yield* makeFuse({ providers: [groq] })
      yield* fuse.embed("x".repeat(400))

      const error = yield* Effect.flip(fuse.embed("x".repeat(400)))

      assert.include(error.message, "throttled by our own limit")
    })
  )
})

describe("calls in flight", () => {
  it.effect("are never more than the limit; the others wait, and go on to the next provider after maxWait", () =>
    Effect.gen(function* () {
      const flying = { now: 0, most: 0 }
      const groq = Provider.make({
        name: "groq",
        limits: { concurrency: 2, maxWait: "3 seconds" },
        complete: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              flying.now += 1
              flying.most = Math.max(flying.most, flying.now)
            }),
            () => Effect.delay(Effect.succeed("ok"), "2 seconds"),
            () =>
              Effect.sync(() => {
                flying.now -= 1
              })
          )
      })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")] })

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 8 }, () => fuse.complete("hi")),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("1 minute")
      const responses = yield* Fiber.join(fiber)

      assert.strictEqual(flying.most, 2)
      const byGroq = responses.filter(({ provider }) => provider === "groq")
      assert.deepStrictEqual(
        byGroq.map(({ latency }) => Duration.toMillis(latency)),
        [2000, 2000, 4000, 4000]
      )
      const waited = responses.find(({ provider }) => provider === "gemini")
      assert.strictEqual(Duration.toMillis(waited?.latency ?? 0), 3000)
      assert.include(waited?.attempts[0]?.error?.message ?? "", "too many calls in flight")
    })
  )

  it.effect("no place is held during backoff (hindsight#3130)", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 1), limits: { concurrency: 1, maxWait: 0 } })
      const fuse = yield* makeFuse({ providers: [groq] })
      const first = yield* Effect.fork(fuse.complete("first"))
      yield* Effect.yieldNow()

      const second = yield* fuse.complete("second")
      yield* TestClock.adjust("1 second")

      assert.strictEqual(second.provider, "groq")
      assert.strictEqual((yield* Fiber.join(first)).provider, "groq")
    })
  )

  it.effect("an attempt that ran out of time keeps its place until it has really ended (opossum)", () =>
    Effect.gen(function* () {
      const seen = { underWay: 0, most: 0 }
      const stubborn = Provider.make({
        name: "stubborn",
        complete: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              seen.underWay += 1
              seen.most = Math.max(seen.most, seen.underWay)
            }),
            () => Effect.uninterruptible(Effect.as(Effect.sleep("10 seconds"), "late")),
            () =>
              Effect.sync(() => {
                seen.underWay -= 1
              })
          )
      })
      const fuse = yield* makeFuse({
        providers: [stubborn],
        retry: { maxAttempts: 1 },
        limits: { concurrency: 1, maxWait: "1 second" },
        timeouts: { attempt: "2 seconds" },
        breaker: { failureThreshold: 1000 }
      })
      const times: Array<string> = []
      const calls = Effect.forEach([1, 2, 3], () =>
        Effect.map(Effect.flip(fuse.complete("hi")), (error) =>
          times.push(error._tag === "AllProvidersFailedError" ? (error.errors.stubborn?._tag ?? "") : error._tag)
        )
      )

      const fiber = yield* Effect.fork(calls)
      yield* TestClock.adjust("9 seconds")
      const before = [...times]
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      const last = yield* Effect.fork(Effect.exit(fuse.complete("hi")))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(last)

      assert.deepStrictEqual(before, ["TimeoutError", "ThrottledError", "ThrottledError"])
      assert.deepStrictEqual(seen, { underWay: 0, most: 1 })
    })
  )

  it.effect("an interrupted call gives its place back at once", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { latency: "1 hour", limits: { concurrency: 1, maxWait: 0 } })
      const fuse = yield* makeFuse({ providers: [groq], timeouts: { attempt: "2 hours" } })
      const first = yield* Effect.fork(fuse.complete("first"))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(first)

      const second = yield* Effect.fork(fuse.complete("second"))
      yield* TestClock.adjust("1 hour")

      assert.strictEqual((yield* Fiber.join(second)).provider, "groq")
    })
  )

  it.effect(
    "callers with different tags take turns, so that one tenant does not starve the others (bike4mind PR#2841)",
    () =>
      Effect.gen(function* () {
        const groq = FakeProvider.make("groq", {
          latency: "1 second",
          limits: { concurrency: 1, maxWait: "1 minute" },
          reply: ({ messages }) => `${messages[0]?.content}`
        })
        const fuse = yield* makeFuse({ providers: [groq] })
        const order: Array<string> = []
        const call = (text: string, tag: string) =>
          Effect.tap(fuse.complete(text, { tag }), () => Effect.sync(() => order.push(text)))

        const fiber = yield* Effect.fork(
          Effect.all([call("a1", "a"), call("a2", "a"), call("a3", "a"), call("a4", "a"), call("b1", "b")], {
            concurrency: "unbounded"
          })
        )
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(fiber)

        assert.isTrue(order.indexOf("b1") <= 2, `${order}`)
      })
  )
})

describe("an adaptive limit", () => {
  it.effect("cuts the rate when the provider says that it limits it, and tells so", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        errors: [rateLimited("groq", "5 seconds")],
        limits: { requestsPerMinute: 60, adaptive: true, maxWait: "30 seconds" }
      })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")] })

      yield* fuse.ask("hi")

      const lowered = fuse.events.find((event) => event._tag === "RateLowered")
      assert.deepInclude(lowered ?? assert.fail("not lowered"), { provider: "groq", from: 60 })
      assert.isBelow(lowered?.to ?? 60, 60)
      assert.strictEqual(tagsOf(fuse.events).filter((tag) => tag === "RateLowered").length, 1)
    })
  )

  it.effect("lets nobody through before the hint is over", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      let isLimited = true
      const groq = Provider.make({
        name: "groq",
        limits: { adaptive: { floor: 30 }, maxWait: "1 minute" },
        complete: () =>
          Effect.clockWith((clock) => {
            times.push(clock.unsafeCurrentTimeMillis())
            if (!isLimited) return Effect.succeed("ok")
            isLimited = false
            return Effect.fail(rateLimited("groq", "8 seconds"))
          })
      })
      const fuse = yield* makeFuse({ providers: [groq], retry: { maxAttempts: 1 } })
      yield* Effect.exit(fuse.complete("first"))

      const fiber = yield* Effect.fork(
        Effect.all([fuse.complete("second"), fuse.complete("third")], { concurrency: 2 })
      )
      yield* TestClock.adjust("2 minutes")
      yield* Fiber.join(fiber)

      assert.isTrue((times[1] ?? 0) >= 8000 && (times[2] ?? 0) > (times[1] ?? 0), `${times}`)
    })
  )
})

describe("wrong limits", () => {
  const wrong: ReadonlyArray<readonly [message: string, limits: unknown]> = [
    ["limits.tokensPerMinute is 0", { tokensPerMinute: 0 }],
    ["limits.tokensPerMinute is Infinity", { tokensPerMinute: Number.POSITIVE_INFINITY }],
    ["limits.concurrency is 1.5", { concurrency: 1.5 }],
    ["limits.concurrency is true", { concurrency: true }],
    ["limits.maxQueue is -1", { maxQueue: -1 }],
    ["limits.adaptive is 1", { adaptive: 1 }],
    ["limits.adaptive.decrease is 0.1", { adaptive: { decrease: 0.1 } }],
    ["limits.adaptive.floor is NaN", { adaptive: { floor: Number.NaN } }],
    ["limits.adaptive.speed is not an option", { adaptive: { speed: 1 } }],
    ["limits.estimateTokens is 4", { estimateTokens: 4 }]
  ]

  it.effect.each(wrong)("are refused by name, for all providers and for one: %s", ([message, limits]) =>
    Effect.gen(function* () {
      const forAll = yield* Effect.flip(
        makeFuse({ providers: [FakeProvider.make("a")], limits: limits as Options["limits"] })
      )
      const forOne = yield* Effect.flip(
        makeFuse({ providers: [FakeProvider.make("a", { limits: limits as Options["limits"] })] })
      )

      assert.include(`${forAll}`, message)
      assert.include(`${forOne}`, `providers.a.${message}`)
    })
  )
})
