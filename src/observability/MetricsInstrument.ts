/** A metric that is updated at once and cheaply: what its labels are looked up by is kept. */
import { GlobalValue, Metric, MetricBoundaries, MetricLabel, Record } from "effect"
import { catalogue, type Definition } from "./MetricsCatalogue.ts"
import { entriesOf, type Labels, unitLabel } from "./MetricsLabels.ts"
import { other } from "./MetricsNames.ts"

/** Takes a value in, with the values of the labels in their order; an absent one is left out. */
export interface Instrument {
  (value: number, ...labels: LabelValues): void
  /** Whether there is a value with these labels, or among those beyond the limit. */
  readonly has: (...labels: LabelValues) => boolean
}

type LabelValues = ReadonlyArray<string | undefined>

/** The instruments of all metrics. */
export type Instruments = Readonly<Record<keyof typeof catalogue, Instrument>>

/** So many combinations of labels has a metric at most beside the fixed ones; what comes later is counted as `other`. */
export const seriesLimit = 1000

type Updated = Pick<Metric.Metric<unknown, number, unknown>, "unsafeUpdate">

/** The combinations of labels as a tree: to walk it costs less than to join a key. */
interface Node {
  readonly next: Map<string | undefined, Node>
  update: ((value: number) => void) | undefined
}

/** The instrument of a metric. `fixed` labels go with every value; what is negative or no number is not taken. */
export const make = (definition: Definition, fixed: ReadonlyArray<MetricLabel.MetricLabel>): Instrument => {
  const metric = metricOf(definition)
  const always = [MetricLabel.make(unitLabel, definition.unit), ...fixed]
  const root = newNode()
  let count = 0
  let overflow: ((value: number) => void) | undefined

  const updateOf = (values: LabelValues): ((value: number) => void) => {
    const own = definition.labels.flatMap((key, index) => {
      const value = values[index]
      return value === undefined ? [] : [MetricLabel.make(key, value)]
    })
    // Effect keeps a metric's hook by the identity of its labels.
    const labels = [...always, ...own]
    return (value) => metric.unsafeUpdate(value, labels)
  }

  const knownUpdate = (labels: LabelValues) => {
    let node: Node | undefined = root
    for (let index = 0; index < labels.length && node !== undefined; index += 1) node = node.next.get(labels[index])
    return node?.update
  }

  const newUpdate = (labels: LabelValues) => {
    if (count >= seriesLimit) {
      overflow ??= updateOf(definition.labels.map(() => other))
      return overflow
    }
    count += 1
    const update = updateOf(labels)
    grow(root, labels).update = update
    return update
  }

  const take = (value: number, ...labels: LabelValues): void => {
    if (value >= 0 && value < Number.POSITIVE_INFINITY) (knownUpdate(labels) ?? newUpdate(labels))(value)
  }

  return Object.assign(take, {
    has: (...labels: LabelValues) => knownUpdate(labels) !== undefined || overflow !== undefined
  })
}

const all = new Map<string, Instruments>()

/**
 * The instruments of all metrics. `fixed` labels go with every value; who has the same ones shares the instruments, and
 * with them the values and the limit of their number.
 */
export const shared = (fixed: Labels): Instruments => {
  const entries = entriesOf(fixed)
  const key = JSON.stringify(entries)
  const labels = entries.map(([name, value]) => MetricLabel.make(name, value))
  const instruments = all.get(key) ?? Record.map(catalogue, (definition: Definition) => make(definition, labels))
  all.set(key, instruments)
  return instruments
}

/** One for the process: Effect would take another one with equal boundaries for another metric of the same name. */
const metricOf = (definition: Definition): Updated =>
  GlobalValue.globalValue(`llmfuse/metrics/${definition.name}`, () => newMetric(definition))

const newMetric = (definition: Definition): Updated => {
  const { name, description } = definition
  switch (definition.kind) {
    case "counter":
      return Metric.counter(name, { description, incremental: true })
    case "gauge":
      return Metric.gauge(name, { description })
    case "histogram":
      return Metric.histogram(name, MetricBoundaries.fromIterable(definition.boundaries ?? []), description)
  }
}

const newNode = (): Node => ({ next: new Map(), update: undefined })

const grow = (root: Node, labels: LabelValues): Node =>
  labels.reduce((node, label) => {
    const next = node.next.get(label) ?? newNode()
    node.next.set(label, next)
    return next
  }, root)
