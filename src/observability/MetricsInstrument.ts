/** A metric that is updated at once and cheaply: what its labels are looked up by is kept. */
import { Metric, MetricBoundaries, MetricLabel, Record } from "effect"
import { catalogue, type Definition } from "./MetricsCatalogue.ts"

/** Takes a value in, with the values of the labels in their order; an absent one is left out. */
export type Instrument = (value: number, ...labels: ReadonlyArray<string | undefined>) => void

/** The instruments of all metrics. */
export type Instruments = Readonly<Record<keyof typeof catalogue, Instrument>>

/** So many combinations of labels has a metric at most; what comes later is counted together as `other`. */
export const seriesLimit = 1000

/** What stands for all that is beyond a limit. */
export const other = "other"

/** The label that holds a metric's unit, where Effect's bridge to OpenTelemetry looks for it. */
export const unitLabel = "unit"

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

  const updateOf = (values: ReadonlyArray<string | undefined>): ((value: number) => void) => {
    const own = definition.labels.flatMap((key, index) => {
      const value = values[index]
      return value === undefined ? [] : [MetricLabel.make(key, value)]
    })
    // Effect keeps a metric's hook by the identity of its labels.
    const labels = [...always, ...own]
    return (value) => metric.unsafeUpdate(value, labels)
  }

  return (value, ...labels) => {
    if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) return
    let node: Node | undefined = root
    for (let index = 0; index < labels.length && node !== undefined; index += 1) node = node.next.get(labels[index])
    if (node?.update !== undefined) return node.update(value)
    if (count < seriesLimit) {
      count += 1
      const update = updateOf(labels)
      grow(root, labels).update = update
      return update(value)
    }
    overflow ??= updateOf(definition.labels.map(() => other))
    overflow(value)
  }
}

/** The instruments of all metrics. `fixed` labels go with every value. */
export const makeAll = (fixed: Readonly<Record<string, string>>): Instruments => {
  const labels = Object.entries(fixed).map(([key, value]) => MetricLabel.make(key, value))
  return Record.map(catalogue, (definition: Definition) => make(definition, labels))
}

const metricOf = (definition: Definition): Updated => {
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

const grow = (root: Node, labels: ReadonlyArray<string | undefined>): Node =>
  labels.reduce((node, label) => {
    const next = node.next.get(label) ?? newNode()
    node.next.set(label, next)
    return next
  }, root)
