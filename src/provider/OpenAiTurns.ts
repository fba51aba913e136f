/** The turns of a conversation in the order that a vendor wants them. */

import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"
import type { WirePart } from "./OpenAiParts.ts"

/** A message as the wire has it. */
export interface Turn {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: string | ReadonlyArray<WirePart> | null
  readonly tool_calls?: ReadonlyArray<object>
  readonly tool_call_id?: string
  readonly [key: string]: unknown
}

/** Turns as the dialect wants them. */
export const arrange = (turns: ReadonlyArray<Turn>, dialect: Dialect, notes: Notes): ReadonlyArray<Turn> => {
  const ordered = dialect.turns === "merged" ? merged(systemFirst(turns, notes)) : turns
  const spaced = dialect.userAfterTool === false ? withAssistantAfterTools(ordered, notes) : ordered
  const last = spaced.at(-1)
  return dialect.prefill === "prefix" && last !== undefined && isOpen(last)
    ? [...spaced.slice(0, -1), { ...last, prefix: true }]
    : spaced
}

/** Whether the model is to go on from a turn. */
export const isOpen = ({ role, tool_calls }: Turn): boolean => role === "assistant" && tool_calls === undefined

const systemFirst = (turns: ReadonlyArray<Turn>, notes: Notes): ReadonlyArray<Turn> => {
  const systems = turns.filter(({ role }) => role === "system")
  const others = turns.filter(({ role }) => role !== "system")
  const begun = turns.findIndex(({ role }) => role !== "system")
  if (begun !== -1 && systems.length > begun) {
    notes.changes.add("messages have the system messages at their beginning: the vendor takes them nowhere else.")
  }
  return [...systems, ...others]
}

const merged = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const done: Array<Turn> = []
  for (const turn of turns) {
    const last = done.at(-1)
    const goesOn = last?.role === turn.role && last.role !== "tool" && last.tool_calls === undefined
    if (goesOn) done.splice(-1, 1, { ...last, ...turn, content: joined(last, turn) })
    else done.push(turn)
  }
  return done
}

const joined = ({ content: one }: Turn, { content: other }: Turn): Turn["content"] =>
  (typeof one === "string" || one === null) && (typeof other === "string" || other === null)
    ? [one, other].filter((text) => text !== null && text !== "").join("\n\n") || other
    : [...partsOf(one), ...partsOf(other)]

const partsOf = (content: Turn["content"]): ReadonlyArray<WirePart> =>
  content === null || content === "" ? [] : typeof content === "string" ? [{ type: "text", text: content }] : content

const withAssistantAfterTools = (turns: ReadonlyArray<Turn>, notes: Notes): ReadonlyArray<Turn> =>
  turns.flatMap((turn, index) => {
    if (turn.role !== "user" || turns[index - 1]?.role !== "tool") return [turn]
    notes.changes.add('messages have an assistant\'s "OK" between tool results and the user: the vendor wants one.')
    return [{ role: "assistant", content: "OK" }, turn]
  })
