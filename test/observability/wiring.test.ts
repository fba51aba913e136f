import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Either, Fiber, Layer, Metric, Stream, TestClock } from "effect"
import { FuseClient, LlmFuse, type Options, Prometheus } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"
import { everything } from "./everything.ts"
import { named, ownLabel, seriesOf } from "./series.ts"

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

  it("goes on in the same series when a service is closed and another one made", async () => {
    const names = ["rebuilt-1", "rebuilt-2"]
    const run = async () => {
      const providers = [
        FakeProvider.make("rebuilt-1", { errors: outage("rebuilt-1", 1) }),
        FakeProvider.make("rebuilt-2")
      ]
      const client = FuseClient.make({ providers, retry: { maxAttempts: 1 }, metrics: true })
      await client.complete("hi")
      await client.close()
    }
    await run()
    const before = Metric.unsafeSnapshot().length

    for (let times = 1; times < 100; times += 1) await run()
    const text = await Effect.runPromise(Prometheus.text)

    assert.strictEqual(Metric.unsafeSnapshot().length, before)
    const keys = text
      .split("\n")
      .flatMap((line) => (line.startsWith("#") ? [] : [line.slice(0, line.lastIndexOf(" "))]))
    assert.deepStrictEqual(
      keys.filter((key, index) => keys.indexOf(key) !== index),
      []
    )
    const answered = names.map((name) =>
      valuesOf(text, "llmfuse_attempts_total", `provider="${name}",outcome="success"`)
    )
    assert.deepStrictEqual(answered, [[], [100]])
  })

  it("has one series also where the package is loaded twice", async () => {
    const labels = ownLabel()
    const copies: Array<unknown> = []
    for (const _ of [1, 2]) {
      vi.resetModules()
      const { listener } = await import("../../src/observability/Metrics.ts")
      copies.push(listener)
      for (const event of everything("groq")) listener({ labels })(event)
    }

    assert.notStrictEqual(copies[0], copies[1])
    const keys = Metric.unsafeSnapshot().flatMap(({ metricKey: { name, tags } }) =>
      tags.some(({ value }) => value === labels.run)
        ? [`${name} ${tags.map(({ key, value }) => `${key}=${value}`)}`]
        : []
    )
    assert.isNotEmpty(keys)
    assert.strictEqual(new Set(keys).size, keys.length)
  })

  it.effect("shows the circuit of every provider from the beginning", () =>
    Effect.gen(function* () {
      const labels = ownLabel()
      const providers = ["a", "b"].map((name) => FakeProvider.make(name))

      yield* Layer.build(LlmFuse.layer({ providers, metrics: { labels } }))

      assert.deepStrictEqual(named(seriesOf(labels), "llmfuse.circuit.state"), {
        "llmfuse.circuit.state{provider=a}": 0,
        "llmfuse.circuit.state{provider=b}": 0
      })
    }).pipe(Effect.scoped)
  )

  it.effect("tells two services in one process apart by labels", () =>
    Effect.gen(function* () {
      const [one, other] = [ownLabel(), ownLabel()]
      const make = (labels: { readonly run: string }, length: number) =>
        makeFuse({
          providers: [FakeProvider.make("groq", { errors: outage("groq", length) })],
          retry: { maxAttempts: 1 },
          breaker: { failureThreshold: 1 },
          metrics: { labels }
        })
      const healthy = yield* make(one, 0)
      const broken = yield* make(other, 1)

      yield* Effect.exit(broken.ask("hi"))
      yield* healthy.ask("hi")

      const states = [one, other].map((labels) => seriesOf(labels).get("llmfuse.circuit.state{provider=groq}"))
      assert.deepStrictEqual(states, [0, 2])
      assert.deepStrictEqual(named(seriesOf(one), "llmfuse.calls"), {
        "llmfuse.calls{operation=complete,outcome=success}": 1
      })
    })
  )

  it.effect("refuses what it cannot use, and names it", () =>
    Effect.gen(function* () {
      const refusal = (metrics: unknown) =>
        Effect.map(
          Effect.either(
            Effect.scoped(
              Layer.build(
                LlmFuse.layer({ providers: [FakeProvider.make("a")], metrics: metrics as Options["metrics"] })
              )
            )
          ),
          (result) => (Either.isLeft(result) ? String(result.left) : "taken")
        )

      for (const [metrics, words] of [
        ["yes", /metrics is "yes"; allowed: true, false, or an object with labels/],
        [[], /metrics is an empty list/],
        [{ label: {} }, /metrics\.label is not an option/],
        [{ labels: "a" }, /metrics\.labels is "a"/],
        [{ labels: null }, /metrics\.labels is null/],
        [{ labels: { service: 1 } }, /metrics\.labels\.service is 1; allowed: a text/],
        [{ labels: { "": "a" } }, /metrics\.labels is ""/],
        [{ labels: { __name__: "a" } }, /metrics\.labels is "__name__"/],
        [{ labels: { provider: "a" } }, /metrics\.labels is "provider"/],
        [{ labels: { error_type: "a" } }, /metrics\.labels is "error_type"/],
        [{ labels: { le: "a" } }, /metrics\.labels is "le"/],
        [{ labels: { unit: "a" } }, /metrics\.labels is "unit"/],
        [{ labels: { "a.b": "a", a_b: "a" } }, /metrics\.labels is "a_b"/],
        [true, /^taken$/],
        [{}, /^taken$/],
        [{ labels: {} }, /^taken$/],
        [{ labels: undefined }, /^taken$/],
        [{ labels: { "service.name": "a", tenant: "" } }, /^taken$/]
      ] as const) {
        assert.match(yield* refusal(metrics), words)
      }
    })
  )
})
