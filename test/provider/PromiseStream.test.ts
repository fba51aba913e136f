import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import type { StreamPart } from "../../src/model/ChatEvent.ts"
import { RateLimitError } from "../../src/model/LlmError.ts"
import * as Provider from "../../src/provider/Provider.ts"
import { drained, opened } from "./streaming.ts"

type Start = NonNullable<Provider.PromiseProvider["stream"]>

const from = (stream: Start) => Provider.fromPromise({ name: "mine", complete: async () => "whole", stream })

/** An iterator that notes what is asked of it. */
const noting = (next: (count: number) => Promise<IteratorResult<string>>) => {
  const notes: Array<string> = []
  let count = 0
  const iterator: AsyncIterableIterator<string> = {
    [Symbol.asyncIterator]: () => iterator,
    next: () => {
      notes.push("next")
      return next(count++)
    },
    return: () => {
      notes.push("return")
      return new Promise(() => {})
    }
  }
  return { notes, iterator }
}

describe("parts", () => {
  it.effect("are texts and parts, in order", () =>
    Effect.gen(function* () {
      const provider = from(async function* () {
        yield "a"
        yield { _tag: "ReasoningDelta", text: "hm" } satisfies StreamPart
        yield { _tag: "End", finishReason: "stop" } satisfies StreamPart
      })

      const { parts, error } = yield* drained(provider)

      assert.strictEqual(error, undefined)
      assert.deepStrictEqual(parts, [
        "a",
        { _tag: "ReasoningDelta", text: "hm" },
        { _tag: "End", finishReason: "stop" }
      ])
    })
  )

  it.effect("may be promised", () =>
    Effect.gen(function* () {
      async function* generate() {
        yield "a"
      }

      assert.deepStrictEqual((yield* drained(from(async () => generate()))).parts, ["a"])
    })
  )

  it.effect("belong to the request, and the function to its object", () =>
    Effect.gen(function* () {
      class Mine implements Provider.PromiseProvider {
        readonly name = "mine"
        readonly greeting = "hi, "
        readonly complete = async () => "whole"
        async *stream({ messages }: { readonly messages: ReadonlyArray<{ readonly content: unknown }> }) {
          yield `${this.greeting}${messages[0]?.content}`
        }
      }

      assert.deepStrictEqual((yield* drained(Provider.fromPromise(new Mine()))).parts, ["hi, hello"])
    })
  )

  it("are none where there is no function", () => {
    const provider = Provider.fromPromise({ name: "mine", complete: async () => "whole" })

    assert.strictEqual(provider.stream, undefined)
  })

  it.effect("are asked for when they are wanted, and not before", () =>
    Effect.gen(function* () {
      const { notes, iterator } = noting(async (count) => ({ value: `${count}` }))

      const pulled = yield* Effect.gen(function* () {
        const pull = yield* Effect.flatMap(opened(from(() => iterator)), Stream.toPull)
        const before = notes.length
        yield* pull
        yield* pull
        yield* Effect.yieldNow()
        return [before, notes.length]
      }).pipe(Effect.scoped)

      assert.deepStrictEqual(pulled, [0, 2])
    })
  )
})

describe("a rejection", () => {
  const rate = new RateLimitError({ provider: "mine" })

  it.effect.each([
    ["an error of ours", rate, "RateLimitError"],
    ["a status", Object.assign(new Error("slow"), { status: 429 }), "RateLimitError"],
    ["a network failure", new TypeError("terminated"), "ConnectionError"],
    ["anything else", new Error("odd"), "CustomProviderError"]
  ] as const)("within the stream is what it describes: %s", ([, reason, tag]) =>
    Effect.gen(function* () {
      const provider = from(async function* () {
        yield "a"
        throw reason
      })

      const { parts, error } = yield* drained(provider)

      assert.deepStrictEqual(parts, ["a"])
      assert.strictEqual(error?._tag as string, tag)
    })
  )

  it.effect.each([
    ["a rejected promise", async () => Promise.reject(rate)],
    [
      "a function that throws",
      () => {
        throw rate
      }
    ]
  ] as const)("comes before there is a stream: %s", ([, stream]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Effect.flip(Effect.scoped(opened(from(stream)))), rate)
    })
  )

  it.effect("is a bug where nothing can be iterated", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(opened(from((async () => undefined) as never))))

      assert.deepInclude(error, { _tag: "CustomProviderError", retryable: false })
    })
  )
})

describe("leaving", () => {
  it.effect("aborts the signal and tells the iterator to return, and waits for neither", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const signals: Array<AbortSignal> = []
      const { notes, iterator } = noting(() => {
        Deferred.unsafeDone(begun, Effect.void)
        return new Promise(() => {})
      })
      const provider = from((_request, { signal }) => {
        signals.push(signal)
        return iterator
      })
      const fiber = yield* Effect.fork(drained(provider))
      yield* Deferred.await(begun)

      const exit = yield* Fiber.interrupt(fiber)

      assert.isTrue(Exit.isInterrupted(exit))
      assert.isTrue(signals[0]?.aborted)
      assert.deepStrictEqual(notes, ["next", "return"])
    })
  )

  it.effect("does not wait for a generator that waits for something", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const provider = from(async function* () {
        Deferred.unsafeDone(begun, Effect.void)
        await new Promise(() => {})
        yield "never"
      })
      const fiber = yield* Effect.fork(drained(provider))
      yield* Deferred.await(begun)

      const exit = yield* Fiber.interrupt(fiber)

      assert.isTrue(Exit.isInterrupted(exit))
    })
  )

  it.effect("lets a generator clean up that heeds the signal", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const cleaned = yield* Deferred.make<void>()
      const provider = from(async function* (_request, { signal }) {
        try {
          Deferred.unsafeDone(begun, Effect.void)
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
          yield "never"
        } finally {
          Deferred.unsafeDone(cleaned, Effect.void)
        }
      })
      const fiber = yield* Effect.fork(drained(provider))
      yield* Deferred.await(begun)

      yield* Fiber.interrupt(fiber)

      yield* Deferred.await(cleaned)
    })
  )

  it.effect("while the stream is promised aborts, and returns what comes late", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<AbortSignal>()
      const { notes, iterator } = noting(() => new Promise(() => {}))
      let promise = (_: AsyncIterable<string>) => {}
      const provider = from((_request, { signal }) => {
        Deferred.unsafeDone(asked, Effect.succeed(signal))
        return new Promise<AsyncIterable<string>>((resolve) => {
          promise = resolve
        })
      })
      const fiber = yield* Effect.fork(drained(provider))
      const signal = yield* Deferred.await(asked)

      yield* Fiber.interrupt(fiber)
      promise(iterator)
      yield* Effect.promise(() => new Promise(setImmediate))

      assert.isTrue(signal.aborted)
      assert.deepStrictEqual(notes, ["return"])
    })
  )

  it.effect("after the end tells nobody", () =>
    Effect.gen(function* () {
      const signals: Array<AbortSignal> = []
      const { notes, iterator } = noting(async (count) =>
        count === 0 ? { value: "a" } : { value: undefined, done: true }
      )
      const provider = from((_request, { signal }) => {
        signals.push(signal)
        return iterator
      })

      yield* drained(provider)

      assert.deepStrictEqual(notes, ["next", "next"])
      assert.isFalse(signals[0]?.aborted)
    })
  )

  it.effect("before the first part returns too", () =>
    Effect.gen(function* () {
      const { notes, iterator } = noting(() => new Promise(() => {}))
      const scope = yield* Scope.make()
      assert.isDefined(yield* Scope.extend(opened(from(() => iterator)), scope))

      yield* Scope.close(scope, Exit.void)

      assert.deepStrictEqual(notes, ["return"])
    })
  )
})
