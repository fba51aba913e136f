import * as OtelMetrics from "@effect/opentelemetry/Metrics"
import * as Resource from "@effect/opentelemetry/Resource"
import { assert, describe, it } from "@effect/vitest"
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  InMemoryMetricExporter,
  type MetricData,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { Effect, Layer } from "effect"
import { FakeProvider } from "llmfuse/testing"
import * as Metrics from "../../src/observability/Metrics.ts"
import { catalogue } from "../../src/observability/MetricsCatalogue.ts"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"
import { ownLabel } from "./series.ts"

/** What is exported after three calls, two of which fail over. */
const exported = Effect.gen(function* () {
  const label = ownLabel()
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter })
  const fuse = yield* makeFuse({
    providers: [
      FakeProvider.make("groq", { errors: outage("groq", 2), latency: "3 seconds" }),
      FakeProvider.make("gemini", {
        latency: "1 second",
        reply: { text: "ok", model: "flash-001", usage: { inputTokens: 12, outputTokens: 30 } }
      })
    ],
    retry: { maxAttempts: 1 },
    onEvent: Metrics.listener({ labels: label, modelOf: (provider) => (provider === "gemini" ? "flash" : "llama") })
  })
  for (const word of ["one", "two", "three"]) yield* fuse.ask(word)

  yield* Effect.promise(() => reader.forceFlush()).pipe(
    Effect.provide(
      Layer.provide(
        OtelMetrics.layer(() => reader),
        Resource.layer({ serviceName: "test" })
      )
    )
  )
  return new Map(
    exporter
      .getMetrics()
      .slice(0, 1)
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(({ metrics }) => metrics)
      .map((metric) => [metric.descriptor.name, ofRun(metric, label)])
  )
})

/** Without what other tests have counted, and without the label that tells them apart. */
const ofRun = (metric: MetricData, { run }: { readonly run: string }): MetricData => {
  const dataPoints = metric.dataPoints.flatMap((point) => {
    const { run: own, ...attributes } = point.attributes
    return own === run ? [{ ...point, attributes }] : []
  })
  return { ...metric, dataPoints } as MetricData
}

const points = (metric: MetricData | undefined) =>
  (metric?.dataPoints ?? []).map(({ attributes, value }) => [attributes, value] as const)

describe("the metrics in OpenTelemetry", () => {
  it.effect("have their names, units, kinds and values", () =>
    Effect.gen(function* () {
      const metrics = yield* exported

      const definitions = new Map<string, { readonly unit: string; readonly kind: string }>(
        Object.values(catalogue).map((definition) => [definition.name, definition])
      )
      const kinds = new Map([
        [DataPointType.SUM, "counter"],
        [DataPointType.GAUGE, "gauge"],
        [DataPointType.HISTOGRAM, "histogram"]
      ])
      // Effect has metrics of its own.
      const ours = [...metrics].filter(([name]) => !name.startsWith("effect_"))
      assert.isAbove(ours.length, 6)
      for (const [name, { descriptor, dataPointType }] of ours) {
        const { unit, kind } = definitions.get(name) ?? {}
        assert.deepStrictEqual([name, descriptor.unit, kinds.get(dataPointType)], [name, unit, kind])
      }
      assert.deepStrictEqual(points(metrics.get("llmfuse.calls")), [
        [{ operation: "complete", outcome: "success", unit: "{call}" }, 3]
      ])
      assert.deepStrictEqual(points(metrics.get("llmfuse.failovers")), [
        [{ from: "groq", to: "gemini", "error.type": "OverloadedError", unit: "{failover}" }, 2]
      ])
      const failovers = metrics.get("llmfuse.failovers")
      assert.isTrue(failovers?.dataPointType === DataPointType.SUM && failovers.isMonotonic)
    })
  )

  it.effect("are histograms with the buckets of the convention", () =>
    Effect.gen(function* () {
      const metrics = yield* exported

      const duration = metrics.get("gen_ai.client.operation.duration")
      const tokens = metrics.get("gen_ai.client.token.usage")
      const bounds = (metric: MetricData | undefined) =>
        (points(metric)[0]?.[1] as Histogram | undefined)?.buckets.boundaries
      assert.deepStrictEqual(
        bounds(duration),
        [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
      )
      assert.deepStrictEqual(
        bounds(tokens),
        [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
      )
      assert.strictEqual(duration?.descriptor.unit, "s")
      const answered = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gemini",
        "gen_ai.request.model": "flash",
        "gen_ai.response.model": "flash-001"
      }
      const [, histogram] =
        points(duration).find(([attributes]) => attributes["gen_ai.provider.name"] === "gemini") ?? []
      assert.deepInclude(histogram as Histogram, { min: 1, max: 1 })
      assert.deepInclude(
        points(tokens).map(([attributes]) => attributes),
        { ...answered, "gen_ai.token.type": "input", unit: "{token}" }
      )
    })
  )
})
