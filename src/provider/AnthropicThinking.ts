/** How much a model of Anthropic thinks before it answers. */
import type { Reasoning } from "../model/Tool.ts"
import type { Notes } from "./Notes.ts"

/** What a request says about thinking. */
export interface Thinking {
  readonly isOn: boolean
  readonly thinking: object | undefined
  readonly effort: string | undefined
  readonly max_tokens: number
}

/** What is known beside what is asked. */
export interface Given {
  /** The most tokens to write, if anybody has said so. */
  readonly maxTokens: number | undefined
  readonly way: "budget" | "adaptive"
  /** Why the model cannot think, if so, in words that follow `reasoning was left out: `. */
  readonly hindrance: string | undefined
}

/** The wire needs a limit of tokens. */
const defaultMaxTokens = 4096

/** The smallest budget that the wire takes. */
const minBudget = 1024

/** Tokens to think for each effort. */
const budgets = { minimal: 1024, low: 2048, medium: 8192, high: 16_384 } as const

/**
 * The fields for a request. A budget counts towards `max_tokens`, which is raised where it would leave nothing for the
 * answer; where nobody has set it, the thoughts come on top.
 */
export const make = (
  reasoning: Reasoning | undefined,
  { maxTokens, way, hindrance }: Given,
  notes: Notes
): Thinking => {
  const { effort, maxTokens: budget } = reasoning ?? {}
  const off = { isOn: false, thinking: undefined, effort: undefined, max_tokens: maxTokens ?? defaultMaxTokens }
  if (effort === "none") return { ...off, thinking: { type: "disabled" } }
  if (effort === undefined && budget === undefined) return off
  if (hindrance !== undefined) {
    notes.changes.add(`reasoning was left out: ${hindrance}.`)
    return off
  }
  return way === "adaptive" ? adaptive(effort, budget, maxTokens, notes) : budgeted(effort, budget, maxTokens, notes)
}

type Effort = keyof typeof budgets | undefined

const adaptive = (
  effort: Effort,
  budget: number | undefined,
  maxTokens: number | undefined,
  notes: Notes
): Thinking => {
  if (budget !== undefined) notes.changes.add("reasoning.maxTokens was left out: the model decides how long it thinks.")
  if (effort === "minimal") notes.changes.add("reasoning.effort is low: the model knows no lower one.")
  return {
    isOn: true,
    thinking: { type: "adaptive" },
    effort: effort === "minimal" ? "low" : effort,
    max_tokens: maxTokens ?? defaultMaxTokens + (budget ?? budgets[effort ?? "high"])
  }
}

const budgeted = (
  effort: Effort,
  wanted: number | undefined,
  maxTokens: number | undefined,
  notes: Notes
): Thinking => {
  const asked = wanted ?? budgets[effort ?? "medium"]
  const budget = Math.max(asked, minBudget)
  if (asked < budget) notes.changes.add(`reasoning.maxTokens is ${budget}: the vendor takes no less.`)
  const isRoomy = maxTokens !== undefined && maxTokens > budget
  const max_tokens = isRoomy ? maxTokens : (maxTokens ?? defaultMaxTokens) + budget
  if (maxTokens !== undefined && !isRoomy) {
    notes.changes.add(`maxTokens is ${max_tokens}: the vendor counts the ${budget} tokens of reasoning towards it.`)
  }
  return { isOn: true, thinking: { type: "enabled", budget_tokens: budget }, effort: undefined, max_tokens }
}
