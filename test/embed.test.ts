import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Fiber, TestClock } from "effect"
import {
  AllProvidersFailedError,
  type EmbeddingBatch,
  FuseClient,
  InvalidRequestError,
  InvalidResponseError,
  LlmFuse,
  type Options,
  Pricing,
  type Usage
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, overloaded } from "./errors.ts"
import { makeFuse } from "./fuse.ts"

const make = (options: Options<ReadonlyArray<FakeProvider>>) =>
  Effect.provide(LlmFuse, LlmFuse.layer({ retry: { baseDelay: 0 }, ...options }))

/** The length of each text, as its vector. */
const lengths = ({ input }: EmbeddingBatch) => ({ embeddings: input.map((text) => [text.length]) })

const inSpace = (name: string, embeddingSpace: string, more = {}) =>
  FakeProvider.make(name, { embed: lengths, embeddingSpace, ...more })

describe("embed", () => {
  it.effect("turns a text, or several, into vectors in their order", () =>
    Effect.gen(function* () {
      const fuse = yield* make({ providers: [inSpace("a", "small")] })

      const one = yield* fuse.embed("word")
      const several = yield* fuse.embed(["four", "a", "to"])

      assert.deepStrictEqual(one.embeddings, [[4]])
      assert.deepStrictEqual(several.embeddings, [[4], [1], [2]])
      assert.strictEqual(several.embeddingSpace, "small")
      assert.strictEqual(several.provider, "a")
      assert.deepStrictEqual(
        several.attempts.map(({ provider, outcome }) => `${provider} ${outcome}`),
        ["a success"]
      )
    })
  )

  it.effect("is retried, and fails over within one embedding space only", () =>
    Effect.gen(function* () {
      const a = inSpace("a", "small", { errors: outage("a", 3) })
      const other = inSpace("other", "large")
      const b = inSpace("b", "small")
      const fuse = yield* make({ providers: [FakeProvider.make("chat"), a, other, b] })

      const response = yield* fuse.embed("word")

      assert.strictEqual(response.provider, "b")
      assert.strictEqual(a.batches.length, 3)
      assert.strictEqual(other.batches.length, 0)
      assert.deepStrictEqual(
        response.attempts.map(({ provider, outcome }) => `${provider} ${outcome}`),
        ["chat rejected", "a failure", "a failure", "a failure", "other rejected", "b success"]
      )
      assert.include(response.attempts[4]?.error?.message, "another space (large, not small)")
    })
  )

  it.effect("without a named space, no two providers share one", () =>
    Effect.gen(function* () {
      const a = FakeProvider.make("a", { embed: lengths, model: "m", errors: outage("a", 3) })
      const b = FakeProvider.make("b", { embed: lengths, model: "m" })
      const fuse = yield* make({ providers: [a, b] })

      const error = yield* Effect.flip(fuse.embed("word"))

      assert.instanceOf(error, AllProvidersFailedError)
      assert.strictEqual(b.batches.length, 0)
    })
  )

  it.effect("splits many texts into requests that every provider of the space can take", () =>
    Effect.gen(function* () {
      const a = inSpace("a", "small", { maxEmbeddingInputs: 5 })
      const b = inSpace("b", "small", { maxEmbeddingInputs: 2 })
      const usage = { inputTokens: 3, outputTokens: 0 }
      const counting = FakeProvider.make("c", {
        embed: (batch) => ({ ...lengths(batch), usage }),
        embeddingSpace: "small"
      })
      const fuse = yield* make({ providers: [counting, a, b] })

      const response = yield* fuse.embed(["a", "bb", "ccc", "dddd", "eeeee"])

      assert.deepStrictEqual(response.embeddings, [[1], [2], [3], [4], [5]])
      assert.deepStrictEqual(
        counting.batches.map(({ input }) => input.length),
        [2, 2, 1]
      )
      assert.deepStrictEqual(response.usage, { inputTokens: 9, outputTokens: 0 })
      assert.strictEqual(response.attempts.length, 3)
    })
  )

  it.effect("says what was changed, once for all batches, and where vectors are not as long as they were to be", () =>
    Effect.gen(function* () {
      const embed = (batch: EmbeddingBatch) => ({ ...lengths(batch), changes: ["taskType was left out."] })
      const fuse = yield* make({ providers: [FakeProvider.make("a", { embed, maxEmbeddingInputs: 2 })] })

      const response = yield* fuse.embed({ input: ["a", "b", "c"], dimensions: 3, taskType: "t" })
      const fitting = yield* fuse.embed({ input: ["a", "b", "c"], dimensions: 1 })

      assert.deepStrictEqual(response.changes, [
        "taskType was left out.",
        "dimensions is 1 instead of 3: the model has no other vectors."
      ])
      assert.deepStrictEqual(fitting.changes, ["taskType was left out."])
    })
  )

  it.effect("a provider that gives back other than a vector for each text is asked once more, then passed over", () =>
    Effect.gen(function* () {
      for (const embeddings of [[], [[1], [2]], [[]], [[Number.NaN]]]) {
        const a = FakeProvider.make("a", { embed: () => ({ embeddings }), embeddingSpace: "small" })
        const fuse = yield* make({ providers: [a, inSpace("b", "small")] })

        const response = yield* fuse.embed("word")

        assert.strictEqual(response.provider, "b")
        assert.strictEqual(a.batches.length, 2)
        assert.instanceOf(response.attempts[0]?.error, InvalidResponseError)
      }
    })
  )

  const perToken = Either.getOrThrow(Pricing.check({ prices: { "a/*": { input: 1_000_000 } } }, "pricing"))

  it.effect("wrong vectors with a known usage are billed by it", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: 7, outputTokens: 0 }
      const a = FakeProvider.make("a", {
        model: "m",
        embed: () => ({ embeddings: [], usage }),
        embeddingSpace: "small"
      })
      const counting = FakeProvider.make("c", {
        embed: () => ({ embeddings: [], usage: { total: 1 } as never }),
        embeddingSpace: "small"
      })
      const fuse = yield* makeFuse({
        providers: [a, counting, inSpace("b", "small")],
        pricing: perToken,
        retry: { maxAttempts: 1 }
      })

      const response = yield* fuse.embed("word")

      assert.strictEqual(response.provider, "b")
      const [failed, uncounted] = response.attempts
      assert.deepInclude(failed, { outcome: "failure", usage, cost: 7 })
      assert.instanceOf(failed?.error, InvalidResponseError)
      assert.deepStrictEqual(failed?.error?.usage, usage)
      assert.isUndefined(failed?.estimated)
      assert.isUndefined(uncounted?.usage)
      assert.strictEqual(response.cost, 7)
      assert.strictEqual(fuse.events.find((event) => event._tag === "AttemptFailed")?.cost, 7)
    })
  )

  it.effect("what ran out of time is billed for the texts that it has read", () =>
    Effect.gen(function* () {
      const a = FakeProvider.make("a", { model: "m", embed: lengths, embeddingSpace: "small", latency: "1 hour" })
      const fuse = yield* makeFuse({
        providers: [a, inSpace("b", "small")],
        pricing: perToken,
        timeouts: { attempt: "1 second" },
        retry: { maxAttempts: 1 }
      })

      const fiber = yield* Effect.fork(fuse.embed("x".repeat(450)))
      yield* TestClock.adjust("1 minute")
      const response = yield* Fiber.join(fiber)

      const [failed] = response.attempts
      assert.deepInclude(failed, { outcome: "failure", cost: 100, estimated: true })
      assert.deepStrictEqual(failed?.usage, { inputTokens: 100, outputTokens: 0 })
      assert.strictEqual(response.cost, 100)
    })
  )

  /** Embeds one text at a time, with these usages. */
  const using = (...usages: ReadonlyArray<Usage | undefined>) => {
    let batch = 0
    return FakeProvider.make("a", {
      maxEmbeddingInputs: 1,
      embed: (asked) => ({ ...lengths(asked), usage: usages[batch++] })
    })
  }

  it.effect("adds up all that the batches tell of their usage, and tells nothing that one of them does not tell", () =>
    Effect.gen(function* () {
      const one = { inputTokens: 3, outputTokens: 1, cachedInputTokens: 2, reasoningTokens: 1 }
      const other = { inputTokens: 4, outputTokens: 1, cachedInputTokens: 1, cacheWriteInputTokens: 3 }
      const texts = ["a", "b"]
      const usageOf = (...usages: ReadonlyArray<Usage | undefined>) =>
        Effect.map(
          Effect.flatMap(make({ providers: [using(...usages)] }), (fuse) => fuse.embed(texts)),
          ({ usage }) => usage
        )

      assert.deepStrictEqual(yield* usageOf(one, other), { inputTokens: 7, outputTokens: 2, cachedInputTokens: 3 })
      assert.deepStrictEqual(yield* usageOf(one, one), {
        inputTokens: 6,
        outputTokens: 2,
        cachedInputTokens: 4,
        reasoningTokens: 2
      })
      assert.isUndefined(yield* usageOf(one, undefined))
      assert.isUndefined(yield* usageOf(undefined, one))
      assert.isUndefined(yield* usageOf(one, { total: 3 } as never))
    })
  )

  it.effect("attempts are numbered through all batches of a call", () =>
    Effect.gen(function* () {
      // The second batch is answered at its second attempt.
      const a = inSpace("a", "small", { maxEmbeddingInputs: 1, errors: [undefined, overloaded("a")] as never })
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("chat"), a], retry: { baseDelay: 0 } })

      const response = yield* fuse.embed(["a", "b", "c"])

      assert.deepStrictEqual(
        response.attempts.map(({ provider, number, outcome }) => `${provider} ${number} ${outcome}`),
        [
          "chat 0 rejected",
          "a 1 success",
          "chat 0 rejected",
          "a 2 failure",
          "a 3 success",
          "chat 0 rejected",
          "a 4 success"
        ]
      )
      const told = fuse.events.flatMap((event) => ("attempt" in event ? [`${event._tag} ${event.attempt}`] : []))
      assert.deepStrictEqual(told, [
        "AttemptRejected 0",
        "AttemptStarted 1",
        "AttemptSucceeded 1",
        "AttemptRejected 0",
        "AttemptStarted 2",
        "AttemptFailed 2",
        "RetryScheduled 2",
        "AttemptStarted 3",
        "AttemptSucceeded 3",
        "AttemptRejected 0",
        "AttemptStarted 4",
        "AttemptSucceeded 4",
        "CallSucceeded 4"
      ])
    })
  )

  it.effect("a provider that is passed over in a later batch has had its attempts in the earlier ones", () =>
    Effect.gen(function* () {
      const a = inSpace("a", "small", { maxEmbeddingInputs: 1, errors: [undefined, overloaded("a")] as never })
      const fuse = yield* makeFuse({
        providers: [a, inSpace("b", "small")],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1 }
      })

      const response = yield* fuse.embed(["a", "b", "c"])

      assert.deepStrictEqual(
        response.attempts.map(({ provider, number, outcome }) => `${provider} ${number} ${outcome}`),
        ["a 1 success", "a 2 failure", "b 1 success", "a 2 rejected", "b 2 success"]
      )
      const rejected = fuse.events.find((event) => event._tag === "AttemptRejected")
      assert.strictEqual(rejected?.attempt, 2)
    })
  )

  it.effect("opens the circuit that complete sees too", () =>
    Effect.gen(function* () {
      const a = inSpace("a", "small", { errors: [overloaded("a")] })
      const fuse = yield* make({ providers: [a], retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } })

      yield* Effect.exit(fuse.embed("word"))

      assert.strictEqual(yield* fuse.circuitState("a"), "Open")
    })
  )

  for (const [message, request] of [
    ["input is", []],
    ["input[1] is", ["a", ""]],
    ["input[0] is", [7]],
    ["dimensions is", { input: "a", dimensions: 0 }],
    ["taskType is", { input: "a", taskType: 7 }],
    ["extra is", { input: "a", extra: [] }],
    ["the request is", null]
  ] as const) {
    it.effect(`a request is looked at before anybody is asked: ${message}`, () =>
      Effect.gen(function* () {
        const a = inSpace("a", "small")
        const fuse = yield* make({ providers: [a] })

        const error = yield* Effect.flip(fuse.embed(request as never))

        assert.instanceOf(error, InvalidRequestError)
        assert.include(error.message, message)
        assert.strictEqual(a.batches.length, 0)
      })
    )
  }

  it("is a promise of the client", async () => {
    await using client = FuseClient.make({ providers: [inSpace("a", "small")] })

    assert.deepStrictEqual((await client.embed("word")).embeddings, [[4]])
  })
})
