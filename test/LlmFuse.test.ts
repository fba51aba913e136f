import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, ConfigProvider, DateTime, Duration, Effect, Exit, Fiber, Layer, TestClock } from "effect"
import {
  AllProvidersFailedError,
  AuthenticationError,
  type CandidateError,
  CircuitOpenError,
  ContentPolicyError,
  CustomProviderError,
  DeadlineExceededError,
  EmptyResponseError,
  FailoverPolicy,
  Gemini,
  Groq,
  InvalidRequestError,
  InvalidResponseError,
  LlmFuse,
  type LlmFuseError,
  type Options,
  OverloadedError,
  type Provider,
  type ProviderError,
  QuotaExhaustedError,
  RateLimitError,
  ThrottledError,
  TimeoutError,
  UnknownProviderError
} from "llmfuse"
import { FakeHttp, FakeProvider, ScriptedProvider } from "llmfuse/testing"
import { badRequest, outage, overloaded, rateLimited, unauthorized } from "./errors.ts"

/** Waits without jitter: 1 s, 2 s, ... so that a test knows when what happens. */
const exactRetry = { baseDelay: "1 second", multiplier: 2, maxDelay: "10 seconds", jitter: "none" } as const

type TestOptions = Options<ReadonlyArray<FakeProvider | ScriptedProvider | Provider.Provider>>

const make = (options: TestOptions) =>
  Effect.map(Effect.provide(LlmFuse, LlmFuse.layer({ retry: exactRetry, ...options })), (fuse) => ({
    ...fuse,
    /** Asks, and moves the clock until the answer is there. */
    ask: (...call: Parameters<typeof fuse.complete>) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.fork(fuse.complete(...call))
        yield* TestClock.adjust("2 minutes")
        return yield* Fiber.join(fiber)
      })
  }))

/** The record of errors in a total failure. */
const errorsOf = <A, R>(effect: Effect.Effect<A, LlmFuseError, R>) =>
  Effect.map(Effect.flip(effect), (error) => {
    assert.instanceOf(error, AllProvidersFailedError)
    return error.errors
  })

describe("failover", () => {
  it.effect("the first healthy provider answers and nobody else is called", () =>
    Effect.gen(function* () {
      const [groq, gemini] = [FakeProvider.make("groq", { reply: "hello" }), FakeProvider.make("gemini")]
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.complete("hi")

      assert.strictEqual(response.text, "hello")
      assert.strictEqual(response.provider, "groq")
      assert.deepStrictEqual([groq.calls, gemini.calls], [1, 0])
      assert.deepStrictEqual(groq.requests[0]?.messages, [{ role: "user", content: "hi" }])
    })
  )

  it.effect("after three failed attempts the second provider answers", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9) })
      const gemini = FakeProvider.make("gemini", { reply: "from gemini" })
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(response.text, "from gemini")
      assert.deepStrictEqual([groq.calls, gemini.calls], [3, 1])
    })
  )

  it.effect("one transient failure is retried without failover", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 1) })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "groq")
      assert.deepStrictEqual([groq.calls, gemini.calls], [2, 0])
    })
  )

  it.effect("an error that is not retryable makes one call and fails over at once", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [unauthorized("groq")] })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.complete("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.deepStrictEqual([groq.calls, gemini.calls], [1, 1])
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    })
  )

  it.effect("when all fail, the errors name exactly the providers, in order, each with its attempts", () =>
    Effect.gen(function* () {
      const names = ["zeta", "alpha", "mu"]
      const providers = names.map((name) => FakeProvider.make(name, { errors: outage(name, 9) }))
      const fuse = yield* make({ providers })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert.instanceOf(error, AllProvidersFailedError)
      assert.deepStrictEqual(Object.keys(error.errors), names)
      for (const name of names) {
        assert.instanceOf(error.errors[name], OverloadedError)
        assert.strictEqual(error.errors[name]?.attemptCount, 3)
      }
      assert.strictEqual(error.attempts.length, 9)
      assert.include(error.message, "zeta: overloaded; alpha: overloaded; mu: overloaded")
    })
  )

  it.effect("every call begins again with the first provider", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 3) })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [groq, gemini] })

      const first = yield* fuse.ask("hi")
      const second = yield* fuse.ask("hi")

      assert.deepStrictEqual([first.provider, second.provider], ["gemini", "groq"])
    })
  )

  it.effect("a call may name its own providers in its own order", () =>
    Effect.gen(function* () {
      const [a, b, c] = ["a", "b", "c"].map((name) => FakeProvider.make(name, { errors: [badRequest(name)] }))
      assert(a && b && c)
      const fuse = yield* make({ providers: [a, b, c] })

      const errors = yield* errorsOf(fuse.complete("hi", { providers: ["c", "a"] }))

      assert.deepStrictEqual(Object.keys(errors), ["c", "a"])
      assert.deepStrictEqual([a.calls, b.calls, c.calls], [1, 0, 1])
    })
  )

  it.effect("a call that names an unknown provider, none or one twice asks nobody", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq] })

      const unknown = yield* Effect.flip(fuse.complete("hi", { providers: ["grok"] }))
      const none = yield* Effect.flip(fuse.complete("hi", { providers: [] }))
      const twice = yield* Effect.flip(fuse.complete("hi", { providers: ["groq", "groq"] }))

      assert.instanceOf(unknown, UnknownProviderError)
      assert.include(unknown.message, '"grok"')
      assert.deepStrictEqual(unknown.known, ["groq"])
      assert.instanceOf(none, InvalidRequestError)
      assert.instanceOf(twice, InvalidRequestError)
      assert.strictEqual(groq.calls, 0)
    })
  )

  it.effect("a blocked prompt ends the call: nobody else is asked", () =>
    Effect.gen(function* () {
      const blocked = new ContentPolicyError({ provider: "groq", stage: "prompt" })
      const groq = FakeProvider.make("groq", { errors: [blocked] })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [groq, gemini] })

      const error = yield* Effect.flip(fuse.complete("hi"))

      assert.strictEqual(error, blocked)
      assert.strictEqual(blocked.attemptCount, 1)
      assert.strictEqual(blocked.attempts.length, 1)
      assert.strictEqual(gemini.calls, 0)
    })
  )

  it.effect("the strict policy stops at authentication and invalid requests, without calling anybody else", () =>
    Effect.gen(function* () {
      for (const error of [unauthorized("groq"), badRequest("groq")]) {
        const gemini = FakeProvider.make("gemini")
        const fuse = yield* make({
          providers: [FakeProvider.make("groq", { errors: [error] }), gemini],
          failover: FailoverPolicy.strict
        })

        assert.strictEqual(yield* Effect.flip(fuse.complete("hi")), error)
        assert.strictEqual(gemini.calls, 0)
      }
    })
  )

  it.effect("a policy of one's own replaces single cells", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [badRequest("groq"), badRequest("groq")] })
      const fuse = yield* make({
        providers: [groq],
        failover: FailoverPolicy.make({ InvalidRequestError: { retry: "yes" } })
      })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.attempts.length, 3)
    })
  )

  it.effect("a defect of a custom provider is a bug: no retry, no failover, and it reaches the caller", () =>
    Effect.gen(function* () {
      let calls = 0
      const bug = new TypeError("x is undefined")
      const custom = {
        name: "custom",
        complete: () =>
          Effect.suspend((): Effect.Effect<string> => {
            calls += 1
            throw bug
          })
      }
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [custom, gemini], breaker: { failureThreshold: 1 } })

      const exit = yield* Effect.exit(fuse.complete("hi"))

      assert.deepStrictEqual(exit, Exit.die(bug))
      assert.deepStrictEqual([calls, gemini.calls], [1, 0])
      assert.strictEqual(yield* fuse.circuitState("custom"), "Closed")
    })
  )

  it.effect("an answer with nothing in it is asked for once more, then the next provider answers", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: "" })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")] })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(groq.calls, 2)
      assert.instanceOf(response.attempts[0]?.error, EmptyResponseError)
    })
  )

  it.effect("an answer that is none is an InvalidResponseError, a refusal a ContentPolicyError", () =>
    Effect.gen(function* () {
      const broken = { name: "broken", complete: () => Effect.succeed(undefined as unknown as string) }
      const refusing = FakeProvider.make("refusing", { reply: { text: "", refusal: "I can't help with that" } })
      const fuse = yield* make({ providers: [broken, refusing] })

      const errors = yield* errorsOf(fuse.ask("hi"))

      assert.instanceOf(errors.broken, InvalidResponseError)
      assert.instanceOf(errors.refusing, ContentPolicyError)
      assert.include(errors.refusing.message, "I can't help with that")
    })
  )
})

describe("retry", () => {
  it.effect("waits by the policy between attempts", () =>
    Effect.gen(function* () {
      const groq = ScriptedProvider.make("groq", [{ error: () => overloaded("groq") }])
      const fuse = yield* make({ providers: [groq] })

      yield* errorsOf(fuse.ask("hi"))

      assert.deepStrictEqual(
        groq.calls.map(({ at }) => Duration.toMillis(at)),
        [0, 1000, 3000]
      )
    })
  )

  it.effect("never asks earlier than a hint says", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [rateLimited("groq", "7 seconds")] })
      const fuse = yield* make({ providers: [groq] })

      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("6999 millis")
      const before = groq.calls
      yield* TestClock.adjust("1 millis")
      const response = yield* Fiber.join(fiber)

      assert.strictEqual(before, 1)
      assert.strictEqual(Duration.toMillis(response.latency), 7000)
    })
  )

  it.effect("a hint longer than maxDelay goes to the next provider at once and opens the circuit until then", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [rateLimited("groq", "1 hour")] })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")] })

      const response = yield* fuse.complete("hi")
      yield* TestClock.adjust("3599 seconds")
      const meanwhile = yield* fuse.complete("hi")
      yield* TestClock.adjust("1 second")
      const after = yield* fuse.complete("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(meanwhile.provider, "gemini")
      assert.instanceOf(meanwhile.attempts[0]?.error, CircuitOpenError)
      assert.strictEqual(after.provider, "groq")
    })
  )

  it.effect("the provider's own word on retrying outranks the table", () =>
    Effect.gen(function* () {
      const no = new OverloadedError({ provider: "groq", shouldRetry: false })
      const yes = new AuthenticationError({ provider: "gemini", shouldRetry: true })
      const groq = FakeProvider.make("groq", { errors: [no] })
      const gemini = FakeProvider.make("gemini", { errors: [yes] })
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.deepStrictEqual([groq.calls, gemini.calls], [1, 2])
    })
  )

  it.effect("a silent provider is not asked twice while another is left", () =>
    Effect.gen(function* () {
      const silent = ScriptedProvider.make("silent", [{ silent: true }])
      const fuse = yield* make({ providers: [silent, FakeProvider.make("gemini")] })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(silent.calls.length, 1)
      assert.strictEqual(Duration.toMillis(response.latency), 30_000)
    })
  )

  it.effect(
    "a silent provider is asked again when nobody else is left, be it the last or the others' circuits open",
    () =>
      Effect.gen(function* () {
        const silent = ScriptedProvider.make("silent", [{ silent: true }, { from: 20_000, reply: "awake" }])
        const broken = FakeProvider.make("broken", { errors: outage("broken", 99) })
        const fuse = yield* make({
          providers: [silent, broken],
          timeouts: { attempt: "5 seconds" },
          retry: { ...exactRetry, maxAttempts: 9 },
          breaker: { failureThreshold: 1, resetTimeout: "1 hour" }
        })
        yield* errorsOf(fuse.ask("hi", { providers: ["broken"] }))
        silent.calls.length = 0

        const response = yield* fuse.ask("hi")

        assert.strictEqual(response.text, "awake")
      })
  )

  it.effect("stops when other calls have opened the circuit meanwhile", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [overloaded("groq"), unauthorized("groq"), overloaded("groq")] })
      const fuse = yield* make({ providers: [groq] })

      const retrying = yield* Effect.fork(Effect.flip(fuse.complete("one")))
      yield* TestClock.adjust("500 millis")
      yield* Effect.flip(fuse.complete("two"))
      yield* TestClock.adjust("1 minute")
      const error = yield* Fiber.join(retrying)

      assert.strictEqual(groq.calls, 2)
      assert.instanceOf(error, AllProvidersFailedError)
      assert.instanceOf(error.errors.groq, OverloadedError)
    })
  )
})

describe("circuit breaker", () => {
  const brittle = { failureThreshold: 2, resetTimeout: "30 seconds" } as const

  it.effect("after the threshold the provider is skipped", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 99) })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [groq, gemini], breaker: { ...brittle, resetTimeout: "1 hour" } })
      yield* fuse.ask("one")
      yield* fuse.ask("two")

      const third = yield* fuse.ask("three")

      assert.strictEqual(yield* fuse.circuitState("groq"), "Open")
      assert.strictEqual(groq.calls, 6)
      assert.deepStrictEqual(
        third.attempts.map(({ provider, number, outcome }) => [provider, number, outcome]),
        [
          ["groq", 0, "rejected"],
          ["gemini", 1, "success"]
        ]
      )
    })
  )

  for (const isHealthy of [true, false]) {
    it.effect(`after the reset timeout one trial ${isHealthy ? "closes" : "opens"} it again`, () =>
      Effect.gen(function* () {
        const errors = outage("groq", isHealthy ? 1 : 2)
        const groq = FakeProvider.make("groq", { errors })
        const fuse = yield* make({
          providers: [groq, FakeProvider.make("gemini")],
          breaker: { failureThreshold: 1, resetTimeout: "30 seconds" },
          retry: { maxAttempts: 1 }
        })
        yield* fuse.complete("opens it")

        yield* TestClock.adjust("29.9 seconds")
        yield* fuse.complete("too early")
        const callsBefore = groq.calls
        yield* TestClock.adjust("100 millis")
        yield* fuse.complete("trial")

        assert.strictEqual(callsBefore, 1)
        assert.strictEqual(groq.calls, 2)
        assert.strictEqual(yield* fuse.circuitState("groq"), isHealthy ? "Closed" : "Open")
      })
    )
  }

  it.effect("a probe is one attempt: it is never retried", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 99) })
      const fuse = yield* make({ providers: [groq], breaker: { failureThreshold: 1, resetTimeout: "30 seconds" } })
      yield* Effect.fork(Effect.exit(fuse.complete("opens it")))
      yield* TestClock.adjust("3 seconds")
      yield* TestClock.adjust("30 seconds")

      yield* errorsOf(fuse.ask("probe"))

      assert.strictEqual(groq.calls, 4)
    })
  )

  it.effect("all circuits open: nobody is called, and the error says when to try again", () =>
    Effect.gen(function* () {
      const [groq, gemini] = ["groq", "gemini"].map((name) => FakeProvider.make(name, { errors: outage(name, 99) }))
      assert(groq && gemini)
      const fuse = yield* make({
        providers: [groq, gemini],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, resetTimeout: "30 seconds" }
      })
      yield* Effect.exit(fuse.complete("opens both", { providers: ["groq"] }))
      yield* TestClock.adjust("10 seconds")
      yield* Effect.exit(fuse.complete("opens both", { providers: ["gemini"] }))
      const before = [groq.calls, gemini.calls]

      const error = yield* Effect.flip(fuse.complete("hi"))

      assert.instanceOf(error, AllProvidersFailedError)
      for (const name of ["groq", "gemini"]) {
        const reason: CandidateError | undefined = error.errors[name]
        assert.instanceOf(reason, CircuitOpenError)
        assert.instanceOf(reason.openedBy, OverloadedError)
        assert.strictEqual(reason.message, `${name}: circuit open, opened by: ${name}: overloaded`)
        assert.strictEqual(reason.attemptCount, 0)
      }
      assert.deepStrictEqual([groq.calls, gemini.calls], before)
      assert.strictEqual(error.retryAt && DateTime.toEpochMillis(error.retryAt), 30_000)
    })
  )

  const perFailure: ReadonlyArray<readonly [what: string, error: ProviderError, state: "Open" | "Closed"]> = [
    ["an authentication error opens it at once", unauthorized("groq"), "Open"],
    ["an exhausted quota opens it at once", new QuotaExhaustedError({ provider: "groq" }), "Open"],
    ["an invalid request leaves it closed", badRequest("groq"), "Closed"],
    [
      "a custom failure that is not retryable leaves it closed",
      new CustomProviderError({ provider: "groq", retryable: false }),
      "Closed"
    ],
    ["one overload leaves it closed", overloaded("groq"), "Closed"],
    ["one rate limit with a short hint leaves it closed", rateLimited("groq", "2 seconds"), "Closed"]
  ]

  it.effect.each(perFailure)("%s", ([, error, state]) =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [error] })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")], retry: { maxAttempts: 1 } })

      yield* fuse.complete("hi")

      assert.strictEqual(yield* fuse.circuitState("groq"), state)
    })
  )

  it.effect("an exhausted quota opens it until the reset that it states", () =>
    Effect.gen(function* () {
      const quota = new QuotaExhaustedError({ provider: "groq", retryAfter: Duration.hours(6) })
      const groq = FakeProvider.make("groq", { errors: [quota] })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")] })

      yield* fuse.complete("hi")
      yield* TestClock.adjust("5 hours")
      const before = yield* fuse.complete("hi")
      yield* TestClock.adjust("1 hour")
      const after = yield* fuse.complete("hi")

      assert.deepStrictEqual([before.provider, after.provider], ["gemini", "groq"])
    })
  )

  it.effect("does not know a provider that is not in the list", () =>
    Effect.gen(function* () {
      const fuse = yield* make({ providers: [FakeProvider.make("groq")] })

      const error = yield* Effect.flip(fuse.circuitState("gemini"))

      assert.instanceOf(error, UnknownProviderError)
    })
  )

  it.effect("1,000 concurrent calls through one half-open circuit make exactly one request", () =>
    Effect.gen(function* () {
      const groq = ScriptedProvider.make("groq", [
        { error: () => overloaded("groq") },
        { from: "30 seconds", reply: "back", latency: "1 second" }
      ])
      const fuse = yield* make({
        providers: [groq, FakeProvider.make("gemini")],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, resetTimeout: "30 seconds" }
      })
      yield* fuse.complete("opens it")
      yield* TestClock.adjust("30 seconds")

      const fiber = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 1000 }, () => fuse.complete("hi")),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("1 second")
      const responses = yield* Fiber.join(fiber)

      assert.strictEqual(groq.calls.length, 2)
      assert.strictEqual(responses.filter(({ provider }) => provider === "groq").length, 1)
      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
    })
  )
})

describe("limits", () => {
  it.effect("every attempt takes a token: three at 60 per minute and burst 1 take two seconds", () =>
    Effect.gen(function* () {
      const groq = ScriptedProvider.make("groq", [{ error: () => overloaded("groq") }])
      const fuse = yield* make({
        providers: [groq],
        retry: { maxAttempts: 3, baseDelay: 0 },
        limits: { requestsPerMinute: 60, burst: 1 }
      })

      const errors = yield* errorsOf(fuse.ask("hi"))

      assert.deepStrictEqual(
        groq.calls.map(({ at }) => Duration.toMillis(at)),
        [0, 1000, 2000]
      )
      assert.instanceOf(errors.groq, OverloadedError)
      const waits = errors.groq.attempts.map(({ waited }) => waited && Duration.toMillis(waited))
      assert.deepStrictEqual(waits, [undefined, 1000, 1000])
    })
  )

  it.effect("a short wait stays on the first provider", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [FakeProvider.make("groq"), FakeProvider.make("gemini")],
        limits: { requestsPerMinute: 60, burst: 1, maxWait: "1 second" }
      })
      yield* fuse.complete("hi")

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "groq")
      assert.strictEqual(Duration.toMillis(response.latency), 1000)
    })
  )

  it.effect("a long wait goes to the next provider at once, and the circuit stays closed even with threshold 1", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({
        providers: [groq, FakeProvider.make("gemini", { limits: { requestsPerMinute: 1e6 } })],
        limits: { requestsPerMinute: 1, burst: 1, maxWait: "1 second" },
        breaker: { failureThreshold: 1 }
      })
      yield* fuse.complete("hi")

      const response = yield* fuse.complete("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(groq.calls, 1)
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
      const rejected = response.attempts[0]
      assert.strictEqual(rejected?.outcome, "rejected")
      assert.instanceOf(rejected?.error, ThrottledError)
    })
  )

  it.effect("all throttled: each error says how long the wait would have been", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [FakeProvider.make("groq"), FakeProvider.make("gemini")],
        limits: { requestsPerMinute: 1, burst: 1, maxWait: 0 }
      })
      yield* fuse.complete("hi")
      yield* fuse.complete("hi")

      const error = yield* Effect.flip(fuse.complete("hi"))

      assert.instanceOf(error, AllProvidersFailedError)
      const waits = Object.values(error.errors).map((reason: CandidateError) =>
        reason._tag === "ThrottledError" ? Duration.toSeconds(reason.wait) : reason
      )
      assert.deepStrictEqual(waits, [60, 60])
      assert.strictEqual(error.retryAt && DateTime.toEpochMillis(error.retryAt), 60_000)
    })
  )

  it.effect("a provider's own limit beats the default, each field for itself", () =>
    Effect.gen(function* () {
      const own = FakeProvider.make("own", { limits: { requestsPerMinute: 120 } })
      const fuse = yield* make({ providers: [own], limits: { requestsPerMinute: 60, burst: 1 } })
      yield* fuse.complete("hi")

      const response = yield* fuse.ask("hi")

      assert.strictEqual(Duration.toMillis(response.latency), 500)
    })
  )

  it.effect("throttled before a retry, it is the provider's failure that counts", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9) })
      const fuse = yield* make({
        providers: [groq],
        limits: { requestsPerMinute: 1, burst: 1, maxWait: "1 second" },
        breaker: { failureThreshold: 1 }
      })

      const errors = yield* errorsOf(fuse.ask("hi"))

      assert.strictEqual(groq.calls, 1)
      assert.instanceOf(errors.groq, OverloadedError)
      assert.deepStrictEqual(
        errors.groq.attempts.map(({ outcome }) => outcome),
        ["failure", "rejected"]
      )
      assert.strictEqual(yield* fuse.circuitState("groq"), "Open")
    })
  )
})

describe("timeouts and deadline", () => {
  it.effect("an attempt takes 30 seconds at most; a provider's own timeout wins", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("slow", { latency: "1 hour" })
      const quick = FakeProvider.make("quick", { latency: "1 hour", timeout: "2 seconds" })
      const fuse = yield* make({ providers: [slow, quick], retry: { maxAttempts: 1 } })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert.instanceOf(error, AllProvidersFailedError)
      const times = error.attempts.map(({ duration }) => Duration.toMillis(duration))
      assert.deepStrictEqual(times, [30_000, 2000])
      assert.instanceOf(error.errors.slow, TimeoutError)
      assert.strictEqual(error.errors.slow.phase, "attempt")
    })
  )

  it.effect("the deadline ends the call wherever it is, and counts against nobody", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("slow", { latency: "1 hour" })
      const fuse = yield* make({ providers: [slow], breaker: { failureThreshold: 1 } })

      const fiber = yield* Effect.fork(Effect.flip(fuse.complete("hi", { deadline: "5 seconds" })))
      yield* TestClock.adjust("4999 millis")
      const early = fiber.unsafePoll()
      yield* TestClock.adjust("1 millis")
      const error = yield* Fiber.join(fiber)

      assert.isNull(early)
      assert.instanceOf(error, DeadlineExceededError)
      assert.strictEqual(yield* fuse.circuitState("slow"), "Closed")
    })
  )

  it.effect("a backoff that does not fit the deadline is not begun: the next provider is asked at once", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9) })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")], deadline: "2500 millis" })

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(groq.calls, 2)
      assert.strictEqual(Duration.toMillis(response.latency), 1000)
    })
  )

  it.effect("a wait for our own limiter that does not fit the deadline is not begun", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [FakeProvider.make("groq"), FakeProvider.make("gemini", { limits: { requestsPerMinute: 1e6 } })],
        limits: { requestsPerMinute: 6, burst: 1, maxWait: "1 minute" }
      })
      yield* fuse.complete("hi")

      const response = yield* fuse.complete("hi", { deadline: "9 seconds" })

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    })
  )

  it.effect("a wrong deadline of a call is refused before anybody is asked", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq] })

      const error = yield* Effect.flip(fuse.complete("hi", { deadline: -1 }))

      assert.instanceOf(error, InvalidRequestError)
      assert.include(error.message, "deadline is -1")
      assert.strictEqual(groq.calls, 0)
    })
  )
})

describe("the story of a call", () => {
  it.effect("tells every attempt in order, with waits, outcome, error and usage", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: 12, outputTokens: 3 }
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9), latency: "200 millis" })
      const gemini = FakeProvider.make("gemini", {
        reply: { text: "hello", model: "gemini-x", finishReason: "stop", usage },
        latency: "300 millis"
      })
      const fuse = yield* make({ providers: [groq, gemini], retry: { ...exactRetry, maxAttempts: 2 } })

      const response = yield* fuse.ask("hi")

      const story = response.attempts.map((attempt) => ({
        who: `${attempt.provider} ${attempt.number}`,
        at: DateTime.toEpochMillis(attempt.startedAt),
        took: Duration.toMillis(attempt.duration),
        outcome: attempt.outcome,
        error: attempt.error?._tag,
        waited: attempt.waited && Duration.toMillis(attempt.waited),
        usage: attempt.usage
      }))
      const none = { error: undefined, waited: undefined, usage: undefined }
      assert.deepStrictEqual(story, [
        { ...none, who: "groq 1", at: 0, took: 200, outcome: "failure", error: "OverloadedError" },
        { ...none, who: "groq 2", at: 1200, took: 200, outcome: "failure", error: "OverloadedError", waited: 1000 },
        { ...none, who: "gemini 1", at: 1400, took: 300, outcome: "success", usage }
      ])
      assert.strictEqual(Duration.toMillis(response.latency), 1700)
      assert.deepStrictEqual(
        [response.model, response.finishReason, response.usage, response.toolCalls, response.cached],
        ["gemini-x", "stop", usage, [], false]
      )
    })
  )

  it.effect("two calls at once have each their own story", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { latency: "1 second" })
      const fuse = yield* make({ providers: [groq] })

      const fiber = yield* Effect.fork(Effect.all([fuse.complete("a"), fuse.complete("b")], { concurrency: 2 }))
      yield* TestClock.adjust("1 second")
      const responses = yield* Fiber.join(fiber)

      assert.deepStrictEqual(
        responses.map(({ attempts }) => attempts.length),
        [1, 1]
      )
    })
  )
})

describe("interruption", () => {
  it.effect("ends the request, sends nothing more, counts against nobody and gives the probe back", () =>
    Effect.gen(function* () {
      let stopped = 0
      let calls = 0
      const hanging: Provider.Provider = {
        name: "hanging",
        complete: () => {
          calls += 1
          return calls === 1
            ? Effect.fail(overloaded("hanging"))
            : calls === 2
              ? Effect.onInterrupt(Effect.never, () =>
                  Effect.sync(() => {
                    stopped += 1
                  })
                )
              : Effect.succeed("back")
        }
      }
      const gemini = FakeProvider.make("gemini", { errors: outage("gemini", 1) })
      const fuse = yield* make({
        providers: [hanging, gemini],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, resetTimeout: "30 seconds" }
      })
      yield* Effect.exit(fuse.complete("opens both"))
      yield* TestClock.adjust("30 seconds")
      const probe = yield* Effect.fork(fuse.complete("probe"))
      yield* TestClock.adjust("1 second")

      const exit = yield* Fiber.interrupt(probe)
      yield* TestClock.adjust("1 minute")
      const next = yield* fuse.complete("next")

      assert.isTrue(Exit.isInterrupted(exit))
      assert.strictEqual(stopped, 1)
      assert.strictEqual(gemini.calls, 1)
      assert.strictEqual(next.text, "back")
      assert.strictEqual(yield* fuse.circuitState("hanging"), "Closed")
    })
  )

  it.effect("ends a backoff at once", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9) })
      const fuse = yield* make({ providers: [groq] })
      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("500 millis")

      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 minute")

      assert.strictEqual(groq.calls, 1)
    })
  )

  it.effect("a call that waits for our limiter gives its place back", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq], limits: { requestsPerMinute: 60, burst: 1 } })
      yield* fuse.complete("takes the token")
      const waiting = yield* Effect.fork(fuse.complete("waits"))
      yield* TestClock.adjust("500 millis")

      yield* Fiber.interrupt(waiting)
      const response = yield* fuse.ask("next")

      assert.strictEqual(Duration.toMillis(response.latency), 500)
      assert.strictEqual(groq.calls, 2)
    })
  )
})

describe("events", () => {
  it.effect("tell what happens, in order", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const groq = FakeProvider.make("groq", { errors: outage("groq", 2) })
      const fuse = yield* make({
        providers: [groq, FakeProvider.make("gemini")],
        retry: { ...exactRetry, maxAttempts: 2 },
        breaker: { failureThreshold: 1, resetTimeout: "30 seconds" },
        onEvent: (event) => told.push("provider" in event ? `${event._tag} ${event.provider}` : event._tag)
      })
      yield* fuse.ask("one")
      yield* TestClock.adjust("30 seconds")
      yield* fuse.ask("two")

      assert.deepStrictEqual(told, [
        "CallStarted",
        "AttemptStarted groq",
        "AttemptFailed groq",
        "RetryScheduled groq",
        "AttemptStarted groq",
        "AttemptFailed groq",
        "CircuitOpened groq",
        "FailedOver",
        "AttemptStarted gemini",
        "AttemptSucceeded gemini",
        "CallSucceeded gemini",
        "CallStarted",
        "CircuitHalfOpened groq",
        "AttemptStarted groq",
        "AttemptSucceeded groq",
        "CircuitClosed groq",
        "CallSucceeded groq"
      ])
    })
  )

  it.effect("a listener that throws harms no call", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 1) })],
        onEvent: () => {
          throw new Error("listener broke")
        }
      })

      assert.strictEqual((yield* fuse.ask("hi")).text, "ok")
    })
  )
})

describe("options", () => {
  const a = FakeProvider.make("a")

  const wrong: ReadonlyArray<readonly [message: string, options: object]> = [
    ["providers is an empty list; allowed: a list of at least one provider", { providers: [] }],
    ["providers is undefined", {}],
    ['providers is "a"; allowed: each name once', { providers: [a, FakeProvider.make("a")] }],
    ['providers.name is " "', { providers: [FakeProvider.make(" ")] }],
    ['providers.name is "7"', { providers: [FakeProvider.make("7")] }],
    ["providers is [object Object]; allowed: providers: { name, complete }", { providers: [{ name: "a" }] }],
    ["retry.maxAttempts is 0", { providers: [a], retry: { maxAttempts: 0 } }],
    ["breaker.failureThreshold is -1", { providers: [a], breaker: { failureThreshold: -1 } }],
    ["limits.requestsPerMinute is 0", { providers: [a], limits: { requestsPerMinute: 0 } }],
    ["limits.burst is 1.5", { providers: [a], limits: { burst: 1.5 } }],
    [
      "providers.b.limits.requestsPerMinute is NaN",
      { providers: [FakeProvider.make("b", { limits: { requestsPerMinute: Number.NaN } })] }
    ],
    ["providers.b.timeout is 0", { providers: [FakeProvider.make("b", { timeout: 0 })] }],
    [
      "providers.b.capabilities.contextWindow is 0",
      { providers: [FakeProvider.make("b", { capabilities: { contextWindow: 0 } })] }
    ],
    [
      "providers.b.capabilities.fly is not an option",
      { providers: [FakeProvider.make("b", { capabilities: { fly: true } as never })] }
    ],
    ["providers.b.maxEmbeddingInputs is 0", { providers: [FakeProvider.make("b", { maxEmbeddingInputs: 0 })] }],
    ["timeouts.attempt is -1", { providers: [a], timeouts: { attempt: -1 } }],
    ["deadline is 0", { providers: [a], deadline: 0 }],
    ["onEvent is 7", { providers: [a], onEvent: 7 }],
    ['failover is "strict"', { providers: [a], failover: "strict" }],
    ["maxRetries is not an option", { providers: [a], maxRetries: 3 }]
  ]

  it.effect.each(wrong)("refuses: %s", ([message, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(LlmFuse.layer(options as TestOptions)))

      assert.include(String(error).replaceAll('\\"', '"'), message)
    }).pipe(Effect.scoped)
  )

  const badRequests: ReadonlyArray<readonly [message: string, request: unknown]> = [
    ["the prompt is the empty string", ""],
    ["the request is 42", 42],
    ["the request is null", null],
    ["messages is missing", {}],
    ["messages is empty", { messages: [] }],
    ["messages[0].role is", { messages: [{ role: "robot", content: "hi" }] }],
    ["messages[1].content is undefined", { messages: [{ role: "user", content: "hi" }, { role: "user" }] }],
    ["messages[0].content[0] is no part", { messages: [{ role: "user", content: [{ type: "song" }] }] }],
    ["messages[0].content[0] has no url", { messages: [{ role: "user", content: [{ type: "image" }] }] }],
    ["messages[0].content[0].url is", { messages: [{ role: "user", content: [{ type: "image", url: "cat.png" }] }] }],
    [
      "messages[0].content[0].mediaType is",
      { messages: [{ role: "user", content: [{ type: "file", data: "aGk=", mediaType: "pdf" }] }] }
    ],
    ["messages[0].toolCallId is", { messages: [{ role: "tool", content: "4" }] }],
    ["no tool call before it has that id", { messages: [{ role: "tool", content: "4", toolCallId: "a" }] }],
    ["tools[0].name is", { messages: [{ role: "user", content: "hi" }], tools: [{ name: "no blanks" }] }],
    ["tools[1].name is", { messages: [{ role: "user", content: "hi" }], tools: [{ name: "a" }, { name: "a" }] }],
    [
      "tools[0].parameters is 7",
      { messages: [{ role: "user", content: "hi" }], tools: [{ name: "a", parameters: 7 }] }
    ],
    ["toolChoice is", { messages: [{ role: "user", content: "hi" }], toolChoice: "required" }],
    [
      "toolChoice is",
      { messages: [{ role: "user", content: "hi" }], tools: [{ name: "a" }], toolChoice: { name: "b" } }
    ],
    ["responseFormat is", { messages: [{ role: "user", content: "hi" }], responseFormat: "xml" }],
    ["responseFormat.schema is", { messages: [{ role: "user", content: "hi" }], responseFormat: { schema: 7 } }],
    ["reasoning.effort is", { messages: [{ role: "user", content: "hi" }], reasoning: { effort: "huge" } }],
    ["metadata is", { messages: [{ role: "user", content: "hi" }], metadata: { a: 1 } }],
    ["maxTokens is 0", { messages: [{ role: "user", content: "hi" }], maxTokens: 0 }],
    ["temperature is NaN", { messages: [{ role: "user", content: "hi" }], temperature: Number.NaN }],
    ["topP is 2", { messages: [{ role: "user", content: "hi" }], topP: 2 }],
    ["seed is 0.5", { messages: [{ role: "user", content: "hi" }], seed: 0.5 }],
    ["stop is no array", { messages: [{ role: "user", content: "hi" }], stop: "x" }]
  ]

  it.effect.each(badRequests)("a request is looked at before anybody is asked: %s", ([message, request]) =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq] })

      const error = yield* Effect.flip(fuse.complete(request as string))

      assert.instanceOf(error, InvalidRequestError)
      assert.include(error.message, message)
      assert.strictEqual(groq.calls, 0)
    })
  )
})

describe("vendor classes in a list", () => {
  const answer = { model: "m", choices: [{ message: { content: "hello" }, finish_reason: "stop" }] }

  it.effect("tags and values stand side by side, and the layer's type adds up what they need", () =>
    Effect.gen(function* () {
      const http = FakeHttp.make([{ status: 401, body: { error: { message: "bad key" } } }, { body: answer }])
      const layer: Layer.Layer<LlmFuse, unknown, Groq | import("@effect/platform/HttpClient").HttpClient> =
        LlmFuse.layer({ providers: [Groq, Gemini.make({ model: "gemini-x" })] })

      const response = yield* Effect.flatMap(LlmFuse, (fuse) => fuse.complete("hi")).pipe(
        Effect.provide(layer.pipe(Layer.provide(Groq.layer({ model: "groq-x" })), Layer.provide(http.layer))),
        Effect.withConfigProvider(
          ConfigProvider.fromMap(
            new Map([
              ["GROQ_API_KEY", "gk"],
              ["GEMINI_API_KEY", "mk"]
            ])
          )
        )
      )

      assert.strictEqual(response.provider, "gemini")
      assert.deepStrictEqual(
        http.requests.map(({ url }) => new URL(url).host),
        ["api.groq.com", "generativelanguage.googleapis.com"]
      )
    })
  )

  it.effect("a missing key names its variable when the layer is built", () =>
    Effect.gen(function* () {
      const layer = LlmFuse.layer({ providers: [Groq.make({ model: "x" })] })

      const exit = yield* Layer.build(layer).pipe(
        Effect.scoped,
        Effect.provide(FakeHttp.make([]).layer),
        Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
        Effect.exit
      )

      assert.isTrue(Exit.isFailure(exit))
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", "GROQ_API_KEY")
    })
  )

  it.effect("an error of a provider is one of its own class", () =>
    Effect.gen(function* () {
      const http = FakeHttp.make([{ status: 429, headers: { "retry-after": "3600" }, body: {} }])
      const fuse = yield* Effect.provide(
        LlmFuse,
        Layer.provide(LlmFuse.layer({ providers: [Groq.make({ model: "x", apiKey: "secret-key" })] }), http.layer)
      )

      const errors = yield* errorsOf(fuse.complete("hi"))

      assert.instanceOf(errors.groq, RateLimitError)
      assert.deepStrictEqual(errors.groq.retryAfter, Duration.hours(1))
    })
  )
})
