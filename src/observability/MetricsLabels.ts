/** The labels that a user adds to every value: their check, and the order that makes equal ones equal. */
import { type ConfigError, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import { catalogue } from "./MetricsCatalogue.ts"
import { nameOf } from "./PrometheusText.ts"

/** Labels by their names. */
export type Labels = Readonly<Record<string, string>>

/** The label that holds a metric's unit, where Effect's bridge to OpenTelemetry looks for it. */
export const unitLabel = "unit"

/** The labels in the order of their names: Effect takes the same labels in another order for others. */
export const entriesOf = (labels: Labels): ReadonlyArray<readonly [name: string, value: string]> =>
  Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1))

/** Refuses what is no text, and names that Prometheus does not take, that are ours, or that it takes for one and the same. */
export const check = (option: string, labels: unknown): Either.Either<Labels, ConfigError.ConfigError> => {
  if (typeof labels !== "object" || labels === null || Array.isArray(labels)) {
    return OptionCheck.refuse(option, labels, 'names with texts, such as { service: "search" }')
  }
  const taken = new Set(own)
  for (const [name, value] of Object.entries(labels)) {
    if (!/^[a-zA-Z][\w.-]*$/.test(name)) {
      return OptionCheck.refuse(option, name, "names of letters, digits, _, . and -, with a letter first")
    }
    if (taken.has(nameOf(name))) {
      return OptionCheck.refuse(option, name, "each name once, and none that the metrics have themselves")
    }
    taken.add(nameOf(name))
    if (typeof value !== "string") return OptionCheck.refuse(`${option}.${name}`, value, "a text")
  }
  return Either.right(labels as Labels)
}

/** As Prometheus knows them; `le` is what it calls the end of a bucket. */
const own: ReadonlySet<string> = new Set([
  unitLabel,
  "le",
  ...Object.values(catalogue).flatMap(({ labels }) => labels.map(nameOf))
])
