import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Either, Fiber, Schema, Stream, TestClock } from "effect"
import { CostLimitError, FuseClient, Groq, type Options, Pricing, StreamInterruptedError } from "llmfuse"
import { FakeHttp, FakeProvider } from "llmfuse/testing"
import { outage } from "./errors.ts"
import { collect, makeFuse } from "./fuse.ts"

/** A dollar for a million tokens read, ten for a million written. */
const pricing = Either.getOrThrow(
  Pricing.check({ prices: { "cheap/*": { input: 1, output: 10 }, "dear/*": { input: 100, output: 1000 } } }, "pricing")
)

const usage = { inputTokens: 1000, outputTokens: 100 }

const priced = (name: string, more: Partial<Parameters<typeof FakeProvider.make>[1]> = {}) =>
  FakeProvider.make(name, { model: "m", reply: { text: `from ${name}`, usage }, ...more })

describe("what a call costs", () => {
  it.effect("is in its attempt, its response, its event and the provider's health", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [priced("cheap")], pricing })

      const response = yield* fuse.ask("hi")
      yield* fuse.ask("hi")

      assert.approximately(response.cost ?? 0, 0.002, 1e-12)
      assert.approximately(response.attempts[0]?.cost ?? 0, 0.002, 1e-12)
      const told = fuse.events.find((event) => event._tag === "CallSucceeded")
      assert.strictEqual(told?.cost, response.cost)
      const [health] = yield* fuse.health
      assert.approximately(health?.cost ?? 0, 0.004, 1e-12)
    })
  )

  it.effect("is unknown, not zero, where no price or no usage is known", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [priced("unknown"), FakeProvider.make("cheap")], pricing })

      const withoutPrice = yield* fuse.ask("hi")
      const withoutUsage = yield* fuse.ask("hi", { providers: ["cheap"] })

      assert.deepStrictEqual([withoutPrice.cost, withoutUsage.cost], [undefined, undefined])
    })
  )

  it.effect("of a stream that broke is estimated from its text, and marked so", () =>
    Effect.gen(function* () {
      const cut = priced("dear", {
        streams: [["x".repeat(450), new StreamInterruptedError({ provider: "dear", partial: "" })]]
      })
      const fuse = yield* makeFuse({
        providers: [cut, priced("cheap")],
        pricing,
        recovery: "restart",
        retry: { maxAttempts: 1 }
      })

      yield* collect(fuse.stream("y".repeat(900)))

      const finished = fuse.events.find((event) => event._tag === "CallSucceeded")
      // 200 tokens read at 100 and 100 written at 1000 dollars a million, and the answer that came in the end.
      assert.approximately(finished?.cost ?? 0, 0.02 + 0.1 + 0.002, 1e-9)
    })
  )

  it.effect("counts a hedge that lost for what it has read", () =>
    Effect.gen(function* () {
      const slow = priced("dear", { latency: "1 hour" })
      const fuse = yield* makeFuse({ providers: [slow, priced("cheap")], pricing, hedge: { delay: "1 second" } })

      const response = yield* fuse.ask("y".repeat(450))

      const [lost] = response.attempts
      assert.deepInclude(lost ?? {}, { outcome: "hedge-lost", estimated: true })
      assert.approximately(lost?.cost ?? 0, 0.01, 1e-9)
      assert.approximately(response.cost ?? 0, 0.012, 1e-9)
    })
  )

  it.effect("counts an answer that does not fit the schema by its own usage, and the one that fits", () =>
    Effect.gen(function* () {
      const misfit = priced("dear", { reply: { text: "no object", usage } })
      const fuse = yield* makeFuse({
        providers: [misfit, priced("cheap", { reply: { text: '{"n":1}', usage } })],
        pricing
      })

      const response = yield* fuse.object(Schema.Struct({ n: Schema.Number }), "hi")

      assert.deepInclude(response.attempts[0] ?? {}, { outcome: "failure", usage })
      assert.isUndefined(response.attempts[0]?.estimated)
      assert.approximately(response.attempts[0]?.cost ?? 0, 0.2, 1e-9)
      assert.approximately(response.cost ?? 0, 0.202, 1e-9)
    })
  )

  it.effect("of an empty answer with a usage that counts nothing is unknown", () =>
    Effect.gen(function* () {
      const empty = priced("cheap", { reply: { text: "", usage: { promptTokens: 3 } as never } })
      const fuse = yield* makeFuse({ providers: [empty], pricing, retry: { maxAttempts: 1 } })

      const { attempts } = yield* Effect.flip(fuse.ask("hi"))

      assert.strictEqual(attempts[0]?.error?._tag, "EmptyResponseError")
      assert.isUndefined(attempts[0]?.cost)
    })
  )

  it.effect("counts an attempt that ran out of time for what it has read", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [priced("dear", { latency: "1 hour" }), priced("cheap")],
        pricing,
        timeouts: { attempt: "1 second" },
        retry: { maxAttempts: 1 }
      })

      const response = yield* fuse.ask("y".repeat(450))

      assert.deepInclude(response.attempts[0] ?? {}, { outcome: "failure", estimated: true })
      assert.approximately(response.attempts[0]?.cost ?? 0, 0.01, 1e-9)
    })
  )

  it.effect("counts a repair that ran out of time for what it asked, which is more than the request", () =>
    Effect.gen(function* () {
      let asked = 0
      const dear = {
        name: "dear",
        model: "m",
        complete: () => (asked++ === 0 ? Effect.succeed({ text: "x".repeat(450), usage }) : Effect.never)
      }
      const fuse = yield* makeFuse({
        providers: [dear],
        pricing,
        timeouts: { attempt: "1 second" },
        retry: { maxAttempts: 2 }
      })

      const fiber = yield* Effect.fork(
        Effect.flip(fuse.object(Schema.Struct({ n: Schema.Number }), "hi", { repair: true }))
      )
      yield* TestClock.adjust("1 minute")
      const { attempts } = yield* Fiber.join(fiber)

      assert.strictEqual(attempts[1]?.error?._tag, "TimeoutError")
      assert.isAbove(attempts[1]?.usage?.inputTokens ?? 0, 100)
    })
  )

  it.effect("of a failure that no provider has billed is unknown", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [priced("dear", { errors: outage("dear", 9) })], pricing })

      yield* Effect.exit(fuse.ask("hi"))

      const failed = fuse.events.filter((event) => event._tag === "AttemptFailed")
      assert.deepStrictEqual(
        failed.map(({ cost }) => cost),
        [undefined, undefined, undefined]
      )
    })
  )

  it.effect("of a stream that its reader leaves is estimated from what had come, also where nobody listens", () =>
    Effect.gen(function* () {
      const endless = priced("dear", { streams: [["x".repeat(450), { wait: "1 hour" }]] })
      const fuse = yield* makeFuse({ providers: [endless], pricing, onEvent: undefined })

      const fiber = yield* Effect.fork(Stream.runDrain(fuse.stream("y".repeat(450))))
      yield* TestClock.adjust("1 second")
      const [before] = yield* fuse.health
      yield* Fiber.interrupt(fiber)
      const [after] = yield* fuse.health

      assert.deepStrictEqual([before?.inFlight, after?.inFlight], [1, 0])
      assert.strictEqual(before?.cost, 0)
      assert.approximately(after?.cost ?? 0, 0.01 + 0.1, 1e-9)
    })
  )

  it.effect("of what a deadline has ended is in the event of the call that failed", () =>
    Effect.gen(function* () {
      const slow = priced("dear", { latency: "1 hour" })
      const fuse = yield* makeFuse({ providers: [slow], pricing, deadline: "1 second" })

      yield* Effect.exit(fuse.ask("y".repeat(450)))

      const costs = fuse.events.flatMap((event) => ("cost" in event ? [[event._tag, event.cost?.toFixed(3)]] : []))
      assert.deepStrictEqual(costs, [
        ["AttemptInterrupted", "0.010"],
        ["CallFailed", "0.010"]
      ])
    })
  )

  /** Is billed for answers with nothing in them. */
  const empty = (name: string, more = {}) => priced(name, { reply: { text: "", usage }, ...more })

  it.effect("of a fallback is that of the attempts before it", () =>
    Effect.gen(function* () {
      const options = { pricing, retry: { maxAttempts: 2, baseDelay: 0 }, fallback: () => ({ text: "sorry", cost: 7 }) }
      const fuse = yield* makeFuse({ providers: [empty("dear")], ...options })
      const unbilled = yield* makeFuse({ providers: [priced("dear", { errors: outage("dear", 9) })], ...options })

      const response = yield* fuse.ask("hi")
      const { events } = yield* collect(fuse.stream("hi"))
      const free = yield* unbilled.ask("hi")

      assert.isTrue(response.fallback)
      assert.approximately(response.cost ?? 0, 0.4, 1e-9)
      assert.deepStrictEqual(events, ["started fallback", "sorry", "finished fallback: sorry"])
      for (const told of fuse.events) {
        if (told._tag === "CallSucceeded") assert.approximately(told.cost ?? 0, 0.4, 1e-9)
      }
      assert.notProperty(free, "cost")
    })
  )

  it.effect("of a stale answer is that of the attempts before it, and 0 where there was none to pay", () =>
    Effect.gen(function* () {
      let asked = 0
      const flaky = priced("dear", {
        reply: () => ({ text: asked++ === 0 ? "from dear" : "", finishReason: "stop", usage }),
        errors: [undefined, undefined, ...outage("dear", 1)] as never
      })
      const fuse = yield* makeFuse({
        providers: [flaky],
        pricing,
        retry: { maxAttempts: 1 },
        cache: { ttl: "1 second", staleIfError: "1 hour" }
      })

      const fresh = yield* fuse.ask("hi")
      const paid = yield* fuse.ask("hi")
      const free = yield* fuse.ask("hi")

      assert.deepStrictEqual([fresh.stale, paid.stale, free.stale], [undefined, true, true])
      const costs = [fresh, paid, free].map(({ cost }) => cost?.toFixed(3))
      assert.deepStrictEqual(costs, ["0.200", "0.200", "0.000"])
      const told = fuse.events.flatMap((event) => (event._tag === "CallSucceeded" ? [event.cost?.toFixed(3)] : []))
      assert.deepStrictEqual(told, costs)
    })
  )

  for (const [what, step] of [
    ["reasoning", { _tag: "ReasoningDelta", text: "x".repeat(450) }],
    [
      "the arguments of a tool call",
      { _tag: "ToolCallDelta", index: 0, id: "1", name: "t", arguments: "x".repeat(450) }
    ],
    ["a tool call in one piece", { _tag: "ToolCall", id: "1", name: "t", arguments: "x".repeat(448) }]
  ] as const) {
    it.effect(`of a stream that broke after ${what} is estimated from that too`, () =>
      Effect.gen(function* () {
        const cut = priced("dear", { streams: [[step, new StreamInterruptedError({ provider: "dear", partial: "" })]] })
        const fuse = yield* makeFuse({ providers: [cut], pricing, retry: { maxAttempts: 1 } })

        yield* collect(fuse.stream("y".repeat(900)))

        const failed = fuse.events.find((event) => event._tag === "AttemptFailed")
        assert.deepInclude(failed, { usage: { inputTokens: 200, outputTokens: 100 }, isEstimated: true })
        assert.approximately(failed?.cost ?? 0, 0.02 + 0.1, 1e-9)
      })
    )
  }

  it.effect("counts the arguments of a tool call once, where they come in pieces and as a whole", () =>
    Effect.gen(function* () {
      const delta = { _tag: "ToolCallDelta", index: 0, id: "1", name: "t", arguments: '"x"' } as const
      const whole = { _tag: "ToolCall", id: "1", name: "t", arguments: "x" } as const
      const cut = new StreamInterruptedError({ provider: "dear", partial: "" })
      const fuse = yield* makeFuse({
        providers: [priced("dear", { streams: [[delta, whole, cut]] })],
        pricing,
        retry: { maxAttempts: 1 }
      })

      yield* collect(fuse.stream("hi"))

      const failed = fuse.events.find((event) => event._tag === "AttemptFailed")
      assert.deepStrictEqual(failed?.usage?.outputTokens, 1)
    })
  )

  it.effect("of embeddings is known too", () =>
    Effect.gen(function* () {
      const cheap = FakeProvider.make("cheap", {
        model: "m",
        embed: ({ input }) => ({ embeddings: input.map(() => [1]), usage: { inputTokens: 1_000_000, outputTokens: 0 } })
      })
      const fuse = yield* makeFuse({ providers: [cheap], pricing })

      const response = yield* fuse.embed("hi")

      assert.deepStrictEqual([response.attempts[0]?.cost, response.cost], [1, 1])
    })
  )

  it("comes from the vendors' published prices unless others are given", async () => {
    const http = FakeHttp.make(() => ({
      body: {
        id: "1",
        model: "llama-3.3-70b-versatile",
        choices: [{ message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 1_000_000, completion_tokens: 0 }
      }
    }))
    const client = FuseClient.make({
      providers: [Groq.make({ model: "llama-3.3-70b-versatile", apiKey: "key" })],
      httpClient: http.layer
    })

    await client.complete("warm up").catch(() => undefined)
    const { cost } = await client.complete("hi", { maxCost: 10 })
    await client.close()

    assert.isAbove(cost ?? 0, 0.1)
  })
})

describe("prices that fail", () => {
  const failing = (load: Effect.Effect<void>): Pricing.Pricing => ({ ...pricing, load })
  const loads = [
    ["never ends", Effect.never],
    ["cannot be interrupted", Effect.uninterruptible(Effect.never)],
    ["dies", Effect.die("no prices")],
    ["fails", Effect.fail("no prices") as never],
    ["is interrupted", Effect.interrupt]
  ] as const

  it.effect.each(loads)("never harm a call with a limit: a load that %s", ([, load]) =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [priced("cheap")], pricing: failing(load) })

      const response = yield* fuse.ask("hi", { maxCost: 1 })
      const inTime = yield* fuse.ask("hi", { maxCost: 1, deadline: "2 seconds" })

      assert.strictEqual(response.provider, "cheap")
      assert.isAtMost(Duration.toMillis(response.latency), 10_000)
      assert.isAtMost(Duration.toMillis(inTime.latency), 1000)
    })
  )

  it.effect("are loaded within the deadline, and an answer that was kept needs none", () =>
    Effect.gen(function* () {
      const slow = priced("cheap", { latency: "3 seconds" })
      const load = Effect.sleep("1 second")
      const fuse = yield* makeFuse({
        providers: [slow],
        pricing: failing(load),
        maxCost: 1,
        deadline: "3500 millis",
        fallback: "sorry"
      })
      const keeping = yield* makeFuse({
        providers: [priced("cheap", { reply: { text: "kept", finishReason: "stop" } })],
        pricing: failing(Effect.delay(Effect.die("no prices"), "1 second")),
        maxCost: 1,
        cache: { ttl: "1 hour" }
      })

      const late = yield* fuse.ask("hi")
      const first = yield* keeping.ask("hi")
      const second = yield* keeping.ask("hi")

      assert.strictEqual(late.text, "sorry")
      assert.strictEqual(Duration.toMillis(late.latency), 3500)
      assert.deepStrictEqual(
        [first, second].map(({ latency }) => Duration.toMillis(latency)),
        [1000, 0]
      )
    })
  )

  it.effect("are loaded once for calls at the same time and afterwards, and again when that failed", () =>
    Effect.gen(function* () {
      let begun = 0
      const load = Effect.suspend(() => Effect.delay(begun++ === 0 ? Effect.die("no prices") : Effect.void, "1 second"))
      const fuse = yield* makeFuse({ providers: [priced("cheap")], pricing: failing(load) })
      const counts: Array<number> = []

      for (const options of [{ maxCost: 1 }, {}, { maxCost: 1 }]) {
        const both = yield* Effect.fork(
          Effect.all([fuse.ask("hi", options), fuse.ask("hi", options)], { concurrency: 2 })
        )
        yield* TestClock.adjust("5 minutes")
        yield* Fiber.join(both)
        counts.push(begun)
      }

      assert.deepStrictEqual(counts, [1, 2, 2])
    })
  )

  it.effect("go on being loaded when the call that began it is gone", () =>
    Effect.gen(function* () {
      let isLoaded = false
      const load = Effect.delay(
        Effect.sync(() => {
          isLoaded = true
        }),
        "1 second"
      )
      const fuse = yield* makeFuse({ providers: [priced("cheap")], pricing: failing(load), maxCost: 1 })

      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("500 millis")
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("500 millis")

      assert.isTrue(isLoaded)
    })
  )

  const costs: ReadonlyArray<readonly [string, () => number | undefined]> = [
    [
      "throws",
      () => {
        throw new Error("no prices")
      }
    ],
    ["is NaN", () => Number.NaN],
    ["is negative", () => -1],
    ["is infinite", () => Number.POSITIVE_INFINITY],
    ["is no number", () => "1" as never],
    ["is null", () => null as never]
  ]

  it.effect.each(costs)("know no cost: one that %s", ([, costOf]) =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [priced("cheap")], pricing: { costOf } })

      const response = yield* fuse.ask("hi", { maxCost: 1 })

      assert.notProperty(response, "cost")
      assert.notProperty(response.attempts[0], "cost")
      assert.strictEqual((yield* fuse.health)[0]?.cost, 0)
    })
  )
})

describe("the most that a call may spend", () => {
  const asked = { messages: [{ role: "user", content: "hi" }], maxTokens: 100 } as const

  it.effect("counts what an attempt under way is expected to cost: a hedge does not exceed it", () =>
    Effect.gen(function* () {
      const slow = priced("dear", { latency: "10 seconds" })
      const options = { pricing, hedge: { delay: "1 second" } } as const
      // The attempt under way will cost 0.1, and the hedge 0.001.
      const cheap = priced("cheap")
      const fuse = yield* makeFuse({ providers: [slow, cheap], ...options })

      const stopped = yield* fuse.ask(asked, { maxCost: 0.1005 })
      const hedged = yield* fuse.ask(asked, { maxCost: 0.1015 })

      assert.strictEqual(stopped.provider, "dear")
      assert.strictEqual(hedged.provider, "cheap")
      assert.strictEqual(cheap.calls, 1)
      const error = stopped.attempts[0]?.error
      assert.instanceOf(error, CostLimitError)
      assert.deepInclude(error, { provider: "cheap", spent: 0, maxCost: 0.1005 })
      assert.include(error.message, "about $0.1 under way of at most $0.101")
    })
  )

  it.effect("counts what a stream under way has written beyond its expectation", () =>
    Effect.gen(function* () {
      const slow = priced("dear", { streams: [[{ wait: "1 second" }, "x".repeat(450), { wait: "10 seconds" }, "y"]] })
      const cheap = priced("cheap")
      const fuse = yield* makeFuse({
        providers: [slow, cheap],
        pricing,
        timeouts: { firstToken: "1 minute", contentGap: "1 minute" },
        hedge: { delay: "5 seconds" }
      })

      const response = yield* fuse.ask("hi", { maxCost: 0.09, timeouts: { firstToken: "1 minute" } })

      assert.strictEqual(response.provider, "dear")
      assert.strictEqual(cheap.calls, 0)
    })
  )

  it.effect("stops an attempt that would exceed it; a cheaper provider is asked", () =>
    Effect.gen(function* () {
      const dear = priced("dear")
      const fuse = yield* makeFuse({ providers: [dear, priced("cheap")], pricing })

      const response = yield* fuse.ask(
        { messages: [{ role: "user", content: "hi" }], maxTokens: 100 },
        { maxCost: 0.05 }
      )

      assert.strictEqual(response.provider, "cheap")
      assert.strictEqual(dear.calls, 0)
      assert.instanceOf(response.attempts[0]?.error, CostLimitError)
    })
  )

  it.effect("stops retries when it is spent, and the provider's own error stands", () =>
    Effect.gen(function* () {
      const cut = priced("dear", {
        streams: Array.from({ length: 5 }, () => [
          "x".repeat(450),
          new StreamInterruptedError({ provider: "dear", partial: "" })
        ])
      })
      const fuse = yield* makeFuse({ providers: [cut], pricing, recovery: "restart", maxCost: 0.15 })

      const { error } = yield* collect(fuse.stream("hi"))

      // Each broken stream costs 0.1: the second is begun with 0.1 spent, the third is not.
      assert.strictEqual(cut.streamed.opened, 2)
      assert.include(`${error}`, "StreamInterruptedError")
    })
  )

  it.effect("lets everything go that has no price", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [priced("unknown")], pricing, maxCost: 0.000001 })

      assert.strictEqual((yield* fuse.ask("hi")).provider, "unknown")
    })
  )

  it.effect("is refused by name where it is none", () =>
    Effect.gen(function* () {
      for (const maxCost of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, true]) {
        const options = { providers: [priced("cheap")], maxCost } as Options<readonly [FakeProvider]>
        const error = yield* Effect.flip(makeFuse(options))
        assert.include(`${error}`, `maxCost is ${maxCost}`)
      }
      const fuse = yield* makeFuse({ providers: [priced("cheap", { errors: outage("cheap", 1) })] })
      const fiber = yield* Effect.fork(Effect.flip(fuse.complete("hi", { maxCost: -1 })))
      yield* TestClock.adjust("1 second")
      assert.include((yield* Fiber.join(fiber)).message, "maxCost is -1")
    })
  )
})
