import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Stream, TestClock } from "effect"
import {
  AllProvidersFailedError,
  type ChatEvent,
  ContentPolicyError,
  DeadlineExceededError,
  EmptyResponseError,
  type FuseEvent,
  InvalidRequestError,
  LlmFuse,
  type LlmFuseError,
  type Options,
  type Provider,
  type ProviderError,
  StreamInterruptedError,
  TimeoutError,
  UnknownProviderError
} from "llmfuse"
import { FakeProvider, type FakeStep } from "llmfuse/testing"
import { badRequest, outage, overloaded, rateLimited } from "./errors.ts"
import { inShort } from "./fuse.ts"

const exactRetry = { baseDelay: "1 second", multiplier: 2, maxDelay: "10 seconds", jitter: "none" } as const

type TestOptions = Options<ReadonlyArray<FakeProvider | Provider.Provider>>

const make = (options: TestOptions) => Effect.provide(LlmFuse, LlmFuse.layer({ retry: exactRetry, ...options }))

/** Runs a stream to its end, moving the clock until it is there. */
const collect = (stream: Stream.Stream<ChatEvent, LlmFuseError>) =>
  Effect.gen(function* () {
    const events: Array<ChatEvent> = []
    const fiber = yield* Effect.fork(Stream.runForEach(stream, (event) => Effect.sync(() => events.push(event))))
    yield* TestClock.adjust("5 minutes")
    const exit = yield* Fiber.await(fiber)
    return { events, exit, error: Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined }
  })

/** The events in short. */
const brief = (events: ReadonlyArray<ChatEvent>): ReadonlyArray<string> => events.map(inShort)

const cut = (provider: string): ProviderError => new StreamInterruptedError({ provider, partial: "" })

/** Streams that break off after two words, so many. */
const cutShort = (provider: string, length = 1): ReadonlyArray<ReadonlyArray<FakeStep>> =>
  Array.from({ length }, () => ["One ", "two ", cut(provider)])

const restarting = { recovery: "restart" } as const

describe("a stream that goes well", () => {
  it.effect("starts once, hands out the words as they come, and ends with the response", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        model: "llama",
        reply: { text: "One two.", reasoning: "Hm.", finishReason: "stop", usage: { inputTokens: 3, outputTokens: 2 } }
      })
      const fuse = yield* make({ providers: [groq] })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started groq", "Hm.", "One ", "two.", "finished groq: One two."])
      assert.deepStrictEqual(events[0], { _tag: "Started", provider: "groq", model: "llama" })
      const last = events.at(-1)
      assert(last?._tag === "Finished")
      assert.strictEqual(last.response.reasoning, "Hm.")
      assert.strictEqual(last.response.finishReason, "stop")
      assert.deepStrictEqual(last.response.usage, { inputTokens: 3, outputTokens: 2 })
      assert.deepStrictEqual(
        last.response.attempts.map(({ provider, number, outcome }) => `${provider} ${number} ${outcome}`),
        ["groq 1 success"]
      )
    })
  )

  it.effect("is sent when it is run, and again when it is run again", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq] })

      const stream = fuse.stream("hi")
      const before = groq.calls
      yield* Stream.runDrain(stream)
      yield* Stream.runDrain(stream)

      assert.strictEqual(before, 0)
      assert.strictEqual(groq.calls, 2)
    })
  )

  it.effect("whole tool calls come at the end, after their pieces", () =>
    Effect.gen(function* () {
      const piece = { _tag: "ToolCallDelta", index: 0, id: "a", name: "add" } as const
      const groq = FakeProvider.make("groq", {
        streams: [
          [
            { ...piece, arguments: '{"x":' },
            { _tag: "ToolCall", id: "a", name: "add", arguments: { x: 1 } },
            { ...piece, index: 1, id: "b", arguments: "" },
            { _tag: "End", finishReason: "tool-calls" }
          ]
        ]
      })
      const fuse = yield* make({ providers: [groq] })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), [
        "started groq",
        'call 0 {"x":',
        "call 1 ",
        'call a {"x":1}',
        "finished groq: "
      ])
      const last = events.at(-1)
      assert(last?._tag === "Finished")
      assert.deepStrictEqual(last.response.toolCalls, [{ id: "a", name: "add", arguments: { x: 1 } }])
    })
  )

  it.effect("a provider that cannot stream hands its answer out in one piece", () =>
    Effect.gen(function* () {
      const call = { id: "a", name: "add", arguments: {} }
      const complete = () => Effect.succeed({ text: "One two.", reasoning: "Hm.", toolCalls: [call] })
      const fuse = yield* make({ providers: [{ name: "plain", complete }] })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), [
        "started plain",
        "Hm.",
        "One two.",
        "call a {}",
        "finished plain: One two."
      ])
    })
  )

  it.effect("a custom stream may be a stream of plain strings", () =>
    Effect.gen(function* () {
      const stream = () => Stream.make("One ", "", "two.")
      const fuse = yield* make({ providers: [{ name: "own", complete: () => Effect.succeed("never asked"), stream }] })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started own", "One ", "two.", "finished own: One two."])
    })
  )
})

describe("before the first content", () => {
  it.effect("failures are retried and failed over as in complete, and nothing of them is seen", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        errors: [overloaded("groq")],
        streams: [["", { _tag: "ReasoningDelta", text: "" }, cut("groq")], [cut("groq")]]
      })
      const gemini = FakeProvider.make("gemini", { reply: "hello" })
      const fuse = yield* make({ providers: [groq, gemini] })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started gemini", "hello", "finished gemini: hello"])
      assert.strictEqual(groq.calls, 3)
    })
  )

  it.effect("a stream with nothing in it is asked for once more, then failed over", () =>
    Effect.gen(function* () {
      const nothing: ReadonlyArray<FakeStep> = ["", { _tag: "End", finishReason: "stop" }]
      const groq = FakeProvider.make("groq", { streams: [nothing, nothing, nothing] })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini", { reply: "hello" })] })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started gemini", "hello", "finished gemini: hello"])
      assert.strictEqual(groq.calls, 2)
      const last = events.at(-1)
      assert(last?._tag === "Finished")
      assert.instanceOf(last.response.attempts[0]?.error, EmptyResponseError)
    })
  )

  it.effect("streams that are refused for good fail with everybody's errors", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [
          FakeProvider.make("groq", { errors: [badRequest("groq")] }),
          FakeProvider.make("gemini", { errors: outage("gemini", 3) })
        ]
      })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, [])
      assert.instanceOf(error, AllProvidersFailedError)
      assert.deepStrictEqual(Object.keys(error.errors), ["groq", "gemini"])
    })
  )

  it.effect("every attempt's scope is closed before the next attempt begins", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const note = (text: string) => Effect.sync(() => log.push(text))
      const breaking = (name: string): Provider.Provider => ({
        name,
        complete: () => Effect.succeed("never asked"),
        stream: () =>
          Effect.as(
            Effect.acquireRelease(note(`open ${name}`), () =>
              Effect.zipRight(Effect.yieldNow(), note(`close ${name}`))
            ),
            Stream.concat(Stream.make("One "), Stream.fail(cut(name)))
          )
      })
      const fuse = yield* make({ providers: [breaking("a"), breaking("b"), FakeProvider.make("c")], ...restarting })

      yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(log, ["open a", "close a", "open b", "close b"])
    })
  )
})

describe("after the first content, recovery: fail", () => {
  it.effect("ends with StreamInterruptedError, which holds the part and the story; nobody else is asked", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: cutShort("groq") })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [groq, gemini] })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started groq", "One ", "two "])
      assert.instanceOf(error, StreamInterruptedError)
      assert.strictEqual(error.partial, "One two ")
      assert.strictEqual(error.provider, "groq")
      assert.strictEqual(error.attempts.length, 1)
      assert.strictEqual(error.attempts[0]?.error, error)
      assert.strictEqual(gemini.calls, 0)
      assert.strictEqual(groq.calls, 1)
    })
  )

  it.effect("whatever breaks the stream is the cause of the interruption", () =>
    Effect.gen(function* () {
      const reason = overloaded("groq")
      const fuse = yield* make({ providers: [FakeProvider.make("groq", { streams: [["One ", reason]] })] })

      const { error } = yield* collect(fuse.stream("hi"))

      assert.instanceOf(error, StreamInterruptedError)
      assert.strictEqual(error.cause, reason)
      assert.include(error.message, "groq: stream interrupted: overloaded")
    })
  )

  it.effect("what the content policy stops is a ContentPolicyError", () =>
    Effect.gen(function* () {
      const refused = new ContentPolicyError({ provider: "groq", stage: "response" })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({ providers: [FakeProvider.make("groq", { streams: [["One ", refused]] }), gemini] })

      const { error } = yield* collect(fuse.stream("hi"))

      assert.strictEqual(error, refused)
      assert.strictEqual(gemini.calls, 0)
    })
  )

  it.effect("counts for the circuit, as the failure that broke the stream does", () =>
    Effect.gen(function* () {
      const wait = Duration.minutes(10)
      const quota = rateLimited("groq", wait)
      const groq = FakeProvider.make("groq", { streams: [...cutShort("groq", 2), ["One ", quota]] })
      const fuse = yield* make({ providers: [groq], breaker: { failureThreshold: 10 } })

      yield* collect(fuse.stream("hi"))
      yield* collect(fuse.stream("hi"))
      const before = yield* fuse.circuitState("groq")
      yield* collect(fuse.stream("hi"))

      assert.strictEqual(before, "Closed")
      assert.strictEqual(yield* fuse.circuitState("groq"), "Open")
    })
  )

  it.effect("no tool call is handed out from a cut stream", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        streams: [
          [
            { _tag: "ToolCallDelta", index: 0, id: "a", name: "add", arguments: "{}" },
            { _tag: "ToolCall", id: "a", name: "add", arguments: {} },
            cut("groq")
          ]
        ]
      })
      const fuse = yield* make({ providers: [groq] })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started groq", "call 0 {}"])
      assert.instanceOf(error, StreamInterruptedError)
    })
  )
})

describe("after the first content, recovery: restart", () => {
  it.effect("says what is void and begins afresh on the next provider, once", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: cutShort("groq") })
      const gemini = FakeProvider.make("gemini", { reply: "Three four." })
      const fuse = yield* make({ providers: [groq, gemini], ...restarting })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), [
        "started groq",
        "One ",
        "two ",
        "restarted groq: One two ",
        "started gemini",
        "Three ",
        "four.",
        "finished gemini: Three four."
      ])
      const restarted = events.find((event) => event._tag === "Restarted")
      assert.instanceOf(restarted?.reason, StreamInterruptedError)
      assert.strictEqual(groq.calls, 1)
      assert.strictEqual(gemini.calls, 1)
    })
  )

  it.effect("per call it wins over the option", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: cutShort("groq", 2) })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")], ...restarting })

      const first = yield* collect(fuse.stream("hi", { recovery: "fail" }))
      const second = yield* collect(fuse.stream("hi"))

      assert.instanceOf(first.error, StreamInterruptedError)
      assert.strictEqual(brief(second.events).at(-1), "finished gemini: ok")
    })
  )

  it.effect("a provider that fails before its first content shows nothing: one Restarted for one broken stream", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [
          FakeProvider.make("a", { streams: cutShort("a") }),
          FakeProvider.make("b", { errors: outage("b", 3) }),
          FakeProvider.make("c", { streams: cutShort("c") }),
          FakeProvider.make("d", { reply: "Done." })
        ],
        ...restarting
      })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), [
        "started a",
        "One ",
        "two ",
        "restarted a: One two ",
        "started c",
        "One ",
        "two ",
        "restarted c: One two ",
        "started d",
        "Done.",
        "finished d: Done."
      ])
    })
  )

  it.effect("with nobody else left it begins afresh on the same provider, as often as retry allows", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: cutShort("groq", 9) })
      const fuse = yield* make({ providers: [groq], ...restarting, breaker: { failureThreshold: 100 } })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.strictEqual(groq.calls, 3)
      assert.strictEqual(events.filter(({ _tag }) => _tag === "Started").length, 3)
      assert.strictEqual(events.filter(({ _tag }) => _tag === "Restarted").length, 2)
      assert.instanceOf(error, AllProvidersFailedError)
      assert.instanceOf(error.errors.groq, StreamInterruptedError)
      assert.strictEqual((error.errors.groq as StreamInterruptedError).partial, "One two ")
    })
  )

  it.effect("when nobody answers, nothing is declared void after the last word", () =>
    Effect.gen(function* () {
      const fuse = yield* make({
        providers: [
          FakeProvider.make("groq", { streams: cutShort("groq") }),
          FakeProvider.make("gemini", { errors: [badRequest("gemini")] })
        ],
        ...restarting
      })

      const { events, error } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(brief(events), ["started groq", "One ", "two "])
      assert.instanceOf(error, AllProvidersFailedError)
      assert.deepStrictEqual(
        Object.values(error.errors).map(({ _tag }) => _tag),
        ["StreamInterruptedError", "InvalidRequestError"]
      )
    })
  )

  it.effect("a blocked prompt ends it: nobody else is asked", () =>
    Effect.gen(function* () {
      const blocked = new ContentPolicyError({ provider: "groq", stage: "prompt" })
      const gemini = FakeProvider.make("gemini")
      const fuse = yield* make({
        providers: [FakeProvider.make("groq", { streams: [["One ", blocked]] }), gemini],
        ...restarting
      })

      const { error } = yield* collect(fuse.stream("hi"))

      assert.strictEqual(error, blocked)
      assert.strictEqual(gemini.calls, 0)
    })
  )

  it.effect("the events tell the story", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const onEvent = (event: FuseEvent) => {
        told.push("provider" in event ? `${event._tag} ${event.provider}` : event._tag)
      }
      const groq = FakeProvider.make("groq", { streams: cutShort("groq") })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("gemini")], ...restarting, onEvent })

      yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(told, [
        "CallStarted",
        "AttemptStarted groq",
        "AttemptFailed groq",
        "FailedOver",
        "AttemptStarted gemini",
        "StreamRestarted",
        "AttemptSucceeded gemini",
        "CallSucceeded gemini"
      ])
    })
  )
})

describe("the timers of a stream", () => {
  const limits = { headers: "2 seconds", firstToken: "5 seconds", contentGap: "3 seconds" } as const
  const hello = (name = "gemini") => FakeProvider.make(name, { reply: "hello" })

  /** When the first attempt failed, and how. */
  const firstFailure = (events: ReadonlyArray<ChatEvent>) => {
    const last = events.at(-1)
    assert(last?._tag === "Finished")
    const [attempt] = last.response.attempts
    const error = attempt?.error instanceof StreamInterruptedError ? attempt.error.cause : attempt?.error
    assert.instanceOf(error, TimeoutError)
    return { phase: error.phase, after: Duration.toMillis(attempt?.duration ?? 0), message: error.message }
  }

  it.effect("headers: a provider that does not respond is left at that moment, and not asked twice", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { latency: "1 hour" })
      const fuse = yield* make({ providers: [groq, hello()], timeouts: limits })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(firstFailure(events), {
        phase: "headers",
        after: 2000,
        message: "groq: no response within 2000 ms"
      })
      assert.strictEqual(groq.calls, 1)
    })
  )

  it.effect("firstToken: counted from sending; empty deltas are no content", () =>
    Effect.gen(function* () {
      const drip: ReadonlyArray<FakeStep> = Array.from(
        { length: 100 },
        () => ["", { wait: "1 second" }] as const
      ).flat()
      const groq = FakeProvider.make("groq", { latency: "1 second", streams: [drip] })
      const fuse = yield* make({ providers: [groq, hello()], timeouts: limits })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepInclude(firstFailure(events), { phase: "firstToken", after: 5000 })
      assert.strictEqual(groq.calls, 1)
      assert.strictEqual(groq.streamed.closed, 1)
    })
  )

  it.effect("contentGap: from one piece to the next, and content alone starts it anew", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        streams: [["One ", { wait: "2900 millis" }, "two ", { wait: "2 seconds" }, "", { wait: "2 seconds" }, "three"]]
      })
      const fuse = yield* make({ providers: [groq, hello()], timeouts: limits, ...restarting })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepInclude(firstFailure(events), { phase: "contentGap", after: 5900 })
    })
  )

  it.effect("contentGap: at that moment also where it is much shorter than the other limits", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { latency: "1 second", streams: [["One ", { wait: "1 hour" }]] })
      const fuse = yield* make({ providers: [groq, hello()], timeouts: { contentGap: "3 seconds" }, ...restarting })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepInclude(firstFailure(events), { phase: "contentGap", after: 4000 })
    })
  )

  it.effect("attempt: the whole of it, and off unless it is set", () =>
    Effect.gen(function* () {
      const slow: ReadonlyArray<FakeStep> = Array.from(
        { length: 60 },
        () => ["word ", { wait: "1 second" }] as const
      ).flat()
      const groq = FakeProvider.make("groq", { streams: [slow, slow] })
      const fuse = yield* make({ providers: [groq, hello()], timeouts: limits, ...restarting })

      const unlimited = yield* collect(fuse.stream("hi"))
      const limited = yield* collect(fuse.stream("hi", { timeouts: { attempt: "10 seconds" } }))

      assert.match(brief(unlimited.events).at(-1) ?? "", /^finished groq/)
      assert.deepInclude(firstFailure(limited.events), { phase: "attempt", after: 10_000 })
    })
  )

  it.effect("a silent provider is asked again only where nobody else is left", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { latency: "1 hour" })
      const fuse = yield* make({ providers: [groq], timeouts: limits })

      const { error } = yield* collect(fuse.stream("hi"))

      assert.strictEqual(groq.calls, 3)
      assert.instanceOf(error, AllProvidersFailedError)
      assert.instanceOf(error.errors.groq, TimeoutError)
    })
  )

  it.effect("a caller that reads slowly is not taken for a silent provider", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: "one two three four five six seven" })
      const fuse = yield* make({ providers: [groq], timeouts: { ...limits, attempt: "10 seconds" } })
      const slowly = Stream.tap(fuse.stream("hi"), () => Effect.sleep("30 seconds"))

      const { events } = yield* collect(slowly)

      assert.strictEqual(brief(events).at(-1), "finished groq: one two three four five six seven")
    })
  )

  it.effect("complete streams underneath when a limit is set that only a stream can keep", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: [["", { wait: "1 hour" }]] })
      const fuse = yield* make({ providers: [groq, hello()], timeouts: { firstToken: "4 seconds" } })

      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("4 seconds")
      const response = yield* Fiber.join(fiber)

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(response.text, "hello")
      const error = response.attempts[0]?.error
      assert.instanceOf(error, TimeoutError)
      assert.strictEqual(error.phase, "firstToken")
    })
  )

  it.effect("complete that streams underneath retries what was cut: nobody has seen the part", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: cutShort("groq"), reply: "whole" })
      const fuse = yield* make({ providers: [groq], timeouts: { firstToken: "4 seconds" } })

      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("1 minute")
      const response = yield* Fiber.join(fiber)

      assert.strictEqual(response.text, "whole")
      const error = response.attempts[0]?.error
      assert.instanceOf(error, StreamInterruptedError)
      assert.strictEqual(error.partial, "One two ")
    })
  )

  for (const [name, timeouts] of [
    ["headers", { headers: 0 }],
    ["firstToken", { firstToken: -1 }],
    ["contentGap", { contentGap: Number.NaN }]
  ] as const) {
    it.effect(`a wrong limit is refused, per call too: ${name}`, () =>
      Effect.gen(function* () {
        const groq = FakeProvider.make("groq")
        const fuse = yield* make({ providers: [groq] })

        const built = yield* Effect.exit(make({ providers: [groq], timeouts }))
        const { error } = yield* collect(fuse.stream("hi", { timeouts }))

        assert.include(String(built), `timeouts.${name}`)
        assert.instanceOf(error, InvalidRequestError)
        assert.include(error.message, `timeouts.${name}`)
        assert.strictEqual(groq.calls, 0)
      })
    )
  }
})

describe("a deadline", () => {
  it.effect("leaves each provider still to come a fair share, and a provider cut short is not to blame", () =>
    Effect.gen(function* () {
      const silent = (name: string) => FakeProvider.make(name, { latency: "1 hour" })
      const fuse = yield* make({
        providers: [silent("a"), silent("b"), FakeProvider.make("c", { reply: "hello", latency: "1 second" })],
        breaker: { failureThreshold: 1 }
      })

      const { events } = yield* collect(fuse.stream("hi", { deadline: "12 seconds" }))

      const last = events.at(-1)
      assert(last?._tag === "Finished")
      assert.deepStrictEqual(
        last.response.attempts.map(({ provider, duration }) => `${provider} ${Duration.toMillis(duration)}`),
        ["a 4000", "b 4000", "c 1000"]
      )
      const error = last.response.attempts[0]?.error
      assert.instanceOf(error, TimeoutError)
      assert.isTrue(error.shortened)
      assert.strictEqual(yield* fuse.circuitState("a"), "Closed")
    })
  )

  it.effect("shortens the wait for a response, and the wait for content after it", () =>
    Effect.gen(function* () {
      const silent = FakeProvider.make("a", { latency: "1 hour" })
      const empty = FakeProvider.make("b", { streams: [["", { wait: "1 hour" }]] })
      const fuse = yield* make({ providers: [silent, empty, FakeProvider.make("c")] })

      const { events } = yield* collect(fuse.stream("hi", { deadline: "9 seconds" }))

      const last = events.at(-1)
      assert(last?._tag === "Finished")
      const [first, second] = last.response.attempts.map(({ error }) => error)
      assert(first instanceof TimeoutError && second instanceof TimeoutError)
      assert.deepStrictEqual([first.phase, second.phase], ["headers", "firstToken"])
      assert.strictEqual(Duration.toMillis(last.response.latency), 6000)
    })
  )

  it.effect("does the same for complete", () =>
    Effect.gen(function* () {
      const a = FakeProvider.make("a", { latency: "1 hour" })
      const fuse = yield* make({ providers: [a, FakeProvider.make("b")], breaker: { failureThreshold: 1 } })

      const fiber = yield* Effect.fork(fuse.complete("hi", { deadline: "10 seconds" }))
      yield* TestClock.adjust("5 seconds")
      const response = yield* Fiber.join(fiber)

      assert.strictEqual(response.provider, "b")
      assert.strictEqual(yield* fuse.circuitState("a"), "Closed")
    })
  )

  it.effect("a limit that is shorter than the share still counts against the provider", () =>
    Effect.gen(function* () {
      const a = FakeProvider.make("a", { latency: "1 hour" })
      const fuse = yield* make({
        providers: [a, FakeProvider.make("b")],
        breaker: { failureThreshold: 1 },
        timeouts: { headers: "2 seconds" }
      })

      yield* collect(fuse.stream("hi", { deadline: "10 seconds" }))

      assert.strictEqual(yield* fuse.circuitState("a"), "Open")
    })
  )

  it.effect("ends a stream under way at that moment, and counts against nobody", () =>
    Effect.gen(function* () {
      const slow: ReadonlyArray<FakeStep> = Array.from(
        { length: 60 },
        () => ["word ", { wait: "1 second" }] as const
      ).flat()
      const groq = FakeProvider.make("groq", { streams: [slow] })
      const fuse = yield* make({ providers: [groq], breaker: { failureThreshold: 1 } })

      const fiber = yield* Effect.fork(Effect.exit(Stream.runDrain(fuse.stream("hi", { deadline: "5 seconds" }))))
      yield* TestClock.adjust("4999 millis")
      const early = fiber.unsafePoll()
      yield* TestClock.adjust("1 millis")
      const exit = yield* Fiber.join(fiber)

      assert.isNull(early)
      assert(Exit.isFailure(exit))
      assert.instanceOf(Cause.squash(exit.cause), DeadlineExceededError)
      assert.strictEqual(groq.streamed.closed, 1)
      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
    })
  )

  it.effect("a stream under way is not cut short for the sake of others while it makes progress", () =>
    Effect.gen(function* () {
      const slow: ReadonlyArray<FakeStep> = Array.from(
        { length: 8 },
        () => ["word ", { wait: "1 second" }] as const
      ).flat()
      const groq = FakeProvider.make("groq", { streams: [slow] })
      const fuse = yield* make({ providers: [groq, FakeProvider.make("b")], ...restarting })

      const { events } = yield* collect(fuse.stream("hi", { deadline: "10 seconds" }))

      assert.match(brief(events).at(-1) ?? "", /^finished groq/)
    })
  )
})

describe("the caller of a stream", () => {
  it.effect("who stops reading stops the provider", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: "one two three four five" })
      const fuse = yield* make({ providers: [groq] })

      const events = yield* Stream.runCollect(Stream.take(fuse.stream("hi"), 2))

      assert.strictEqual(events.length, 2)
      assert.deepStrictEqual(groq.streamed, { opened: 1, closed: 1 })
    })
  )

  it.effect("who does not read on makes the provider wait", () =>
    Effect.gen(function* () {
      let sent = 0
      const endless = Stream.forever(Stream.fromEffect(Effect.sync(() => `${sent++} `)))
      const fuse = yield* make({
        providers: [{ name: "own", complete: () => Effect.succeed("never asked"), stream: () => endless }]
      })

      yield* Effect.fork(Stream.runForEach(fuse.stream("hi"), () => Effect.never))
      yield* TestClock.adjust("1 minute")

      assert.isBelow(sent, 10)
    })
  )

  it.effect("who is interrupted while nothing comes stops the provider, and gives back the probe", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [overloaded("groq")], streams: [["One ", { wait: "1 hour" }]] })
      const fuse = yield* make({
        providers: [groq],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, resetTimeout: "1 second" },
        timeouts: { contentGap: "2 hours" }
      })
      yield* collect(fuse.stream("opens the circuit"))

      const fiber = yield* Effect.fork(Stream.runDrain(fuse.stream("probe")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      const { events } = yield* collect(fuse.stream("next probe"))

      assert.deepStrictEqual(groq.streamed, { opened: 2, closed: 2 })
      assert.strictEqual(brief(events).at(-1), "finished groq: ok")
      assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
    })
  )

  it.effect("whose request or options are wrong is told before anybody is asked", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq] })

      const request = yield* collect(fuse.stream({ messages: [] }))
      const nobody = yield* collect(fuse.stream("hi", { providers: ["nobody"] }))
      const recovery = yield* collect(fuse.stream("hi", { recovery: "resume" as never }))
      const misspelt = yield* collect(fuse.stream("hi", { timeout: 5 } as never))

      assert.instanceOf(request.error, InvalidRequestError)
      assert.instanceOf(nobody.error, UnknownProviderError)
      assert.include(String(recovery.error), 'recovery is "resume"; allowed: "fail", "restart"')
      assert.include(String(misspelt.error), "timeout is not an option")
      assert.strictEqual(groq.calls, 0)
    })
  )

  it.effect("a bug in a provider's stream reaches the caller as a defect", () =>
    Effect.gen(function* () {
      const bug = new TypeError("bug")
      const gemini = FakeProvider.make("gemini")
      const stream = () => Stream.concat(Stream.make("One "), Stream.die(bug))
      const fuse = yield* make({
        providers: [{ name: "own", complete: () => Effect.succeed("never asked"), stream }, gemini],
        ...restarting
      })

      const { exit } = yield* collect(fuse.stream("hi"))

      assert(Exit.isFailure(exit))
      assert.deepStrictEqual([...Cause.defects(exit.cause)], [bug])
      assert.strictEqual(gemini.calls, 0)
    })
  )
})
