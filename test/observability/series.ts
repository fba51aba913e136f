/** The metrics of one test, apart from those of all others: each has a label of its own. */
import { Metric, MetricState } from "effect"
import { unitLabel } from "../../src/observability/MetricsLabels.ts"

let runs = 0

/** A label that no other test has. */
export const ownLabel = (): { readonly run: string } => {
  runs += 1
  return { run: `${process.pid}-${runs}` }
}

/** What was recorded with a label: `name{key=value,...}`, keys in order, and the count, value, or number of samples. */
export const seriesOf = ({ run }: { readonly run: string }): ReadonlyMap<string, number> =>
  new Map(
    Metric.unsafeSnapshot().flatMap(({ metricKey: { name, tags }, metricState: state }) => {
      if (!tags.some(({ key, value }) => key === "run" && value === run)) return []
      const labels = tags.filter(({ key }) => key !== "run" && key !== unitLabel).map((it) => `${it.key}=${it.value}`)
      const value = MetricState.isCounterState(state)
        ? Number(state.count)
        : MetricState.isGaugeState(state)
          ? Number(state.value)
          : MetricState.isHistogramState(state)
            ? state.count
            : Number.NaN
      return [[`${name}{${labels.sort().join(",")}}`, value] as const]
    })
  )

/** Only the metrics whose names begin so. */
export const named = (series: ReadonlyMap<string, number>, name: string): Readonly<Record<string, number>> =>
  Object.fromEntries([...series].filter(([key]) => key.startsWith(`${name}{`)))

/** The sum of what was recorded in a histogram with a label. */
export const sumOf = ({ run }: { readonly run: string }, name: string): number =>
  Metric.unsafeSnapshot().reduce(
    (sum, { metricKey, metricState }) =>
      metricKey.name === name &&
      MetricState.isHistogramState(metricState) &&
      metricKey.tags.some(({ key, value }) => key === "run" && value === run)
        ? sum + metricState.sum
        : sum,
    0
  )
