/** The text exposition format of Prometheus, version 0.0.4. */

/** One value, with what its name ends with and its labels. */
export interface Sample {
  /** `_bucket`, `_sum`, `_count`, or nothing. */
  readonly suffix: string
  readonly labels: ReadonlyArray<readonly [name: string, value: string]>
  readonly value: number
}

/** All values of one name. */
export interface Family {
  readonly name: string
  readonly type: "counter" | "gauge" | "histogram"
  readonly help: string
  readonly samples: ReadonlyArray<Sample>
}

/** Families as text, each with its help and its type before its values. */
export const render = (families: ReadonlyArray<Family>): string =>
  families
    .flatMap(({ name, type, help, samples }) => [
      `# HELP ${name} ${escapeHelp(help)}\n`,
      `# TYPE ${name} ${type}\n`,
      ...samples.map(({ suffix, labels, value }) => `${name}${suffix}${labelsText(labels)} ${numberText(value)}\n`)
    ])
    .join("")

/** A name with what Prometheus does not allow in it replaced. */
export const nameOf = (name: string): string => name.replace(/[^a-zA-Z0-9_]/g, "_").replace(/^(?=\d)/, "_")

/** A number as Prometheus writes it. */
export const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? "+Inf" : value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value)

const labelsText = (labels: Sample["labels"]): string =>
  labels.length === 0 ? "" : `{${labels.map(([name, value]) => `${name}="${escapeValue(value)}"`).join(",")}}`

const escapeHelp = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")

const escapeValue = (text: string): string => escapeHelp(text).replaceAll('"', '\\"')
