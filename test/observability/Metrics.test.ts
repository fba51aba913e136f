import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Exit, Fiber, Scope, TestClock, TestContext } from "effect"
import * as fc from "fast-check"
import {
  type Attempt,
  CircuitOpenError,
  CostLimitError,
  type FuseEvent,
  InvalidResponseError,
  type ObservedEvent,
  type Operation,
  ServerError,
  ThrottledError,
  TimeoutError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import * as Pricing from "../../src/model/Pricing.ts"
import * as Metrics from "../../src/observability/Metrics.ts"
import { catalogue } from "../../src/observability/MetricsCatalogue.ts"
import { outage, overloaded, rateLimited, unauthorized } from "../errors.ts"
import { collect, makeFuse, type TestOptions } from "../fuse.ts"
import { everything } from "./everything.ts"
import { named, ownLabel, seriesOf, sumOf } from "./series.ts"
import { countersAfter, spentAfter, tally } from "./tally.ts"

const modelOf = (provider: string) => `${provider}-model`

/** A service whose events are counted. */
const measured = (options: TestOptions) =>
  Effect.gen(function* () {
    const label = ownLabel()
    const events: Array<FuseEvent> = []
    const count = Metrics.listener({ labels: label, modelOf })
    const fuse = yield* makeFuse({
      onEvent: (event) => {
        events.push(event)
        count(event)
      },
      ...options
    })
    return { ...fuse, label, told: events, series: (name: string) => named(seriesOf(label), name) }
  })

const usage = { inputTokens: 12, outputTokens: 30 }
const reply = { text: "ok", finishReason: "stop" as const, model: "answering-model", usage }
const names = { provider: "gen_ai.provider.name", operation: "gen_ai.operation.name" }

describe("the metrics of an outage", () => {
  it.effect("count attempts, retries, failovers and what the circuit does", () =>
    Effect.gen(function* () {
      const fuse = yield* measured({
        providers: [
          FakeProvider.make("groq", { errors: outage("groq", 4), latency: "2 seconds" }),
          FakeProvider.make("gemini", { reply, latency: "1 second" })
        ],
        retry: { maxAttempts: 2, baseDelay: "1 second", jitter: "none" },
        breaker: { failureThreshold: 2, resetTimeout: "1 hour" }
      })

      for (const ask of ["one", "two", "three"]) yield* fuse.ask(ask)

      assert.deepStrictEqual(fuse.series("llmfuse.attempts"), {
        "llmfuse.attempts{error.type=OverloadedError,http.response.status_code=503,outcome=failure,provider=groq}": 4,
        "llmfuse.attempts{error.type=CircuitOpenError,outcome=rejected,provider=groq}": 1,
        "llmfuse.attempts{outcome=success,provider=gemini}": 3
      })
      assert.deepStrictEqual(fuse.series("llmfuse.retries"), {
        "llmfuse.retries{error.type=OverloadedError,provider=groq}": 2
      })
      assert.deepStrictEqual(fuse.series("llmfuse.failovers"), {
        "llmfuse.failovers{error.type=OverloadedError,from=groq,to=gemini}": 2,
        "llmfuse.failovers{error.type=CircuitOpenError,from=groq,to=gemini}": 1
      })
      assert.deepStrictEqual(fuse.series("llmfuse.circuit.state"), {
        "llmfuse.circuit.state{provider=groq}": 2,
        "llmfuse.circuit.state{provider=gemini}": 0
      })
      assert.deepStrictEqual(fuse.series("llmfuse.circuit.transitions"), {
        "llmfuse.circuit.transitions{provider=groq,to=open}": 1
      })
      assert.deepStrictEqual(fuse.series("llmfuse.calls"), { "llmfuse.calls{operation=complete,outcome=success}": 3 })
      assert.deepStrictEqual(fuse.series("llmfuse.call.duration"), {
        "llmfuse.call.duration{operation=complete,outcome=success,path=failover}": 3
      })
      // Two calls of 2 + 1 + 2 seconds before the failover, and one second for each answer.
      assert.strictEqual(sumOf(fuse.label, "llmfuse.call.duration"), 13)
      assert.strictEqual(sumOf(fuse.label, "gen_ai.client.operation.duration"), 4 * 2 + 3)
    })
  )

  it.effect("name models, providers and tokens as OpenTelemetry does", () =>
    Effect.gen(function* () {
      const fuse = yield* measured({ providers: [FakeProvider.make("groq", { errors: [overloaded("groq")], reply })] })

      yield* fuse.ask("hi")

      const asked = `${names.operation}=chat,${names.provider}=groq,gen_ai.request.model=groq-model`
      const answered = `${asked},gen_ai.response.model=answering-model`
      assert.deepStrictEqual(fuse.series("gen_ai.client.operation.duration"), {
        [`gen_ai.client.operation.duration{error.type=OverloadedError,${asked},http.response.status_code=503}`]: 1,
        [`gen_ai.client.operation.duration{${answered}}`]: 1
      })
      assert.deepStrictEqual(fuse.series("gen_ai.client.token.usage"), {
        [`gen_ai.client.token.usage{${answered},gen_ai.token.type=input}`]: 1,
        [`gen_ai.client.token.usage{${answered},gen_ai.token.type=output}`]: 1
      })
      assert.strictEqual(sumOf(fuse.label, "gen_ai.client.token.usage"), 42)
    })
  )

  it.effect("tell a lost hedge, a fallback, a throttle and a failed call apart", () =>
    Effect.gen(function* () {
      const hedged = yield* measured({
        providers: [
          FakeProvider.make("slow", { latency: "1 minute" }),
          FakeProvider.make("fast", { latency: "1 second" })
        ],
        hedge: { delay: "2 seconds" }
      })
      const degraded = yield* measured({
        providers: [FakeProvider.make("groq", { errors: [unauthorized("groq")] })],
        fallback: "sorry"
      })
      const limited = yield* measured({
        providers: [FakeProvider.make("groq")],
        limits: { requestsPerMinute: 1, burst: 1, maxWait: "1 second" }
      })

      yield* hedged.ask("hi")
      yield* degraded.ask("hi")
      yield* limited.complete("hi")
      yield* Effect.exit(limited.complete("hi"))

      assert.deepStrictEqual(hedged.series("llmfuse.attempts"), {
        "llmfuse.attempts{outcome=hedge-lost,provider=slow}": 1,
        "llmfuse.attempts{outcome=success,provider=fast}": 1
      })
      assert.deepStrictEqual(hedged.series("llmfuse.hedges"), { "llmfuse.hedges{from=slow,to=fast}": 1 })
      assert.deepStrictEqual(hedged.series("llmfuse.call.duration"), {
        "llmfuse.call.duration{operation=complete,outcome=success,path=hedge}": 1
      })
      assert.deepStrictEqual(degraded.series("llmfuse.fallbacks"), {
        "llmfuse.fallbacks{error.type=AllProvidersFailedError}": 1
      })
      assert.deepStrictEqual(degraded.series("llmfuse.call.duration"), {
        "llmfuse.call.duration{operation=complete,outcome=success,path=fallback}": 1
      })
      assert.deepStrictEqual(limited.series("llmfuse.throttles"), { "llmfuse.throttles{provider=groq}": 1 })
      assert.deepStrictEqual(limited.series("llmfuse.attempts"), {
        "llmfuse.attempts{outcome=success,provider=groq}": 1,
        "llmfuse.attempts{error.type=ThrottledError,outcome=rejected,provider=groq}": 1
      })
      assert.deepStrictEqual(limited.series("llmfuse.calls"), {
        "llmfuse.calls{operation=complete,outcome=success}": 1,
        "llmfuse.calls{error.type=AllProvidersFailedError,operation=complete,outcome=failure}": 1
      })
    })
  )

  it.effect("tell that a hedge answered while the first provider was in line for its limits", () =>
    Effect.gen(function* () {
      const fuse = yield* measured({
        providers: [
          FakeProvider.make("busy", { limits: { requestsPerMinute: 1, burst: 1, maxWait: "1 hour" } }),
          FakeProvider.make("free", { latency: "1 second" })
        ],
        hedge: { delay: "2 seconds" }
      })

      yield* fuse.complete("hi")
      const { provider } = yield* fuse.ask("hi")

      assert.strictEqual(provider, "free")
      assert.deepStrictEqual(fuse.series("llmfuse.call.duration"), {
        "llmfuse.call.duration{operation=complete,outcome=success,path=primary}": 1,
        "llmfuse.call.duration{operation=complete,outcome=success,path=hedge}": 1
      })
    })
  )

  it.effect("count a kept answer, and none of its tokens", () =>
    Effect.gen(function* () {
      const fuse = yield* measured({ providers: [FakeProvider.make("groq", { reply })], cache: { ttl: "1 hour" } })

      yield* fuse.ask("hi")
      yield* fuse.ask("hi")

      assert.deepStrictEqual(fuse.series("llmfuse.cache.hits"), { "llmfuse.cache.hits{stale=false}": 1 })
      assert.strictEqual(sumOf(fuse.label, "gen_ai.client.token.usage"), 42)
      assert.deepStrictEqual(fuse.series("llmfuse.attempts"), { "llmfuse.attempts{outcome=success,provider=groq}": 1 })
    })
  )

  it.effect("count every batch of vectors as an attempt", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        embed: ({ input }) => ({ embeddings: input.map(() => [1]), usage: { inputTokens: 1, outputTokens: 0 } }),
        maxEmbeddingInputs: 1
      })
      const fuse = yield* measured({ providers: [groq] })

      yield* fuse.embed(["a", "b", "c"])

      assert.deepStrictEqual(fuse.series("llmfuse.attempts"), { "llmfuse.attempts{outcome=success,provider=groq}": 3 })
      const labels = `${names.operation}=embeddings,${names.provider}=groq,gen_ai.request.model=groq-model`
      assert.deepStrictEqual(fuse.series("gen_ai.client.token.usage"), {
        [`gen_ai.client.token.usage{${labels},gen_ai.token.type=input}`]: 3
      })
      assert.deepStrictEqual(fuse.series("gen_ai.client.operation.duration"), {
        [`gen_ai.client.operation.duration{${labels}}`]: 3
      })
    })
  )

  it.effect("tell a provider's 504 from our own timer", () =>
    Effect.gen(function* () {
      const upstream = new TimeoutError({ provider: "groq", phase: "upstream", statusCode: 504 })
      const fuse = yield* measured({
        providers: [
          FakeProvider.make("groq", { errors: [upstream] }),
          FakeProvider.make("mistral", { latency: "1 hour" }),
          FakeProvider.make("gemini")
        ],
        retry: { maxAttempts: 1 },
        timeouts: { attempt: "1 second" }
      })

      yield* fuse.ask("hi")

      assert.deepStrictEqual(fuse.series("llmfuse.attempts"), {
        "llmfuse.attempts{error.type=TimeoutError,http.response.status_code=504,outcome=failure,provider=groq}": 1,
        "llmfuse.attempts{error.type=TimeoutError,outcome=failure,provider=mistral}": 1,
        "llmfuse.attempts{outcome=success,provider=gemini}": 1
      })
    })
  )

  it.effect("count an interrupted call, its attempt, and a provider taken out and put back", () =>
    Effect.gen(function* () {
      const fuse = yield* measured({ providers: [FakeProvider.make("groq", { latency: "1 hour" })] })
      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("3 seconds")

      yield* Fiber.interrupt(fiber)
      yield* fuse.isolate("groq")
      const out = fuse.series("llmfuse.circuit.state")
      yield* fuse.restore("groq")

      assert.deepStrictEqual(fuse.series("llmfuse.calls"), {
        "llmfuse.calls{operation=complete,outcome=interrupted}": 1
      })
      assert.strictEqual(sumOf(fuse.label, "llmfuse.call.duration"), 3)
      assert.deepStrictEqual(fuse.series("llmfuse.attempts"), {
        "llmfuse.attempts{outcome=interrupted,provider=groq}": 1
      })
      assert.deepStrictEqual(out, { "llmfuse.circuit.state{provider=groq}": 3 })
      assert.deepStrictEqual(fuse.series("llmfuse.circuit.state"), { "llmfuse.circuit.state{provider=groq}": 0 })
    })
  )

  it.effect("count a stream that begins afresh", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { streams: [["half ", overloaded("groq")]] })
      const fuse = yield* measured({
        providers: [groq, FakeProvider.make("gemini")],
        recovery: "restart",
        retry: { maxAttempts: 1 }
      })

      yield* collect(fuse.stream("hi"))

      const [[key, count] = []] = Object.entries(fuse.series("llmfuse.stream.restarts"))
      assert.include(key, "from=groq,to=gemini")
      assert.strictEqual(count, 1)
    })
  )
})

describe("a retry", () => {
  const retry = { maxAttempts: 2, baseDelay: "1 second", jitter: "none" } as const

  it.effect("is counted when it is sent, with the failure that it repeats", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: [overloaded("groq"), rateLimited("groq", "1 second")] })
      const fuse = yield* measured({ providers: [groq], retry: { ...retry, maxAttempts: 3 } })
      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* TestClock.adjust("500 millis")
      const early = fuse.series("llmfuse.retries")

      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)

      assert.deepStrictEqual(early, {})
      assert.deepStrictEqual(fuse.series("llmfuse.retries"), {
        "llmfuse.retries{error.type=OverloadedError,provider=groq}": 1,
        "llmfuse.retries{error.type=RateLimitError,provider=groq}": 1
      })
    })
  )

  const isPlanned = ({ _tag }: FuseEvent) => _tag === "RetryScheduled"

  it.effect("that our own limits, another call's circuit or the call's end overtake is none", () =>
    Effect.gen(function* () {
      const limited = yield* measured({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 1) })],
        limits: { requestsPerMinute: 1, burst: 1, maxWait: "1 second" },
        retry
      })
      const opened = yield* measured({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 1) }), FakeProvider.make("gemini")],
        retry
      })
      const ended = yield* measured({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 1) })],
        retry: { ...retry, baseDelay: "10 seconds" }
      })

      yield* Effect.exit(limited.ask("hi"))
      const waiting = yield* Effect.fork(opened.complete("hi"))
      yield* TestClock.adjust("500 millis")
      yield* opened.isolate("groq")
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(waiting)
      const cut = yield* Effect.fork(ended.complete("hi"))
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.interrupt(cut)

      for (const { told, series } of [limited, opened, ended]) {
        assert.isTrue(told.some(isPlanned))
        assert.deepStrictEqual(series("llmfuse.retries"), {})
      }
    })
  )

  it.effect("is not what the next batch of vectors begins", () =>
    Effect.gen(function* () {
      let answers = 0
      const groq = FakeProvider.make("groq", {
        errors: [overloaded("groq")],
        embed: ({ input }) => {
          answers += 1
          return { embeddings: input.map(() => [1]) }
        },
        embeddingSpace: "one",
        maxEmbeddingInputs: 1
      })
      const gemini = FakeProvider.make("gemini", {
        embed: ({ input }) => ({ embeddings: input.map(() => [1]) }),
        embeddingSpace: "one",
        latency: "1 second"
      })
      const fuse = yield* measured({
        providers: [groq, gemini],
        retry: { ...retry, baseDelay: "10 seconds", maxDelay: "10 seconds" },
        hedge: { delay: "2 seconds" }
      })

      const fiber = yield* Effect.fork(fuse.embed(["a", "b", "c"]))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)

      assert.isTrue(fuse.told.some(isPlanned))
      assert.strictEqual(answers, 2)
      assert.deepStrictEqual(fuse.series("llmfuse.retries"), {})
    })
  )
})

describe("a call that a defect ends", () => {
  const at = DateTime.unsafeMake(0)
  const died = (callId: string, error: unknown): ObservedEvent => ({
    _tag: "CallDied",
    at: DateTime.unsafeMake(2000),
    callId,
    error,
    cost: undefined
  })

  it.effect("is counted as such, with the kind of defect", () =>
    Effect.gen(function* () {
      const broken = {
        name: "groq",
        complete: () => Effect.delay(Effect.die(new RangeError("secret")), "2 seconds")
      }
      const fuse = yield* measured({ providers: [broken] })

      yield* Effect.exit(fuse.ask("hi"))

      assert.deepStrictEqual(fuse.series("llmfuse.calls"), {
        "llmfuse.calls{error.type=RangeError,operation=complete,outcome=defect}": 1
      })
      assert.deepStrictEqual(fuse.series("llmfuse.call.duration"), {
        "llmfuse.call.duration{operation=complete,outcome=defect,path=primary}": 1
      })
      assert.strictEqual(sumOf(fuse.label, "llmfuse.call.duration"), 2)
    })
  )

  it("and is forgotten", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })
    count({ _tag: "CallStarted", at, callId: "a", operation: "embed", tag: undefined })
    count(died("a", new TypeError()))

    count({ _tag: "CallInterrupted", at, callId: "a", cost: undefined })

    assert.deepStrictEqual(named(seriesOf(label), "llmfuse.calls"), {
      "llmfuse.calls{error.type=TypeError,operation=embed,outcome=defect}": 1,
      "llmfuse.calls{outcome=interrupted}": 1
    })
  })

  it("has twenty kinds at most, and no texts", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })
    const unreadable = {
      get _tag() {
        throw new Error("unreadable")
      }
    }

    for (const error of [{ _tag: "a prompt" }, { _tag: "x".repeat(65) }, { _tag: "" }, unreadable, "text"]) {
      count(died("a", error))
    }
    for (let index = 0; index < 30; index += 1) count(died("a", { _tag: `Defect${index}` }))

    const series = named(seriesOf(label), "llmfuse.calls")
    assert.strictEqual(series["llmfuse.calls{error.type=string,outcome=defect}"], 1)
    // One of the twenty is `other` itself.
    assert.strictEqual(Object.keys(series).length, 20)
    assert.strictEqual(series["llmfuse.calls{error.type=other,outcome=defect}"], 4 + 30 - 18)
  })
})

describe("the state of a circuit", () => {
  const at = DateTime.unsafeMake(0)
  const call = { at, callId: "a", provider: "groq" }
  const started = { _tag: "AttemptStarted", ...call, attempt: 1, waited: Duration.zero } as const
  const opened = { _tag: "CircuitOpened", ...call, openUntil: at, reason: "failures", error: undefined } as const
  const stateOf = (label: { readonly run: string }) =>
    seriesOf(label).get("llmfuse.circuit.state{provider=groq}") ?? "none"

  it("is not set back by another service's first attempt at a provider of that name", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })
    count(started)
    const first = stateOf(label)
    count(opened as never)

    Metrics.listener({ labels: label })(started)

    assert.deepStrictEqual([first, stateOf(label)], [0, 2])
  })

  it.effect("is shown for what was never asked, and is the last word of the services that are there", () =>
    Effect.gen(function* () {
      const label = ownLabel()
      const states: Array<number | string> = []
      const look = () => states.push(stateOf(label))
      const service = () => {
        const count = Metrics.listener({ labels: label })
        return { count, begin: Metrics.begin(count, ["groq"]) }
      }
      const [old, next] = [service(), service()]

      const first = yield* Scope.make()
      yield* Scope.extend(old.begin, first)
      look()
      old.count(opened as never)
      const second = yield* Scope.make()
      yield* Scope.extend(next.begin, second)
      next.count(started)
      look()
      // The old one is gone, and with it its open circuit.
      yield* Scope.close(first, Exit.void)
      look()
      next.count(opened as never)
      yield* Effect.scoped(service().begin)
      look()
      yield* Scope.close(second, Exit.void)
      yield* Effect.scoped(service().begin)
      look()

      assert.deepStrictEqual(states, [0, 2, 0, 2, 0])
    })
  )
})

describe("what is spent", () => {
  const prices = { "groq/*": { input: 1e6, output: 1e6 }, "gemini/*": { input: 1e5, output: 1e5 } }
  const pricing = Effect.runSync(Pricing.make({ prices }))
  const answered = "gen_ai.response.model=answering-model"
  const [groq, gemini] = ["groq", "gemini"].map(
    (name) => `${names.provider}=${name},gen_ai.request.model=${modelOf(name)}`
  )

  it.effect("is credited to each provider that was asked, also to one whose answer was of no use", () =>
    Effect.gen(function* () {
      const billed = new InvalidResponseError({ provider: "groq", usage: { inputTokens: 12, outputTokens: 5 } })
      const fuse = yield* measured({
        providers: [
          FakeProvider.make("groq", { model: "groq-model", errors: [billed] }),
          FakeProvider.make("gemini", { reply })
        ],
        retry: { maxAttempts: 1 },
        pricing
      })

      const { cost } = yield* fuse.ask("hi")

      assert.strictEqual(cost, 17 + 4.2)
      assert.deepStrictEqual(fuse.series("llmfuse.cost"), {
        [`llmfuse.cost{estimated=false,${groq}}`]: 17,
        [`llmfuse.cost{estimated=false,${gemini},${answered}}`]: 4.2
      })
      const operation = `${names.operation}=chat`
      const tokens = "gen_ai.client.token.usage"
      assert.deepStrictEqual(fuse.series(tokens), {
        [`${tokens}{${operation},${groq},gen_ai.token.type=input}`]: 1,
        [`${tokens}{${operation},${groq},gen_ai.token.type=output}`]: 1,
        [`${tokens}{${operation},${gemini},${answered},gen_ai.token.type=input}`]: 1,
        [`${tokens}{${operation},${gemini},${answered},gen_ai.token.type=output}`]: 1
      })
      assert.strictEqual(sumOf(fuse.label, tokens), 17 + 42)
    })
  )

  it.effect("by an attempt without an answer is estimated, and its tokens are not counted", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("groq", { model: "groq-model", latency: "1 minute" })
      const fuse = yield* measured({
        providers: [slow, FakeProvider.make("gemini", { reply, latency: "1 second" })],
        hedge: { delay: "2 seconds" },
        retry: { maxAttempts: 1 },
        pricing
      })

      // About 100 tokens.
      const prompt = "y".repeat(450)
      yield* fuse.ask(prompt)
      yield* Effect.exit(fuse.ask(prompt, { providers: ["groq"], deadline: "1 second" }))
      yield* Effect.exit(fuse.ask(prompt, { providers: ["groq"], timeouts: { attempt: "1 second" } }))

      assert.deepStrictEqual(fuse.series("llmfuse.attempts"), {
        "llmfuse.attempts{outcome=success,provider=gemini}": 1,
        "llmfuse.attempts{outcome=hedge-lost,provider=groq}": 1,
        "llmfuse.attempts{outcome=interrupted,provider=groq}": 1,
        "llmfuse.attempts{error.type=TimeoutError,outcome=failure,provider=groq}": 1
      })
      assert.deepStrictEqual(fuse.series("llmfuse.cost"), {
        [`llmfuse.cost{estimated=true,${groq}}`]: 300,
        [`llmfuse.cost{estimated=false,${gemini},${answered}}`]: 4.2
      })
      assert.strictEqual(sumOf(fuse.label, "gen_ai.client.token.usage"), 42)
    })
  )
})

describe("counters and a real service under random failures", () => {
  const failures = { overloaded, unauthorized, limited: (name: string) => rateLimited(name, "3 seconds") }
  const fault = fc.constantFrom(...(Object.keys(failures) as Array<keyof typeof failures>))
  const script = fc.array(fault, { maxLength: 8 })

  const price = { input: 3, output: 15, request: 1 }
  const pricing = Effect.runSync(Pricing.make({ prices: { "groq/*": price, "gemini/*": price } }))
  const options = fc.record({ isHedged: fc.boolean(), isCached: fc.boolean(), isShort: fc.boolean() })

  it("have the same counts as its events and its trails", () =>
    fc.assert(
      fc.asyncProperty(script, script, options, (first, second, { isHedged, isCached, isShort }) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const fake = (name: string, faults: typeof first, seconds: number) =>
              FakeProvider.make(name, {
                model: modelOf(name),
                errors: faults.map((it) => failures[it](name)),
                latency: Duration.seconds(seconds),
                reply
              })
            const fuse = yield* measured({
              providers: [fake("groq", first, 3), fake("gemini", second, 1)],
              breaker: { failureThreshold: 3, resetTimeout: "5 minutes" },
              pricing,
              ...(isHedged ? { hedge: { delay: "2 seconds" } } : {}),
              ...(isCached ? { cache: { ttl: "1 hour" } } : {}),
              ...(isShort ? { deadline: "5 seconds" } : {})
            })

            const trails: Array<Attempt> = []
            for (const ask of ["one", "two", "one", "three", "four"]) {
              const { attempts } = yield* Effect.merge(fuse.ask(ask))
              trails.push(...attempts)
            }

            assert.deepStrictEqual(fuse.series("llmfuse.attempts"), tally(trails.map(keyOf)))
            assert.deepStrictEqual(countersOf(fuse.label), countersAfter(fuse.told))
            const isSent = ({ outcome }: Attempt) => outcome !== "rejected"
            const started = fuse.told.filter(({ _tag }) => _tag === "AttemptStarted")
            assert.strictEqual(trails.filter(isSent).length, started.length)
            const spent = sum(Object.values(fuse.series("llmfuse.cost")))
            assert.closeTo(spent, sum(trails.map(({ cost }) => cost)), 1e-9)
            // Which is what the ends of the calls tell, but for an answer that was kept: that costs nothing again.
            const ofCalls = fuse.told.map((event) => ("cost" in event && !("isEstimated" in event) ? event.cost : 0))
            assert.closeTo(spent, sum(ofCalls), 1e-9)
          }).pipe(Effect.provide(TestContext.TestContext))
        )
      ),
      { numRuns: 20 }
    ))

  const keyOf = ({ provider, outcome, error }: Attempt) => {
    const type = error === undefined ? "" : `error.type=${error._tag},`
    const status = error?.statusCode === undefined ? "" : `http.response.status_code=${error.statusCode},`
    return `llmfuse.attempts{${type}${status}outcome=${outcome},provider=${provider}}`
  }
})

describe("counters and random events", () => {
  const at = DateTime.unsafeMake(0)
  const duration = Duration.millis(5)
  const own = new TimeoutError({ provider: "groq", phase: "attempt" })
  const error = fc.constantFrom(overloaded("groq"), unauthorized("groq"), own)
  const obstacle = fc.constantFrom(
    new CircuitOpenError({ provider: "groq" }),
    new CostLimitError({ provider: "groq", maxCost: 1, spent: 1 })
  )
  const throttled = fc.constant(new ThrottledError({ provider: "groq", wait: duration }))
  const defect = fc.constantFrom({ _tag: "TypeError" }, { _tag: "Defect" })
  const provider = fc.constantFrom("groq", "gemini")
  const callId = fc.constantFrom("a", "b", "c")
  const call = { at: fc.constant(at), callId }
  const of = <Tag extends string>(tag: Tag, fields: Record<string, fc.Arbitrary<unknown>>) =>
    fc.record({ _tag: fc.constant(tag), ...fields }) as fc.Arbitrary<never>
  const attempt = fc.constantFrom(1, 2)
  const ofAttempt = { ...call, provider, attempt }
  const arrow = { ...call, from: provider, to: provider }
  const rate = { at: call.at, callId, provider, from: fc.constant(undefined), to: fc.integer({ min: 1, max: 99 }) }
  const operation = fc.constantFrom<Operation>("complete", "stream", "object", "embed")
  const model = fc.constantFrom("flash", "")
  // Sums of such are exact in any order.
  const cost = fc.option(
    fc.nat(4096).map((it) => it / 1024),
    { nil: undefined }
  )
  const bill = { duration: fc.constant(duration), usage: fc.constant(undefined), cost, isEstimated: fc.boolean() }
  const end = { ...ofAttempt, ...bill }

  const event: fc.Arbitrary<ObservedEvent> = fc.oneof(
    of("CallStarted", { ...call, operation, tag: fc.constant("tenant") }),
    of("AttemptStarted", { ...ofAttempt, waited: fc.constant(duration) }),
    of("AttemptSucceeded", { ...end, model, timeToFirstToken: fc.constantFrom(undefined, duration) }),
    of("AttemptFailed", { ...end, error }),
    of("AttemptInterrupted", end),
    of("AttemptRejected", { ...ofAttempt, error: obstacle }),
    of("RetryScheduled", { ...ofAttempt, delay: fc.constant(duration), error }),
    of("Throttled", { ...ofAttempt, error: throttled, wait: fc.constant(duration) }),
    of("CircuitOpened", { ...call, provider, openUntil: fc.constant(at), error }),
    of("CircuitHalfOpened", { ...call, provider }),
    of("CircuitClosed", { ...call, provider }),
    of("CircuitIsolated", { ...call, provider }),
    of("RateLowered", rate),
    of("RateRaised", rate),
    of("Hedged", arrow),
    of("HedgeLost", { ...call, provider }),
    of("HedgeLost", end),
    of("FailedOver", { ...arrow, error }),
    of("StreamRestarted", { ...arrow, error }),
    of("FallbackUsed", { ...call, error }),
    of("ServedFromCache", { ...call, provider, ageMillis: fc.nat(), isStale: fc.boolean() }),
    of("CallSucceeded", { ...ofAttempt, model, latency: fc.constant(duration), usage: fc.constant(undefined), cost }),
    of("CallFailed", { ...call, error, cost }),
    of("CallInterrupted", { ...call, cost }),
    of("CallDied", { ...call, error: defect, cost }),
    of("EventsDropped", { count: fc.integer({ min: 1, max: 9 }) })
  )

  it("are equal, in whatever order the events come", () =>
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const label = ownLabel()
        const count = Metrics.listener({ labels: label, modelOf })

        for (const it of events) count(it)

        assert.deepStrictEqual(countersOf(label), countersAfter(events))
        assert.deepStrictEqual(named(seriesOf(label), "llmfuse.cost"), spentAfter(events, modelOf))
        const answered = events.filter(({ _tag }) => _tag === "AttemptSucceeded" || _tag === "AttemptFailed")
        const samples = Object.values(named(seriesOf(label), "gen_ai.client.operation.duration"))
        assert.strictEqual(sum(samples), answered.length)
      }),
      { numRuns: 200 }
    ))
})

describe("labels", () => {
  const at = DateTime.unsafeMake(0)
  const succeeded = {
    _tag: "AttemptSucceeded",
    at,
    callId: "a",
    provider: "groq",
    attempt: 1,
    model: "flash",
    duration: Duration.seconds(1),
    timeToFirstToken: undefined,
    usage,
    cost: undefined,
    isEstimated: false
  } as const

  it("name a hundred models and no more", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })

    for (let index = 0; index < 250; index += 1) {
      count({ ...succeeded, model: `model-${index}` })
    }

    const series = Object.entries(named(seriesOf(label), "gen_ai.client.token.usage"))
    assert.strictEqual(series.length, 2 * 101)
    const rest = series.filter(([key]) => key.includes("gen_ai.response.model=other,"))
    assert.deepStrictEqual(
      rest.map(([, samples]) => samples),
      [150, 150]
    )
  })

  it("have no more than a thousand combinations in a metric, and nothing is lost beyond", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })

    for (let index = 0; index < 1500; index += 1) {
      count({ _tag: "Hedged", at, callId: "a", from: `from-${index}`, to: "to" })
    }

    const series = named(seriesOf(label), "llmfuse.hedges")
    assert.strictEqual(Object.keys(series).length, 1001)
    assert.strictEqual(series["llmfuse.hedges{from=other,to=other}"], 500)
  })

  it("are bounded also where names of providers are made up, and for all services that share them", () => {
    const label = ownLabel()
    const error = overloaded("groq")

    for (let index = 0; index < 1500; index += 1) {
      const arrow = { at, callId: "a", from: `from-${index}`, to: "to", error }
      const count = Metrics.listener({ labels: label })
      count({ _tag: "StreamRestarted", ...arrow })
      count({ _tag: "FailedOver", ...arrow })
      count({ ...succeeded, provider: `name-${index}`, cost: 1 })
      count({ _tag: "AttemptStarted", at, callId: "a", provider: `name-${index}`, attempt: 1, waited: Duration.zero })
    }

    for (const name of ["stream.restarts", "failovers", "attempts", "cost", "circuit.state"]) {
      const series = Object.entries(named(seriesOf(label), `llmfuse.${name}`))
      assert.strictEqual(series.length, 1001, name)
      if (name === "circuit.state") continue
      assert.strictEqual(sum(series.map(([, value]) => value)), 1500, name)
    }
  })

  it("are the same in whatever order they are given", () => {
    const { run } = ownLabel()
    for (const labels of [
      { a: "1", run },
      { run, a: "1" }
    ]) {
      Metrics.listener({ labels })({ _tag: "EventsDropped", count: 1 })
    }

    assert.deepStrictEqual([...seriesOf({ run })], [["llmfuse.events.dropped{a=1}", 2]])
  })

  it.effect("hold no id, prompt, answer, key or tag", () =>
    Effect.gen(function* () {
      const secret = "sk-secret-123"
      const fuse = yield* measured({
        providers: [FakeProvider.make("groq", { errors: [overloaded("groq")], reply: `answer ${secret}` })]
      })

      yield* fuse.ask(`prompt ${secret}`, { tag: `tag ${secret}` })

      const ids = new Set(fuse.told.map(({ callId }) => callId))
      for (const key of seriesOf(fuse.label).keys()) {
        assert.notInclude(key, secret)
        for (const id of ids) assert.notInclude(key, id ?? "none")
      }
    })
  )

  it("name a status only where it is one of HTTP", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })
    const failed = { ...succeeded, _tag: "AttemptFailed" } as const

    for (const statusCode of [99, 100, 599, 600, 429.5, Number.NaN, -1, undefined]) {
      count({ ...failed, error: new ServerError({ provider: "groq", statusCode }) })
    }

    const [type, rest] = ["error.type=ServerError", "outcome=failure,provider=groq"]
    assert.deepStrictEqual(named(seriesOf(label), "llmfuse.attempts"), {
      [`llmfuse.attempts{${type},http.response.status_code=100,${rest}}`]: 1,
      [`llmfuse.attempts{${type},http.response.status_code=599,${rest}}`]: 1,
      [`llmfuse.attempts{${type},${rest}}`]: 6
    })
  })

  it("are those that the catalogue names", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label, modelOf })
    for (const event of everything("groq")) count(event)
    const known = new Map(Object.values(catalogue).map(({ name, labels }) => [name, labels]))

    for (const key of seriesOf(label).keys()) {
      const [name = "", labels = ""] = key.slice(0, -1).split("{")
      for (const part of labels.split(",").filter((it) => it !== "")) {
        assert.include(known.get(name as never) as ReadonlyArray<string>, part.split("=")[0])
      }
    }
  })

  it("cost and the time to the first token are taken where an answer tells them; what is no number is not", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })

    count({ ...succeeded, cost: 0.25, timeToFirstToken: Duration.millis(400) })
    count({ ...succeeded, cost: Number.NaN })
    count({ ...succeeded, cost: -1 })

    const key = "llmfuse.cost{estimated=false,gen_ai.provider.name=groq,gen_ai.response.model=flash}"
    assert.strictEqual(seriesOf(label).get(key), 0.25)
    assert.closeTo(sumOf(label, "llmfuse.time_to_first_token"), 0.4, 1e-9)
  })

  it("a call that is over is forgotten", () => {
    const label = ownLabel()
    const count = Metrics.listener({ labels: label })
    count({ _tag: "CallStarted", at, callId: "a", operation: "complete", tag: undefined })
    const { provider, attempt, model, timeToFirstToken, cost } = succeeded
    const answer = { provider, attempt, model, usage, timeToFirstToken, cost }
    count({ _tag: "CallSucceeded", at, callId: "a", latency: Duration.seconds(1), ...answer })

    count({ _tag: "CallInterrupted", at, callId: "a", cost: undefined })

    const series = seriesOf(label)
    assert.strictEqual(series.get("llmfuse.calls{operation=complete,outcome=success}"), 1)
    assert.strictEqual(series.get("llmfuse.calls{outcome=interrupted}"), 1)
    assert.strictEqual(Object.keys(named(series, "llmfuse.call.duration")).length, 1)
  })
})

const sum = (values: ReadonlyArray<number | undefined>): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0)

/** The counters with a label, without what is spent. */
const countersOf = (label: { readonly run: string }) => {
  const counters = new Set<string>(
    Object.values(catalogue).flatMap(({ kind, name }) => (kind === "counter" && name !== "llmfuse.cost" ? [name] : []))
  )
  return Object.fromEntries([...seriesOf(label)].filter(([key]) => counters.has(key.split("{")[0] ?? "")))
}
