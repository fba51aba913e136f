/** The option `metrics` of a service, and its check. */
import { type ConfigError, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as MetricsLabels from "./MetricsLabels.ts"

/** How what happens is counted. */
export interface MetricsOptions {
  /**
   * Labels for every value, such as `{ service: "search" }`, to tell services in one process apart. Metrics are global:
   * without them the counts of all add up, and of two providers of one name the last word on a circuit wins. Default: none.
   */
  readonly labels?: MetricsLabels.Labels | undefined
}

/** How to count; `undefined`: not at all. Refuses what is neither a boolean nor such options. */
export const resolve = (
  option: string,
  value: unknown
): Either.Either<MetricsOptions | undefined, ConfigError.ConfigError> => {
  if (typeof value === "boolean") return Either.right(value ? {} : undefined)
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return OptionCheck.refuse(option, value, "true, false, or an object with labels")
  }
  const { labels = {} } = value as { readonly labels?: unknown }
  return Either.flatMap(OptionCheck.knownKeys(option, value, ["labels"]), () =>
    Either.map(MetricsLabels.check(`${option}.labels`, labels), (checked) => ({ labels: checked }))
  )
}
