import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Fiber, Stream, TestClock } from "effect"
import { EmptyResponseError, Pricing, StreamInterruptedError } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { overloaded } from "../errors.ts"
import { collect, makeFuse, type TestOptions } from "../fuse.ts"
import { exportedSpans } from "./exportedSpans.ts"

/** A dollar for a token of `groq` or `gemini`. */
const price = { input: 1e6, output: 1e6 }
const pricing = Either.getOrThrow(Pricing.check({ prices: { "groq/*": price, "gemini/*": price } }, "pricing"))

const usage = { inputTokens: 30, outputTokens: 4 }

const traced = (options: TestOptions) =>
  Effect.map(makeFuse({ pricing, retry: { maxAttempts: 1 }, ...options }), (fuse) => ({ fuse, ...exportedSpans() }))

const pick = (attributes: Readonly<Record<string, unknown>> | undefined, ...names: ReadonlyArray<string>) =>
  names.map((name) => attributes?.[name])

describe("the attributes of spans", () => {
  it.effect("tell the parameters of the request", () =>
    Effect.gen(function* () {
      const {
        fuse,
        traced: run,
        ofCall
      } = yield* traced({ providers: [FakeProvider.make("groq", { model: "llama" })] })
      const request = {
        messages: [{ role: "user", content: "hi" }],
        maxTokens: 100,
        temperature: 0,
        topP: 0.5,
        seed: 7,
        responseFormat: "json",
        reasoning: { effort: "low" }
      } as const

      yield* run(collect(fuse.stream(request)))

      const { "llmfuse.call.id": _, ...attributes } = ofCall()
      assert.deepStrictEqual(attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "groq",
        "gen_ai.request.model": "llama",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.temperature": 0,
        "gen_ai.request.top_p": 0.5,
        "gen_ai.request.seed": 7,
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.request.stream": true,
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "llama",
        "gen_ai.response.finish_reasons": JSON.stringify(["unknown"], undefined, 2),
        "llmfuse.operation": "stream",
        "llmfuse.attempts": 1
      })
    })
  )

  it.effect("tell the wanted length of vectors", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { embed: () => ({ embeddings: [[1, 2]] }) })
      const { fuse, traced: run, ofCall } = yield* traced({ providers: [groq] })

      yield* run(fuse.embed({ input: "hi", dimensions: 2 }))

      assert.strictEqual(ofCall()["gen_ai.embeddings.dimension.count"], 2)
    })
  )

  it.effect("tell what was used and what it cost, of the call and of each attempt", () =>
    Effect.gen(function* () {
      const billed = new EmptyResponseError({ provider: "groq", statusCode: 200, usage })
      const cached = { ...usage, cachedInputTokens: 10, cacheWriteInputTokens: 5, reasoningTokens: 3 }
      const { fuse, ...spans } = yield* traced({
        providers: [
          FakeProvider.make("down", { errors: [overloaded("down")] }),
          FakeProvider.make("groq", { model: "llama", errors: [billed] }),
          FakeProvider.make("gemini", { model: "flash", reply: { text: "ok", usage: cached } })
        ]
      })

      yield* spans.traced(fuse.ask("hi"))

      const names = [
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.reasoning.output_tokens",
        "llmfuse.cost",
        "http.response.status_code",
        "llmfuse.attempt.outcome"
      ]
      assert.deepStrictEqual(
        [spans.ofCall(), ...spans.ofAttempts()].map((attributes) => pick(attributes, ...names)),
        [
          [30, 4, 10, 5, 3, 68, undefined, undefined],
          [undefined, undefined, undefined, undefined, undefined, undefined, 503, "failure"],
          [30, 4, undefined, undefined, undefined, 34, 200, "failure"],
          [30, 4, 10, 5, 3, 34, undefined, "success"]
        ]
      )
    })
  )

  it.effect("tell what a call that failed has tried and spent", () =>
    Effect.gen(function* () {
      const billed = new EmptyResponseError({ provider: "groq", usage })
      const groq = FakeProvider.make("groq", { model: "llama", errors: [billed, billed] })
      const { fuse, ...spans } = yield* traced({ providers: [groq], retry: { maxAttempts: 2 } })

      yield* spans.traced(Effect.exit(fuse.ask("hi")))

      const told = pick(spans.ofCall(), "error.type", "llmfuse.attempts", "llmfuse.cost")
      assert.deepStrictEqual(told, ["AllProvidersFailedError", 2, 68])
    })
  )

  it.effect("say that usage and cost are estimated where an answer was cut off", () =>
    Effect.gen(function* () {
      const cut = new StreamInterruptedError({ provider: "groq", partial: "" })
      const groq = FakeProvider.make("groq", { model: "llama", streams: [["x".repeat(45), cut]] })
      const { fuse, ...spans } = yield* traced({ providers: [groq] })

      yield* spans.traced(collect(fuse.stream("hi")))

      const [attempt] = spans.ofAttempts()
      assert.isTrue(attempt?.["llmfuse.attempt.estimated"])
      assert.isAbove(Number(attempt?.["llmfuse.cost"]), 5)
      assert.strictEqual(attempt?.["llmfuse.cost"], spans.ofCall()["llmfuse.cost"])
    })
  )

  it.effect("tell when the first of a streamed answer came, in seconds", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        latency: "1500 millis",
        streams: [["One", { wait: "1 second" }, { _tag: "End" }]]
      })
      const { fuse, ...spans } = yield* traced({ providers: [groq] })

      yield* spans.traced(collect(fuse.stream("hi")))

      assert.strictEqual(spans.ofAttempts()[0]?.["gen_ai.response.time_to_first_chunk"], 1.5)
    })
  )

  const told = ["llmfuse.attempt.outcome", "llmfuse.attempt.estimated", "gen_ai.usage.output_tokens"]

  it.effect("of an attempt that is interrupted tell what it has cost about", () =>
    Effect.gen(function* () {
      const slow = { model: "llama", latency: "1 hour" } as const
      const providers = [FakeProvider.make("groq", slow), FakeProvider.make("gemini", slow)]
      const { fuse, ...spans } = yield* traced({ providers, hedge: { delay: "1 second" } })

      const fiber = yield* Effect.fork(spans.traced(fuse.complete("hi")))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.interrupt(fiber)

      assert.deepStrictEqual(
        spans.ofAttempts().map((attributes) => pick(attributes, ...told)),
        [
          ["interrupted", true, 0],
          ["interrupted", true, 0]
        ]
      )
    })
  )

  it.effect("of an attempt that the deadline ends say so, and of one that lost a race that it lost", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("groq", { model: "llama", latency: "1 hour" })
      const { fuse, ...spans } = yield* traced({ providers: [slow, FakeProvider.make("quick")] })

      yield* spans.traced(Effect.exit(fuse.ask("hi", { providers: ["groq"], deadline: "1 second" })))
      yield* spans.traced(fuse.ask("hi", { hedge: { delay: "1 second" } }))

      assert.deepStrictEqual(
        spans
          .ofAttempts()
          .map((attributes) => pick(attributes, "llmfuse.attempt.outcome", "llmfuse.attempt.estimated")),
        [
          ["interrupted", true],
          ["success", undefined],
          ["hedge-lost", true]
        ]
      )
    })
  )

  it.effect("of batches tell each its own, a defect too", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", {
        model: "e",
        maxEmbeddingInputs: 1,
        embed: ({ input: [text = ""] }) => {
          if (text === "bug") throw new TypeError("a bug")
          return { embeddings: [[1]], usage: { inputTokens: text.length, outputTokens: 0 } }
        }
      })
      const { fuse, ...spans } = yield* traced({ providers: [groq] })

      yield* spans.traced(Effect.exit(fuse.embed(["a", "bbb", "bug"])))

      assert.deepStrictEqual(
        spans.ofAttempts().map((it) => pick(it, "llmfuse.attempt.outcome", "error.type", "llmfuse.cost")),
        [
          ["success", undefined, 1],
          ["success", undefined, 3],
          ["failure", "defect", undefined]
        ]
      )
    })
  )

  it.effect("of an answer from the cache say so, and that it cost nothing", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { model: "llama", reply: { text: "ok", usage, finishReason: "stop" } })
      const { fuse, ...spans } = yield* traced({ providers: [groq], cache: { ttl: "1 hour" } })

      yield* fuse.ask("hi")
      yield* spans.traced(fuse.ask("hi"))

      const facts = pick(spans.ofCall(), "llmfuse.cached", "llmfuse.cost", "llmfuse.attempts")
      assert.deepStrictEqual(facts, [true, 0, 0])
    })
  )

  it.effect("are there for a caller that leaves a stream early", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { model: "llama", streams: [["One ", { wait: "1 hour" }]] })
      const { fuse, ...spans } = yield* traced({ providers: [groq] })

      yield* spans.traced(Stream.runDrain(Stream.take(fuse.stream("hi"), 2)))

      assert.deepStrictEqual(pick(spans.ofAttempts()[0], ...told), ["interrupted", true, 1])
    })
  )
})
