/** How much the model thinks, in the words of vendors that speak OpenAI's chat completions. */
import type { Reasoning } from "../model/Tool.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect, Effort } from "./OpenAiDialect.ts"

/** The fields that say it. */
export const make = (wanted: Reasoning | undefined, dialect: Dialect, notes: Notes): object => {
  const { effort, maxTokens } = wanted ?? {}
  if (effort === undefined && maxTokens === undefined) return {}
  const { reasoning = "effort" } = dialect
  if (reasoning === false) {
    notes.changes.add("reasoning was left out: the vendor cannot be told how much to think.")
    return {}
  }
  if (reasoning === "object" && maxTokens !== undefined) {
    if (effort !== undefined) notes.changes.add("reasoning.effort was left out: the vendor takes it or maxTokens.")
    return { reasoning: { max_tokens: maxTokens } }
  }
  if (maxTokens !== undefined) notes.changes.add("reasoning.maxTokens was left out: the vendor takes only an effort.")
  if (effort === undefined) return {}
  if (reasoning === "toggle" && effort === "none") return { thinking: { type: "disabled" } }
  const known = nearest(effort, dialect.efforts ?? scale)
  if (known !== effort) notes.changes.add(`reasoning.effort is ${known} instead of ${effort}: the vendor has no such.`)
  return reasoning === "object" ? { reasoning: { effort: known } } : { reasoning_effort: known }
}

const scale: ReadonlyArray<Effort> = ["none", "minimal", "low", "medium", "high"]

/** Of two that are equally near, the one that thinks more. */
const nearest = (effort: Effort, known: ReadonlyArray<Effort>): Effort => {
  const distance = (other: Effort) => Math.abs(scale.indexOf(other) - scale.indexOf(effort) - 0.1)
  return known.reduce((best, other) => (distance(other) < distance(best) ? other : best), known[0] ?? effort)
}
