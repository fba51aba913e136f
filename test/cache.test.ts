import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Schema, Stream, TestClock } from "effect"
import {
  AllProvidersFailedError,
  type CacheStore,
  CacheStoreError,
  type Options,
  Provider,
  RateLimitError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "./errors.ts"
import { collect, makeFuse, tagsOf } from "./fuse.ts"

const cache = { ttl: "10 minutes", staleIfError: "1 hour" } as const
const retry = { maxAttempts: 1 }

/** A provider that numbers its answers; `0` of them cut off by the token limit. */
const numbered = (
  more: { latency?: Duration.DurationInput; finishReason?: "stop" | "length" | "content-filter" } = {}
) => {
  let count = 0
  return FakeProvider.make("groq", {
    model: "llama",
    latency: more.latency,
    reply: () => ({
      text: `answer ${++count}`,
      finishReason: more.finishReason ?? "stop",
      usage: { inputTokens: 3, outputTokens: 4 }
    })
  })
}

describe("cache", () => {
  it.effect("answers again what it has answered, without asking anybody", () =>
    Effect.gen(function* () {
      const groq = numbered()
      const fuse = yield* makeFuse({ providers: [groq], cache })

      const first = yield* fuse.ask("hi")
      const second = yield* fuse.ask("hi")

      assert.deepInclude(first, { text: "answer 1", cached: false })
      assert.strictEqual(first.attempts.length, 1)
      assert.deepInclude(second, { text: "answer 1", provider: "groq", model: "llama", cached: true, attempts: [] })
      assert.strictEqual(Duration.toMillis(second.latency), 0)
      assert.strictEqual(groq.calls, 1)
      assert.deepStrictEqual(tagsOf(fuse.events).slice(-2), ["ServedFromCache", "CallSucceeded"])
    })
  )

  it.effect("asks again after its time, and for anything else", () =>
    Effect.gen(function* () {
      const groq = numbered()
      const fuse = yield* makeFuse({ providers: [groq], cache })
      yield* fuse.ask("hi")

      const other = yield* fuse.ask({ messages: [{ role: "user", content: "hi" }], temperature: 1 })
      yield* TestClock.adjust("10 minutes")
      const late = yield* fuse.ask("hi")

      assert.deepStrictEqual([other.text, late.text], ["answer 2", "answer 3"])
    })
  )

  it.effect.each(["length", "content-filter"] as const)(
    "keeps no answer that is not whole: %s (AgentsKit PR#1225)",
    (finishReason) =>
      Effect.gen(function* () {
        const fuse = yield* makeFuse({ providers: [numbered({ finishReason })], cache })

        yield* fuse.ask("hi")

        assert.strictEqual((yield* fuse.ask("hi")).text, "answer 2")
      })
  )

  it.effect("keeps no fallback", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        errors: outage("groq", 1),
        reply: { text: "real", finishReason: "stop" }
      })
      const fuse = yield* makeFuse({ providers: [groq], cache, retry, fallback: "instead" })

      const first = yield* fuse.ask("hi")
      const second = yield* fuse.ask("hi")

      assert.deepStrictEqual([first.text, second.text], ["instead", "real"])
    })
  )

  const failingLater = () => {
    let isDown = false
    const complete = () =>
      Effect.suspend(() =>
        isDown
          ? Effect.fail(new RateLimitError({ provider: "groq" }))
          : Effect.succeed({ text: "old", finishReason: "stop" } as const)
      )
    return {
      provider: Provider.make({ name: "groq", complete }),
      fail: () => {
        isDown = true
      }
    }
  }

  it.effect("gives a stale answer when every provider fails, before the fallback, and says so", () =>
    Effect.gen(function* () {
      const groq = failingLater()
      const fuse = yield* makeFuse({ providers: [groq.provider], cache, retry, fallback: "instead" })
      yield* fuse.ask("hi")
      groq.fail()
      yield* TestClock.adjust("30 minutes")

      const stale = yield* fuse.ask("hi")
      yield* TestClock.adjust("2 hours")
      const tooOld = yield* fuse.ask("hi")

      assert.deepInclude(stale, { text: "old", cached: true, stale: true })
      assert.deepStrictEqual(
        stale.attempts.map(({ outcome }) => outcome),
        ["failure"]
      )
      assert.deepInclude(tooOld, { text: "instead", fallback: true })
    })
  )

  it.effect("gives a stale answer when time is up", () =>
    Effect.gen(function* () {
      let latency: Duration.DurationInput = 0
      const slow = Provider.make({
        name: "slow",
        complete: () => Effect.delay(Effect.succeed({ text: "old", finishReason: "stop" } as const), latency)
      })
      const fuse = yield* makeFuse({ providers: [slow], cache, deadline: "5 seconds" })
      yield* fuse.ask("hi")
      latency = "1 minute"
      yield* TestClock.adjust("30 minutes")

      const stale = yield* fuse.ask("hi")

      assert.deepInclude(stale, { text: "old", stale: true })
      assert.strictEqual(Duration.toMillis(stale.latency), 5000)
    })
  )

  it.effect("many who ask the same at once are answered by one request; one who leaves harms nobody", () =>
    Effect.gen(function* () {
      const groq = numbered({ latency: "3 seconds" })
      const fuse = yield* makeFuse({ providers: [groq], cache })
      const fibers = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.fork(fuse.complete("hi")))
      yield* TestClock.adjust("1 second")
      const [first, ...others] = fibers
      yield* Fiber.interrupt(first ?? assert.fail("nobody"))

      yield* TestClock.adjust("2 seconds")
      const responses = yield* Fiber.join(Fiber.all(others))

      assert.strictEqual(groq.calls, 1)
      assert.isTrue(responses.every(({ text, cached }) => text === "answer 1" && cached))
    })
  )

  it.effect("the events of who has left end when those who still wait have their answer", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [numbered({ latency: "3 seconds" })], cache })
      const first = yield* Effect.fork(fuse.complete("hi", { tag: "first" }))
      const second = yield* Effect.fork(fuse.complete("hi", { tag: "second" }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(second)

      const id = fuse.events.find((event) => event._tag === "CallStarted" && event.tag === "first")?.callId
      assert.deepStrictEqual(tagsOf(fuse.events.filter(({ callId }) => callId === id)), [
        "CallStarted",
        "AttemptStarted",
        "AttemptSucceeded",
        "CallInterrupted"
      ])
    })
  )

  it.effect("calls share a request where all of them hedge too", () =>
    Effect.gen(function* () {
      const groq = numbered({ latency: "1 second" })
      const fuse = yield* makeFuse({
        providers: [groq, FakeProvider.make("gemini")],
        cache,
        hedge: { delay: "1 minute" }
      })

      const fiber = yield* Effect.fork(Effect.all([fuse.complete("hi"), fuse.complete("hi")], { concurrency: 2 }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)

      assert.strictEqual(groq.calls, 1)
    })
  )

  it.effect("who joins late is not cut off by the deadline of who began", () =>
    Effect.gen(function* () {
      const groq = numbered({ latency: "6 seconds" })
      const fuse = yield* makeFuse({
        providers: [groq],
        cache,
        deadline: "5 seconds"
      })
      const early = yield* Effect.fork(Effect.flip(fuse.complete("hi")))
      yield* TestClock.adjust("3 seconds")
      const late = yield* Effect.fork(Effect.flip(fuse.complete("hi")))
      yield* TestClock.adjust("2 seconds")
      const isEarlyOver = early.unsafePoll() !== null
      const isLateOver = late.unsafePoll() !== null
      yield* TestClock.adjust("3 seconds")

      assert.deepStrictEqual([isEarlyOver, isLateOver], [true, false])
      assert.strictEqual((yield* Fiber.join(late))._tag, "DeadlineExceededError")
    })
  )

  it.effect("a stream is kept when it is whole, and handed out in one piece the next time", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: { text: "one two", finishReason: "stop" } })
      const fuse = yield* makeFuse({ providers: [groq], cache: { ttl: "1 hour" } })

      yield* collect(fuse.stream("hi"))
      const again = yield* collect(fuse.stream("hi"))
      const whole = yield* fuse.ask("hi")

      assert.deepStrictEqual(again.events, ["started groq", "one two", "finished groq: one two"])
      assert.deepInclude(whole, { text: "one two", cached: true })
      assert.strictEqual(groq.calls, 1)
    })
  )

  it.effect("a stream that was left is not kept (gonka#1722)", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: { text: "one two three", finishReason: "stop" } })
      const fuse = yield* makeFuse({ providers: [groq], cache })

      yield* Stream.runDrain(Stream.take(fuse.stream("hi"), 2))
      const whole = yield* fuse.ask("hi")

      assert.deepInclude(whole, { text: "one two three", cached: false })
      assert.strictEqual(groq.calls, 2)
    })
  )

  it.effect("an object that was kept is decoded again", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: { text: `{"at":"2026-11-30T00:00:00Z"}`, finishReason: "stop" } })
      const fuse = yield* makeFuse({ providers: [groq], cache })
      const schema = Schema.Struct({ at: Schema.Date })

      const first = yield* fuse.object(schema, "when?")
      const second = yield* fuse.object(schema, "when?")

      assert.deepStrictEqual(second.object, first.object)
      assert.deepStrictEqual([first.cached, second.cached, groq.calls], [false, true, 1])
    })
  )

  it.effect("failures are not kept", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        errors: outage("groq", 1),
        reply: { text: "real", finishReason: "stop" }
      })
      const fuse = yield* makeFuse({ providers: [groq], cache, retry })

      const error = yield* Effect.flip(fuse.ask("hi"))
      const response = yield* fuse.ask("hi")

      assert.instanceOf(error, AllProvidersFailedError)
      assert.deepInclude(response, { text: "real", cached: false })
    })
  )

  it.effect("can be kept elsewhere as text; a place that fails is reported and fails no call", () =>
    Effect.gen(function* () {
      const texts = new Map<string, string>()
      const failures: Array<string> = []
      const store: CacheStore<string> = {
        get: (key) => Effect.sync(() => (texts.has(key) ? { value: texts.get(key) ?? "", ageMillis: 0 } : undefined)),
        set: (key, value) => Effect.sync(() => void texts.set(key, value)),
        remove: (key) => Effect.sync(() => void texts.delete(key)),
        clear: Effect.sync(() => texts.clear())
      }
      const broken: CacheStore<string> = {
        ...store,
        get: () => Effect.fail(new CacheStoreError({ operation: "get", message: "no connection" }))
      }
      const groq = numbered()
      const one = yield* makeFuse({ providers: [groq], cache: { ttl: "1 hour", store } })
      const another = yield* makeFuse({ providers: [groq], cache: { ttl: "1 hour", store } })
      const without = yield* makeFuse({
        providers: [groq],
        cache: {
          ttl: "1 hour",
          store: broken,
          onStoreError: ({ message }) => Effect.sync(() => void failures.push(message))
        }
      })

      yield* one.ask("hi")
      const shared = yield* another.ask("hi")
      const own = yield* without.ask("hi")

      assert.deepInclude(shared, { text: "answer 1", cached: true })
      assert.deepInclude(own, { text: "answer 2", cached: false })
      assert.deepStrictEqual(failures, ["no connection"])
    })
  )

  it.effect.each([
    ["cache.ttl is 0", { ttl: 0 }],
    ["cache.ttl is undefined", {}],
    ["cache.staleIfError is -1", { ttl: 1, staleIfError: -1 }],
    ["cache.maxEntries is 0.5", { ttl: 1, maxEntries: 0.5 }],
    ["cache.maxBytes is NaN", { ttl: 1, maxBytes: Number.NaN }],
    ["cache.time is not an option", { ttl: 1, time: 1 }]
  ] as const)("wrong options are refused by name: %s", ([message, option]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(makeFuse({ providers: [numbered()], cache: option as Options["cache"] }))

      assert.include(`${error}`, message)
    })
  )
})
