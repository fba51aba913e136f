import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import {
  ContentPolicyError,
  CustomProviderError,
  DeadlineExceededError,
  Provider,
  ServerError,
  StreamInterruptedError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { collect, makeFuse } from "./fuse.ts"

const retry = { maxAttempts: 1 }

const millisOf = (attempts: ReadonlyArray<{ readonly duration: Duration.Duration }>) =>
  attempts.map(({ duration }) => Duration.toMillis(duration))

describe("an error that a provider fails with again and again", () => {
  it.effect("keeps the story of each call apart", () =>
    Effect.gen(function* () {
      const same = new ContentPolicyError({ provider: "a", stage: "prompt", statusCode: 400, message: "a: no" })
      let calls = 0
      const a = Provider.make({
        name: "a",
        complete: () => Effect.delay(Effect.fail(same), calls++ === 0 ? "0 millis" : "1 second")
      })
      const fuse = yield* makeFuse({ providers: [a], retry })

      const first = yield* Effect.flip(fuse.ask("hi"))
      const second = yield* Effect.flip(fuse.ask("hi"))

      assert(first._tag === "ContentPolicyError" && second._tag === "ContentPolicyError")
      assert.deepStrictEqual([millisOf(first.attempts), millisOf(second.attempts)], [[0], [1000]])
      assert.strictEqual(first, same)
      assert.instanceOf(second, ContentPolicyError)
      assert.deepStrictEqual({ ...second }, { ...same })
      assert.strictEqual(second.message, "a: no")
      assert.strictEqual(second.stack, same.stack)
      assert.strictEqual(Object.prototype.toString.call(second), "[object Error]")
    })
  )
})

describe("an error that says it is from somebody else", () => {
  it.effect("is counted for the provider that failed with it", () =>
    Effect.gen(function* () {
      const stranger = new ContentPolicyError({ provider: "user-4711", stage: "prompt" })
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("a", { errors: [stranger] })], retry })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert(error._tag === "ContentPolicyError")
      assert.strictEqual(error.attemptCount, 1)
    })
  )

  it.effect("does not say whose stream broke", () =>
    Effect.gen(function* () {
      const cut = new StreamInterruptedError({ provider: "user-4711", partial: "" })
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("a", { streams: [["half ", cut]] }), FakeProvider.make("b")],
        recovery: "restart",
        retry
      })

      const { events } = yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(events, ["started a", "half ", "restarted a: half ", "started b", "ok", "finished b: ok"])
      const restarted = fuse.events.find((event) => event._tag === "StreamRestarted")
      assert.deepStrictEqual([restarted?.from, restarted?.to], ["a", "b"])
    })
  )
})

describe("a provider that asks another LlmFuse", () => {
  it.effect("fails with what that call came to, which is not this call's own", () =>
    Effect.gen(function* () {
      const deadline = Duration.seconds(1)
      const inner = new DeadlineExceededError({ provider: "inner", deadline, message: "inner: no time" })
      const a = Provider.make({ name: "a", complete: () => Effect.fail(inner as never) })
      const fuse = yield* makeFuse({ providers: [a, FakeProvider.make("b")], retry })

      const { provider, attempts } = yield* fuse.ask("hi")

      assert.strictEqual(provider, "b")
      assert.instanceOf(attempts[0]?.error, CustomProviderError)
    })
  )
})

describe("an answer whose usage is none", () => {
  it.effect("is an answer, and its usage is not known", () =>
    Effect.gen(function* () {
      const usage = null as never
      const fuse = yield* makeFuse({
        providers: [
          FakeProvider.make("a", { reply: { text: "hi", usage }, embed: () => ({ embeddings: [[1]], usage }) })
        ]
      })

      const response = yield* fuse.ask("hi")
      const { events } = yield* collect(fuse.stream("hi"))
      const embedded = yield* fuse.embed("hi")

      assert.isUndefined(response.usage)
      assert.strictEqual(events.at(-1), "finished a: hi")
      assert.isUndefined(embedded.usage)
    })
  )
})

describe("a failure that is none of LlmFuse's errors", () => {
  for (const failure of [new Error("plain"), "a text", undefined, { code: 7 }]) {
    it.effect(`is described by one of them: ${String(failure)}`, () =>
      Effect.gen(function* () {
        const a = Provider.make({ name: "a", complete: () => Effect.fail(failure as never) })
        const alone = yield* makeFuse({ providers: [a], retry })
        const first = yield* makeFuse({ providers: [a, FakeProvider.make("b")], retry })

        const error = yield* Effect.flip(alone.ask("hi"))
        const response = yield* first.ask("hi")

        assert(error._tag === "AllProvidersFailedError")
        assert.instanceOf(error.errors.a, CustomProviderError)
        assert.strictEqual(response.provider, "b")
        assert.strictEqual(alone.events.at(-1)?._tag, "CallFailed")
      })
    )
  }
})

class OwnError extends ServerError {
  // @effect-diagnostics-next-line overriddenSchemaConstructor:off
  constructor(text: string) {
    super({ provider: "a", message: `a: ${text.trim()}` })
  }
}

class PrivateError extends ServerError {
  readonly #case = "overloaded"
  override get failureCase() {
    return this.#case
  }
}

describe("an error class of the user's own", () => {
  it.effect("that keeps something to itself may be failed with again", () =>
    Effect.gen(function* () {
      const same = new PrivateError({ provider: "a" })
      const a = Provider.make({ name: "a", complete: () => Effect.fail(same) })
      const fuse = yield* makeFuse({ providers: [a, FakeProvider.make("b")], retry })

      yield* fuse.ask("hi")

      assert.strictEqual((yield* fuse.ask("hi")).provider, "b")
    })
  )

  it.effect("goes to the caller as it is, and harms nobody who listens", () =>
    Effect.gen(function* () {
      const a = Provider.make({ name: "a", complete: () => Effect.fail(new OwnError(" boom ")) })
      const fuse = yield* makeFuse({ providers: [a], retry })

      const error = yield* Effect.flip(fuse.ask("hi"))

      assert(error._tag === "AllProvidersFailedError")
      assert.instanceOf(error.errors.a, OwnError)
      assert.strictEqual(fuse.events.at(-1)?._tag, "CallFailed")
    })
  )
})
