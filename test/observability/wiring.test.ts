import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream, TestClock } from "effect"
import { Prometheus } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"

/** The values of a metric in the text, whose labels hold a word. */
const valuesOf = (text: string, metric: string, word: string): ReadonlyArray<number> =>
  text
    .split("\n")
    .filter((line) => line.startsWith(`${metric}{`) && line.includes(word))
    .map((line) => Number(line.slice(line.lastIndexOf(" ") + 1)))

describe("the option metrics", () => {
  it.effect("counts what happens, for whoever reads Effect's metrics", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("counted-1", { errors: outage("counted-1", 1) }), FakeProvider.make("counted-2")],
        retry: { maxAttempts: 1 },
        metrics: true
      })

      yield* fuse.ask("secret prompt")
      const text = yield* Prometheus.text

      assert.deepStrictEqual(valuesOf(text, "llmfuse_attempts_total", 'provider="counted-1"'), [1])
      assert.deepStrictEqual(valuesOf(text, "llmfuse_failovers_total", 'from="counted-1"'), [1])
      assert.notInclude(text, "secret")
    })
  )

  it.effect("is off unless asked for", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("uncounted")] })

      yield* fuse.ask("hi")

      assert.notInclude(yield* Prometheus.text, "uncounted")
    })
  )

  it.effect("counts the events that a slow reader has missed", () =>
    Effect.gen(function* () {
      const droppedNow = Effect.map(Prometheus.text, (text) =>
        Number(/^llmfuse_events_dropped_total(?:\{[^}]*\})? (\S+)$/m.exec(text)?.[1] ?? 0)
      )
      const before = yield* droppedNow
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("flood")], metrics: true, onEvent: undefined })
      let isFirst = true
      const slow = yield* Effect.fork(
        Stream.runForEach(fuse.eventStream, () =>
          Effect.suspend(() => {
            const wait = isFirst ? Effect.sleep("1 hour") : Effect.void
            isFirst = false
            return wait
          })
        )
      )
      yield* Effect.repeatN(Effect.yieldNow(), 9)

      yield* Effect.repeatN(fuse.complete("hi"), 499)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.interrupt(slow)

      assert.isAbove((yield* droppedNow) - before, 0)
    })
  )
})
