import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Schema, TestClock } from "effect"
import {
  AllProvidersFailedError,
  DeadlineExceededError,
  FallbackError,
  FuseClient,
  type Options,
  StreamInterruptedError,
  UnknownProviderError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, overloaded, unauthorized } from "./errors.ts"
import { collect, makeFuse, tagsOf } from "./fuse.ts"

const down = () => FakeProvider.make("groq", { errors: outage("groq", 99) })
const retry = { maxAttempts: 1 }

describe("fallback", () => {
  it.effect("a text answers when nobody else does, and the response says so", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [down()], fallback: "Please try later.", retry })

      const response = yield* fuse.ask("hi")

      assert.deepInclude(response, { text: "Please try later.", provider: "fallback", fallback: true, cached: false })
      assert.deepStrictEqual(
        response.attempts.map(({ provider, outcome }) => [provider, outcome]),
        [["groq", "failure"]]
      )
      assert.deepStrictEqual(tagsOf(fuse.events).slice(-2), ["FallbackUsed", "CallSucceeded"])
    })
  )

  it.effect("a function sees the request and the error, and may take its time", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [down()],
        retry,
        fallback: (request, error) =>
          Effect.delay(
            Effect.succeed({ text: `${error._tag} for ${request.messages.length}`, model: "template" }),
            "1 second"
          )
      })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.text, "AllProvidersFailedError for 1")
      assert.strictEqual(response.model, "template")
      assert.strictEqual(Duration.toMillis(response.latency), 1000)
    })
  )

  it.effect("runs too when every circuit is open, and when time is up", () =>
    Effect.gen(function* () {
      const shut = yield* makeFuse({
        providers: [FakeProvider.make("groq", { errors: [unauthorized("groq")] })],
        fallback: (_, error) => (error instanceof AllProvidersFailedError ? `${error.errors.groq?._tag}` : error._tag)
      })
      const late = yield* makeFuse({
        providers: [FakeProvider.make("slow", { latency: "1 hour" })],
        deadline: "1 second",
        fallback: (_, error) => error._tag
      })

      yield* shut.complete("hi")

      assert.strictEqual((yield* shut.complete("hi")).text, "CircuitOpenError")
      assert.strictEqual((yield* late.ask("hi")).text, "DeadlineExceededError")
    })
  )

  it.effect("when it fails too, the error holds both, with the story of the call", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [down()],
        retry,
        fallback: () => Promise.reject(new Error("no template"))
      })

      const fiber = yield* Effect.fork(Effect.flip(fuse.complete("hi")))
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(fiber)

      assert.instanceOf(error, FallbackError)
      assert.instanceOf(error.cause, AllProvidersFailedError)
      assert.deepStrictEqual(error.error, new Error("no template"))
      assert.strictEqual(error.attempts.length, 1)
    })
  )

  it.effect("what it throws is a bug, and reaches the caller as a defect", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [down()],
        retry,
        fallback: () => {
          throw new TypeError("a bug")
        }
      })

      const exit = yield* Effect.exit(fuse.ask("hi"))

      assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
    })
  )

  it.effect("does not stand in for a mistake in the call", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [down()], fallback: "instead" })

      const unknown = yield* Effect.flip(fuse.ask("hi", { providers: ["nobody"] }))
      const wrong = yield* Effect.flip(fuse.ask("hi", { deadline: -1 }))
      const empty = yield* Effect.flip(fuse.ask({ messages: [] }))

      assert.instanceOf(unknown, UnknownProviderError)
      assert.deepStrictEqual([wrong._tag, empty._tag], ["InvalidRequestError", "InvalidRequestError"])
    })
  )

  it.effect("a stream of which nothing has come is answered by it", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [down()], fallback: "Please try later.", retry })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, ["started fallback", "Please try later.", "finished fallback: Please try later."])
    })
  )

  const half = () => FakeProvider.make("groq", { streams: [["half ", overloaded("groq")]] })

  it.effect("a stream that broke after its first content fails, for a second answer would double the first", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [half()], fallback: "instead", retry })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, ["started groq", "half "])
      assert.instanceOf(error, StreamInterruptedError)
    })
  )

  it.effect("where streams restart, what has come is said to be void first", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [half()], fallback: "instead", retry, recovery: "restart" })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events.slice(2), [
        "restarted groq: half ",
        "started fallback",
        "instead",
        "finished fallback: instead"
      ])
    })
  )

  it.effect("a stream that time cuts off amid its content fails, also where streams restart", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("groq", { streams: [["half ", { wait: "10 seconds" }, "rest"]] })
      const fuse = yield* makeFuse({
        providers: [slow],
        fallback: "instead",
        recovery: "restart",
        deadline: "5 seconds"
      })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, ["started groq", "half "])
      assert.instanceOf(error, DeadlineExceededError)
    })
  )

  it.effect("an object is read from it, and has to fit", () =>
    Effect.gen(function* () {
      const schema = Schema.Struct({ city: Schema.String })
      const fits = yield* makeFuse({ providers: [down()], retry, fallback: `{"city":"nowhere"}` })
      const misfit = yield* makeFuse({ providers: [down()], retry, fallback: "Please try later." })

      const response = yield* fits.object(schema, "where?")
      const error = yield* Effect.flip(misfit.object(schema, "where?"))

      assert.deepStrictEqual([response.object, response.fallback], [{ city: "nowhere" }, true])
      assert.instanceOf(error, FallbackError)
    })
  )

  it.effect("is interrupted with the call", () =>
    Effect.gen(function* () {
      let interrupted = false
      const fuse = yield* makeFuse({
        providers: [down()],
        retry,
        fallback: () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              interrupted = true
            })
          )
      })
      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* Effect.yieldNow()

      yield* Fiber.interrupt(fiber)

      assert.isTrue(interrupted)
    })
  )

  it("a client's may be a promise", async () => {
    const client = FuseClient.make({ providers: [down()], retry, fallback: async () => "Please try later." })

    const response = await client.complete("hi")
    await client.close()

    assert.deepInclude(response, { text: "Please try later.", fallback: true })
  })

  it.effect.each([[1], [true], [{}]])("is refused if it is neither a text nor a function: %s", ([fallback]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(makeFuse({ providers: [down()], fallback: fallback as Options["fallback"] }))

      assert.match(`${error}`, /fallback is .*; allowed: a text or a function/)
    })
  )
})
