import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Metric } from "effect"
import * as fc from "fast-check"
import { FakeProvider } from "llmfuse/testing"
import { obstacle, run } from "../../scripts/dashboards/promtool.ts"
import * as Metrics from "../../src/observability/Metrics.ts"
import { catalogue } from "../../src/observability/MetricsCatalogue.ts"
import * as Prometheus from "../../src/observability/Prometheus.ts"
import { render } from "../../src/observability/PrometheusText.ts"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"
import { everything } from "./everything.ts"
import { parse } from "./exposition.ts"
import { ownLabel } from "./series.ts"

const why = obstacle()
if (why !== undefined) console.warn(`skipped: ${why}`)

const at = DateTime.unsafeMake(0)
const awkward = 'a "quoted"\\\nname, {with} = é'

const exposed = (label: Readonly<Record<string, string>>) =>
  Effect.map(Prometheus.text, (text) => ({
    text,
    samples: [...parse(text).values()]
      .flatMap(({ samples }) => samples)
      .filter(({ labels }) => labels.run === label.run)
  }))

describe("the text for Prometheus", () => {
  it.effect("holds all of our metrics and nobody else's", () =>
    Effect.gen(function* () {
      const count = Metrics.listener({ labels: ownLabel() })
      for (const event of everything("groq")) count(event)
      yield* Metric.increment(Metric.counter("somebody.else"))

      const families = parse(yield* Prometheus.text)

      assert.deepStrictEqual([...families.keys()], Object.values(catalogue).map(Prometheus.metricName))
      assert.include([...families.keys()], "gen_ai_client_operation_duration_seconds")
      assert.include([...families.keys()], "llmfuse_calls_total")
      for (const { help } of families.values()) assert.notStrictEqual(help, "")
    })
  )

  it.effect("tells what a service did in an outage", () =>
    Effect.gen(function* () {
      const label = ownLabel()
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 9) }), FakeProvider.make("gemini")],
        onEvent: Metrics.listener({ labels: label })
      })
      yield* fuse.ask("hi")

      const { samples } = yield* exposed(label)

      const valueOf = (name: string, labels: Readonly<Record<string, string>>) =>
        samples.find(
          (it) => it.name === name && Object.entries(labels).every(([key, value]) => it.labels[key] === value)
        )?.value
      assert.strictEqual(valueOf("llmfuse_calls_total", { operation: "complete", outcome: "success" }), 1)
      const failures = { provider: "groq", error_type: "OverloadedError", http_response_status_code: "503" }
      assert.strictEqual(valueOf("llmfuse_attempts_total", failures), 3)
      assert.strictEqual(valueOf("llmfuse_failovers_total", { from: "groq", to: "gemini" }), 1)
      assert.strictEqual(valueOf("llmfuse_call_duration_seconds_count", { path: "failover" }), 1)
      assert.strictEqual(valueOf("llmfuse_circuit_state", { provider: "gemini" }), 0)
    })
  )

  it.effect("has histograms that grow to their count, with a sum", () =>
    Effect.gen(function* () {
      const label = ownLabel()
      const count = Metrics.listener({ labels: label })
      const failed = { _tag: "AttemptFailed", at, callId: "a", provider: "groq", attempt: 1 } as const
      const bill = { usage: undefined, cost: undefined, isEstimated: false }
      const error = outage("groq", 1)[0] as never
      for (const millis of [5, 10, 11, 700, 500_000]) {
        count({ ...failed, ...bill, duration: Duration.millis(millis), error })
      }

      const { samples } = yield* exposed(label)

      const name = "gen_ai_client_operation_duration_seconds"
      const buckets = samples.filter((it) => it.name === `${name}_bucket`)
      assert.strictEqual(buckets.length, 15)
      assert.deepStrictEqual(
        buckets
          .filter(({ labels }) => ["0.01", "0.02", "0.64", "1.28", "+Inf"].includes(labels.le ?? ""))
          .map((it) => it.value),
        [2, 3, 3, 4, 5]
      )
      assert.strictEqual(samples.find((it) => it.name === `${name}_count`)?.value, 5)
      assert.closeTo(samples.find((it) => it.name === `${name}_sum`)?.value ?? 0, 500.726, 1e-9)
    })
  )

  it.effect("keeps whatever a provider is called", () =>
    Effect.gen(function* () {
      const label = ownLabel()
      const count = Metrics.listener({ labels: label })
      for (const event of everything(awkward)) count(event)

      const { samples } = yield* exposed(label)

      assert.strictEqual(samples.find((it) => it.name === "llmfuse_retries_total")?.labels.provider, awkward)
    })
  )

  it("can be read back, whatever the labels, the help and the values are", () =>
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.string({ unit: "binary" }),
        fc.oneof(fc.double({ noNaN: true, min: 0 }), fc.nat()),
        (label, help, value) => {
          const samples = [{ suffix: "", labels: [["of", label] as const, ["le", "x"] as const], value }]

          const family = parse(render([{ name: "a_total", type: "counter", help, samples }])).get("a_total")

          assert.deepStrictEqual(family?.samples, [{ name: "a_total", labels: { of: label, le: "x" }, value }])
          assert.strictEqual(family?.help, help)
        }
      )
    ))

  it.effect.skipIf(why !== undefined)("is what promtool expects", () =>
    Effect.gen(function* () {
      const count = Metrics.listener({ labels: ownLabel() })
      for (const event of [...everything("groq"), ...everything(awkward)]) count(event)

      const text = yield* Prometheus.text

      assert.deepStrictEqual(run(["check", "metrics"], text), { isOk: true, output: "" })
      assert.isFalse(run(["check", "metrics"], `${text}broken{`).isOk)
    })
  )
})
