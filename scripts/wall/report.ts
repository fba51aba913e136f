/** What the wall prints. */
import type { Call, Observation } from "./conduct.ts"
import type { Fault } from "./fault.ts"
import type { Judgement, Verdict } from "./judge.ts"
import type { System } from "./system.ts"

/** A fault, what was seen, and what was thought of it. */
export interface Result {
  readonly fault: Pick<Fault, "id" | "title" | "conduct">
  readonly observation: Observation
  readonly judgement: Judgement
}

/** The results of a system. */
export interface SystemResults {
  readonly system: Pick<System, "name" | "version">
  readonly results: ReadonlyArray<Result>
}

const verdicts: ReadonlyArray<Verdict> = ["pass", "partial", "safe", "fail"]

/** How many results have each verdict. */
export const scoreOf = (results: ReadonlyArray<Result>): Readonly<Record<Verdict, number>> => {
  const count = (verdict: Verdict) => results.filter(({ judgement }) => judgement.verdict === verdict).length
  return { pass: count("pass"), partial: count("partial"), safe: count("safe"), fail: count("fail") }
}

/** The score in one line. */
export const scoreLine = (results: ReadonlyArray<Result>): string => {
  const score = scoreOf(results)
  return verdicts.map((verdict) => `${score[verdict]} ${verdict}`).join(", ")
}

const cellsOf = ({ fault, observation, judgement }: Result): ReadonlyArray<string> => [
  fault.id,
  fault.title,
  judgement.verdict,
  `${observation.primary.length} / ${observation.fallback.length}`,
  gapsOf(observation.primary),
  secondsOf(observation.calls),
  shortened(judgement.reasons.join("; "))
]

const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, " ")
  return line.length > 100 ? `${line.slice(0, 97)}...` : line
}

const headings = ["id", "the primary", "verdict", "attempts", "gaps, s", "took, s", "why"]

/** The results as a table for a terminal; attempts are those on the primary and on the fallback. */
export const plainTable = (results: ReadonlyArray<Result>): string => {
  const rows = [headings, ...results.map(cellsOf)]
  const widths = headings.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** The results as the README shows them. */
export const markdownTable = (results: ReadonlyArray<Result>): string =>
  markdown([
    ["id", "the primary", "right conduct", "verdict", "attempts", "seconds"],
    ...results.map(({ fault, observation, judgement }) => [
      fault.id,
      fault.title,
      fault.conduct,
      judgement.verdict,
      `${observation.primary.length} / ${observation.fallback.length}`,
      secondsOf(observation.calls)
    ])
  ])

/** A line for each system. */
export const scoreTable = (systems: ReadonlyArray<SystemResults>): string =>
  markdown([
    ["system", "pass", "partial", "safe", "fail", "fails"],
    ...systems.map(({ system, results }) => {
      const score = scoreOf(results)
      const failed = results.filter(({ judgement }) => judgement.verdict === "fail").map(({ fault }) => fault.id)
      return [`${system.name} ${system.version}`, ...verdicts.map((verdict) => `${score[verdict]}`), failed.join(" ")]
    })
  ])

const markdown = ([head = [], ...rows]: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n")

/** The waits between the requests to the primary; the first few tell enough. */
const gapsOf = (times: ReadonlyArray<number>): string => {
  const gaps = times.slice(1).map((at, index) => ((at - (times[index] ?? at)) / 1000).toFixed(1))
  return gaps.length > 4 ? `${gaps.slice(0, 4).join(" ")} ...` : gaps.join(" ")
}

const secondsOf = (calls: ReadonlyArray<Call>): string =>
  (Math.max(0, ...calls.map(({ millis }) => millis)) / 1000).toFixed(1)
