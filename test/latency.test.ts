import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Stream, TestClock } from "effect"
import type { Provider } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { makeFuse, type TestOptions } from "./fuse.ts"

const provider: Provider.Provider = {
  name: "a",
  complete: () => Effect.delay(Effect.succeed("ok"), "100 millis")
}

const durations = (options: Omit<TestOptions, "providers">) =>
  Effect.gen(function* () {
    const fuse = yield* makeFuse({ providers: [provider], ...options })
    const { attempts, latency } = yield* fuse.ask("hi")
    const [health] = yield* fuse.health
    return [latency, attempts[0]?.duration, health?.latency.average].map((it) => it && Duration.toMillis(it))
  })

describe("the duration of the first attempt", () => {
  it.effect("is the call's where nothing stood before it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* durations({}), [100, 100, 100])
    })
  )

  it.effect("does not hold the look-up of what is kept", () =>
    Effect.gen(function* () {
      const store = {
        get: () => Effect.delay(Effect.succeed(undefined), "200 millis"),
        set: () => Effect.void,
        remove: () => Effect.void,
        clear: Effect.void
      }

      assert.deepStrictEqual(yield* durations({ cache: { ttl: "1 hour", store } }), [300, 100, 100])
    })
  )

  it.effect("does not hold the wait for prices", () =>
    Effect.gen(function* () {
      const pricing = { costOf: () => 1, load: Effect.sleep("50 millis") }

      assert.deepStrictEqual(yield* durations({ pricing, maxCost: 10 }), [150, 100, 100])
    })
  )
})

describe("the average latency", () => {
  it.effect("of streams is until the first content, whatever time the reader takes", () =>
    Effect.gen(function* () {
      const a = FakeProvider.make("a", {
        streams: [[{ wait: "300 millis" }, "one", { wait: "2 seconds" }, "two", { _tag: "End", finishReason: "stop" }]]
      })
      const fuse = yield* makeFuse({ providers: [a] })

      const reading = Stream.runForEach(fuse.stream("hi"), () => Effect.sleep("1 second"))
      const fiber = yield* Effect.fork(reading)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      const [health] = yield* fuse.health

      assert.deepStrictEqual(health?.latency.average, Duration.millis(300))
    })
  )
})
