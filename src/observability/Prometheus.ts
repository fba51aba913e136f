/** Our metrics as Prometheus reads them: what to answer when it asks for `/metrics`. */
import { Effect, Metric, type MetricLabel, type MetricPair, MetricState } from "effect"
import { byName, type Definition } from "./MetricsCatalogue.ts"
import { unitLabel } from "./MetricsLabels.ts"
import { type Family, nameOf, numberText, render, type Sample } from "./PrometheusText.ts"

/** The content type of the text. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/**
 * The text exposition of all that `Metrics` counts, and of nothing else. Dots in names become underscores, counters end
 * with `_total`, and what is in seconds says so: `llmfuse_calls_total`, `gen_ai_client_operation_duration_seconds`.
 */
export const text: Effect.Effect<string> = Effect.map(Metric.snapshot, (pairs) => render(familiesOf(pairs)))

/** The name of a metric as Prometheus knows it, without the endings of a histogram's parts. */
export const metricName = ({ name, unit, kind }: Pick<Definition, "name" | "unit" | "kind">): string =>
  `${nameOf(name)}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`

/** In the order of the catalogue. */
const familiesOf = (pairs: Iterable<MetricPair.MetricPair.Untyped>): ReadonlyArray<Family> => {
  const samples = new Map<string, Array<Sample>>()
  for (const { metricKey, metricState } of pairs) {
    if (!byName.has(metricKey.name)) continue
    const own = samples.get(metricKey.name) ?? []
    own.push(...samplesOf(metricState, labelsOf(metricKey.tags)))
    samples.set(metricKey.name, own)
  }
  return [...byName.values()].flatMap((definition) => {
    const own = samples.get(definition.name)
    const { kind: type, description: help } = definition
    return own === undefined ? [] : [{ name: metricName(definition), type, help, samples: own }]
  })
}

/** The unit is in the name. */
const labelsOf = (tags: ReadonlyArray<MetricLabel.MetricLabel>): Sample["labels"] =>
  tags.filter(({ key }) => key !== unitLabel).map(({ key, value }) => [nameOf(key), value])

const samplesOf = (state: MetricState.MetricState.Untyped, labels: Sample["labels"]): ReadonlyArray<Sample> => {
  if (MetricState.isHistogramState(state)) {
    return [
      ...state.buckets.map(([end, value]) => ({
        suffix: "_bucket",
        labels: [...labels, ["le", numberText(end)] as const],
        value
      })),
      { suffix: "_sum", labels, value: state.sum },
      { suffix: "_count", labels, value: state.count }
    ]
  }
  if (MetricState.isCounterState(state)) return [{ suffix: "", labels, value: Number(state.count) }]
  return MetricState.isGaugeState(state) ? [{ suffix: "", labels, value: Number(state.value) }] : []
}
