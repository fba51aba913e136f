import { assert, describe, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { CircuitOpenError, FuseClient, UnknownProviderError } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage, rateLimited } from "./errors.ts"
import { collect, makeFuse, tagsOf } from "./fuse.ts"

const retry = { maxAttempts: 1 }

describe("a provider's circuit", () => {
  it.effect("isolated by hand, it is passed over until it is restored", () =>
    Effect.gen(function* () {
      const [groq, gemini] = [FakeProvider.make("groq"), FakeProvider.make("gemini")]
      const fuse = yield* makeFuse({ providers: [groq, gemini] })

      yield* fuse.isolate("groq")
      const without = yield* fuse.ask("hi")
      const state = yield* fuse.circuitState("groq")
      yield* fuse.restore("groq")
      const back = yield* fuse.ask("hi")

      assert.deepStrictEqual([without.provider, state, back.provider], ["gemini", "Isolated", "groq"])
      assert.instanceOf(without.attempts[0]?.error, CircuitOpenError)
      assert.strictEqual(without.attempts[0]?.error?.message, "groq: circuit isolated by hand")
      assert.includeMembers([...tagsOf(fuse.events)], ["CircuitIsolated", "CircuitClosed"])
    })
  )

  it.effect("an isolated provider gets no share of the deadline", () =>
    Effect.gen(function* () {
      const slow = FakeProvider.make("slow", { latency: "1 hour" })
      const fuse = yield* makeFuse({ providers: [slow, FakeProvider.make("out"), FakeProvider.make("gemini")] })
      yield* fuse.isolate("out")

      const response = yield* fuse.ask("hi", { deadline: "10 seconds" })

      const [first] = response.attempts
      assert.strictEqual(
        first?.error?.message,
        "slow: no whole answer within 5000 ms, cut short to leave the other providers a share of the deadline"
      )
    })
  )

  it.effect("names that are not in the list are refused", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")] })

      assert.instanceOf(yield* Effect.flip(fuse.isolate("nobody")), UnknownProviderError)
      assert.instanceOf(yield* Effect.flip(fuse.restore("nobody")), UnknownProviderError)
    })
  )

  it("a client isolates and restores too", async () => {
    const client = FuseClient.make({ providers: [FakeProvider.make("groq"), FakeProvider.make("gemini")] })

    await client.isolate("groq")
    const without = await client.complete("hi")
    await client.restore("groq")
    const back = await client.complete("hi")
    await client.close()

    assert.deepStrictEqual([without.provider, back.provider], ["gemini", "groq"])
  })

  it.effect("opens by the share of failures, and the event says why", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 4) })
      const fuse = yield* makeFuse({
        providers: [groq, FakeProvider.make("gemini")],
        retry,
        breaker: { failureThreshold: 100, failureRate: { threshold: 0.5, window: "1 minute", minimumCalls: 4 } }
      })

      yield* Effect.repeatN(fuse.complete("hi"), 3)

      assert.strictEqual(yield* fuse.circuitState("groq"), "Open")
      const opened = fuse.events.find((event) => event._tag === "CircuitOpened")
      assert.strictEqual(opened?.reason, "failure-rate")
    })
  )

  it.effect("of a slow stream, what counts is its first content", () =>
    Effect.gen(function* () {
      const script = (first: string) => [{ wait: first as "1 second" }, "one ", { wait: "20 seconds" } as const, "two"]
      const breaker = {
        slowCall: { slowerThan: "5 seconds", threshold: 1, window: "1 hour", minimumCalls: 2 }
      } as const
      const prompt = FakeProvider.make("prompt", { streams: [script("1 second"), script("1 second")] })
      const late = FakeProvider.make("late", { streams: [script("6 seconds"), script("6 seconds")] })
      const fuse = yield* makeFuse({ providers: [prompt, late], breaker })

      for (const name of ["prompt", "late", "prompt", "late"]) yield* collect(fuse.stream("hi", { providers: [name] }))

      assert.strictEqual(yield* fuse.circuitState("prompt"), "Closed")
      const opened = fuse.events.flatMap((event) =>
        event._tag === "CircuitOpened" ? [[event.provider, event.reason]] : []
      )
      assert.deepStrictEqual(opened, [["late", "slow-calls"]])
    })
  )

  it.effect(
    "a rate limit whose hint is long opens it until then, and a later shorter hint does not bring that forward",
    () =>
      Effect.gen(function* () {
        const groq = FakeProvider.make("groq", { errors: [rateLimited("groq", "40 seconds")] })
        const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")] })
        yield* fuse.complete("hi")

        yield* TestClock.adjust("39 seconds")
        const early = yield* fuse.complete("hi")
        yield* TestClock.adjust("1 second")
        const inTime = yield* fuse.complete("hi")

        assert.deepStrictEqual([early.provider, inTime.provider], ["gemini", "groq"])
      })
  )
})
