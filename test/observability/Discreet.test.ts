import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Either, Fiber, Schema } from "effect"
import {
  AllProvidersFailedError,
  type Attempt,
  type CandidateError,
  CircuitOpenError,
  ConnectionError,
  ContentPolicyError,
  CustomProviderError,
  FallbackError,
  type FuseEvent,
  InvalidRequestError,
  InvalidResponseError,
  LlmFuse,
  type LlmFuseError,
  Pricing,
  RateLimitError,
  ServerError,
  StreamInterruptedError,
  ThrottledError,
  TimeoutError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { collect, makeFuse } from "../fuse.ts"

const secret = "the launch code is 0000"
const quoting = { provider: "groq", message: `groq: no answer to "${secret}"`, cause: new Error(secret) }

/** Everything that can be read in a value, also what does not count itself among its own keys. */
const readable = (value: unknown, seen = new Set<unknown>()): string => {
  if (typeof value !== "object" || value === null) return String(value)
  if (seen.has(value)) return ""
  seen.add(value)
  const own = Object.getOwnPropertyNames(value).map((key) => (value as Record<string, unknown>)[key])
  const told = value instanceof Error ? [value.message, value.stack, value.cause, `${value}`] : []
  const story = "attempts" in value ? [value.attempts] : []
  return [...own, ...told, ...story].map((part) => readable(part, seen)).join("\n")
}

/** The events of one call that fails, or is answered in the end. */
const told = (error: CandidateError, captureContent: boolean) =>
  Effect.gen(function* () {
    const groq = FakeProvider.make("groq", { errors: [error as never, error as never, error as never] })
    const fuse = yield* makeFuse({ providers: [groq], captureContent, breaker: { failureThreshold: 1 } })
    const exit = yield* Effect.exit(fuse.ask(secret))
    assert.include(readable(exit), secret, "the caller's own error is whole")
    return fuse.events
  })

const quotingErrors: ReadonlyArray<CandidateError> = [
  new RateLimitError(quoting),
  new ServerError(quoting),
  new ConnectionError(quoting),
  new InvalidRequestError(quoting),
  new CustomProviderError({ ...quoting, retryable: true }),
  new ContentPolicyError({ ...quoting, stage: "response" }),
  new InvalidResponseError({ ...quoting, reason: "schema" }),
  new TimeoutError({ ...quoting, phase: "attempt" }),
  new InvalidRequestError({ ...quoting, reason: "capability" }),
  new ThrottledError({ ...quoting, wait: Duration.zero }),
  new CircuitOpenError(quoting),
  new StreamInterruptedError({ ...quoting, partial: secret, cause: new ServerError(quoting) })
]

describe("events", () => {
  for (const error of quotingErrors) {
    const failureCase = error.failureCase === undefined ? "" : ` (${error.failureCase})`
    it.effect(`quote neither a prompt nor an answer: ${error._tag}${failureCase}`, () =>
      Effect.gen(function* () {
        const events = yield* told(error, false)

        assert.include(
          events.map(({ _tag }) => _tag),
          "CallFailed"
        )
        assert.notInclude(readable(events), secret)
      })
    )
  }

  it.effect("hold the very errors that the caller gets where that is wanted", () =>
    Effect.gen(function* () {
      const error = new RateLimitError(quoting)
      const events = yield* told(error, true)

      const failed = events.find((event) => event._tag === "AttemptFailed")
      assert.strictEqual(failed?.error, error)
    })
  )

  it.effect("of an answer that does not fit the schema do not quote it", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq", { reply: `{"a":"${secret}"}` })] })

      yield* Effect.exit(fuse.object(Schema.Struct({ a: Schema.Number }), secret))

      assert.include(
        fuse.events.map(({ _tag }) => _tag),
        "CallFailed"
      )
      assert.notInclude(readable(fuse.events), secret)
    })
  )

  it.effect("of a refused request do not quote it", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")] })

      yield* Effect.exit(fuse.complete({ messages: [{ role: secret as never, content: "hi" }] }))

      assert.strictEqual(fuse.events.at(-1)?._tag, "CallFailed")
      assert.notInclude(readable(fuse.events), secret)
    })
  )

  it.effect("of a stream that broke, and begins afresh, do not quote it", () =>
    Effect.gen(function* () {
      const cut = new StreamInterruptedError({ provider: "groq", partial: "" })
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { streams: [[secret, cut]] }), FakeProvider.make("gemini")],
        recovery: "restart",
        retry: { maxAttempts: 1 }
      })

      yield* collect(fuse.stream(secret))

      assert.include(
        fuse.events.map(({ _tag }) => _tag),
        "StreamRestarted"
      )
      assert.notInclude(readable(fuse.events), secret)
    })
  )

  it.effect("of a fallback that failed too do not quote it", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { errors: [new InvalidRequestError(quoting)] })],
        fallback: () => Effect.fail({ why: secret })
      })

      yield* Effect.exit(fuse.ask("hi"))

      const last = fuse.events.at(-1)
      assert.isTrue(last?._tag === "CallFailed" && last.error instanceof FallbackError)
      assert.notInclude(readable(fuse.events), secret)
    })
  )
})

/** What a listener gets of an error, told as the end of a call. */
const heard = <E extends LlmFuseError>(error: E) =>
  Effect.gen(function* () {
    const events: Array<FuseEvent> = []
    const failing = FakeProvider.make("groq", { errors: [error as never] })
    const layer = LlmFuse.layer({
      providers: [failing],
      retry: { maxAttempts: 1 },
      onEvent: (event) => void events.push(event)
    })
    yield* Effect.exit(Effect.flatMap(LlmFuse, (fuse) => fuse.complete("hi")).pipe(Effect.provide(layer)))
    const failed = events.find((event) => event._tag === "AttemptFailed")
    return failed?.error as unknown as E
  })

describe("the error of an event", () => {
  it.effect("keeps its class and all facts, and says them in words of its own", () =>
    Effect.gen(function* () {
      const error = yield* heard(
        new RateLimitError({ ...quoting, statusCode: 429, requestId: "r1", retryAfter: Duration.seconds(20) })
      )

      assert.instanceOf(error, RateLimitError)
      assert.deepInclude({ ...error }, { _tag: "RateLimitError", provider: "groq", statusCode: 429, requestId: "r1" })
      assert.strictEqual(error.message, "groq: rate limited (HTTP 429, retry after 20s)")
      assert.isTrue(error.isRetryable)
      assert.isUndefined(error.cause)
    })
  )

  it.effect("names the system's code of a failed connection", () =>
    Effect.gen(function* () {
      const cause = new TypeError("fetch failed", { cause: Object.assign(new Error(secret), { code: "ECONNREFUSED" }) })

      const error = yield* heard(new ConnectionError({ ...quoting, cause }))

      assert.strictEqual(error.message, "groq: connection failed (ECONNREFUSED)")
    })
  )

  it.effect("names no code that is none of the system's", () =>
    Effect.gen(function* () {
      const codes = ["THE_LAUNCH_CODE", "EVERYTHING_IS_LOST_0000", "UND_ERR_SOCKET", "CERT_HAS_EXPIRED"]
      const said = yield* Effect.forEach(codes, (code) =>
        Effect.map(
          heard(new ConnectionError({ ...quoting, cause: Object.assign(new Error(), { code }) })),
          ({ message }) => message
        )
      )

      assert.deepStrictEqual(said, [
        "groq: connection failed",
        "groq: connection failed",
        "groq: connection failed (UND_ERR_SOCKET)",
        "groq: connection failed (CERT_HAS_EXPIRED)"
      ])
    })
  )

  it.effect("keeps the library's own words, which are made of numbers and names alone", () =>
    Effect.gen(function* () {
      const slow = (name: string, more = {}) => FakeProvider.make(name, { latency: "1 hour", ...more })
      const pricing = Either.getOrThrow(Pricing.check({ prices: { dear: { input: 100, output: 1000 } } }, "pricing"))
      const fuse = yield* makeFuse({
        providers: [
          slow("blind", { capabilities: { tools: false } }),
          slow("short", { capabilities: { contextWindow: 1 } }),
          slow("slow", { timeout: "10 seconds" }),
          slow("full", { timeout: "1 hour", limits: { concurrency: 1, maxWait: 0 } }),
          slow("dear", { model: "dear" }),
          slow("out")
        ],
        retry: { maxAttempts: 1 },
        pricing
      })
      yield* fuse.isolate("out")
      const underWay = yield* Effect.fork(fuse.complete("hi", { providers: ["full"] }))
      yield* Effect.exit(fuse.ask("hi", { providers: ["slow"], deadline: "1 second" }))

      yield* Effect.exit(
        fuse.ask(
          { messages: [{ role: "user", content: secret }], tools: [{ name: "t", parameters: Schema.Struct({}) }] },
          { providers: ["blind", "short", "slow", "full", "dear", "out"], maxCost: 1e-9 }
        )
      )
      yield* Effect.exit(fuse.embed(secret, { providers: ["slow"] }))
      yield* Fiber.interrupt(underWay)

      const words = fuse.events.flatMap((event) =>
        "error" in event &&
        event.error instanceof Error &&
        !(event._tag === "FailedOver" || event.error instanceof AllProvidersFailedError)
          ? [event.error.message]
          : []
      )
      assert.deepStrictEqual(words, [
        "no answer within the deadline of 1000 ms",
        "blind: cannot call tools",
        "short: about 5 tokens do not fit its context window of 1",
        "slow: no whole answer within 10000 ms",
        "full: throttled by our own limit: too many calls in flight",
        "dear: another attempt would cost about $0.0005, with $0 spent of at most $1e-9",
        "out: circuit isolated by hand",
        "slow: cannot embed"
      ])
    })
  )

  it.effect("is one value in all events of a call, with the story of the call", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [new ServerError(quoting)] })
      const fuse = yield* makeFuse({
        providers: [groq, FakeProvider.make("gemini", { errors: [new InvalidRequestError(quoting)] })],
        retry: { maxAttempts: 1 }
      })

      yield* Effect.exit(fuse.ask("hi"))

      const errors = fuse.events.flatMap((event) => (event._tag === "AttemptFailed" ? [event.error] : []))
      const failedOver = fuse.events.find((event) => event._tag === "FailedOver")
      const last = fuse.events.at(-1)
      assert.strictEqual(failedOver?.error, errors[0])
      assert.isTrue(last?._tag === "CallFailed")
      const story = (last?._tag === "CallFailed" ? last.error.attempts : []) as ReadonlyArray<Attempt>
      assert.deepStrictEqual(
        story.map(({ error }) => error),
        errors
      )
    })
  )

  it.effect("of a call that nobody answered reads like a report", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [new ServerError({ ...quoting, statusCode: 500 })] })
      const fuse = yield* makeFuse({ providers: [groq], retry: { maxAttempts: 1 } })

      yield* Effect.exit(fuse.ask("hi"))

      const last = fuse.events.at(-1)
      assert(last?._tag === "CallFailed" && last.error instanceof AllProvidersFailedError)
      assert.include(`${last.error}`, "groq: 1 attempt in 0: ServerError: server error (HTTP 500)")
    })
  )

  it.effect("of an open circuit says what opened it, and not in whose words", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [new ServerError(quoting)] })
      const fuse = yield* makeFuse({
        providers: [groq],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1 }
      })
      yield* Effect.exit(fuse.complete("hi"))

      yield* Effect.exit(fuse.complete("hi"))

      const rejected = fuse.events.find((event) => event._tag === "AttemptRejected")
      assert(rejected?.error instanceof CircuitOpenError && rejected.error.openUntil !== undefined)
      assert.strictEqual(DateTime.toEpochMillis(rejected.error.openUntil), 30_000)
      assert.strictEqual(rejected.error.message, "groq: circuit open, opened by: ServerError")
      assert.instanceOf(rejected.error.openedBy, ServerError)
      assert.notInclude(readable(fuse.events), secret)
    })
  )
})

describe("an error of a class of the caller's own", () => {
  /** As somebody may write it: with arguments of its own, and with fields that nobody knows. */
  class OwnError extends ServerError {
    readonly prompt = secret
    // @effect-diagnostics-next-line overriddenSchemaConstructor:off
    constructor(text: string) {
      super({ provider: "groq", message: text.trim(), statusCode: 500 })
    }
    override get failureCase() {
      return secret
    }
  }

  it.effect("is told as the one of ours that it is, with the facts that we know", () =>
    Effect.gen(function* () {
      const limit = Error.stackTraceLimit
      const events = yield* told(new OwnError(secret), false)

      const failed = events.find((event) => event._tag === "AttemptFailed")
      assert.strictEqual(failed?.error.constructor, ServerError)
      assert.strictEqual(failed?.error.message, "groq: server error (HTTP 500)")
      assert.notInclude(readable(events), secret)
      assert.strictEqual(Error.stackTraceLimit, limit)
    })
  )

  it.effect("that cannot be read is told by its tag, and breaks no call", () =>
    Effect.gen(function* () {
      class UnreadableError extends ServerError {
        override get cause(): unknown {
          throw new TypeError(secret)
        }
      }
      const events: Array<FuseEvent> = []
      const groq = FakeProvider.make("groq", { errors: [new UnreadableError({ provider: "groq" }) as never] })
      const fuse = yield* makeFuse({
        providers: [groq, FakeProvider.make("gemini")],
        retry: { maxAttempts: 1 },
        onEvent: (event) => void events.push(event)
      })

      const { provider } = yield* fuse.ask("hi")

      assert.strictEqual(provider, "gemini")
      const failed = events.find((event) => event._tag === "AttemptFailed")
      assert.deepStrictEqual(failed?.error as unknown, { _tag: "ServerError" })
    })
  )
})
