/** The ids of tool calls as a vendor takes them back. */
import { Hash } from "effect"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"

/**
 * A function from an id to the one that is sent, for the calls and the results of one request. The same id always gives
 * the same, so that a vendor's cache of the conversation holds.
 */
export const make = ({ toolIds = "any" }: Dialect, notes: Notes): ((id: string) => string) => {
  if (toolIds === "any") return (id) => id
  const isTaken = toolIds === "nine" ? /^[A-Za-z0-9]{9}$/ : /^.{1,40}$/s
  const given = new Map<string, string>()
  const used = new Set<string>()
  const freeId = (id: string, salt: string): string => {
    const candidate = digits(`${id}${salt}`)
    return used.has(candidate) ? freeId(id, `${salt}+`) : candidate
  }
  return (id) => {
    const known = given.get(id)
    if (known !== undefined) return known
    const isOwn = isTaken.test(id) && !used.has(id)
    if (!isOwn) notes.changes.add("messages have other ids of tool calls: the vendor does not take those of others.")
    const sent = isOwn ? id : freeId(id, "")
    given.set(id, sent)
    used.add(sent)
    return sent
  }
}

/** Nine letters and digits. */
const digits = (text: string): string => `${base36(text)}${base36(`${text}#`).slice(-2)}`

const base36 = (text: string): string => (Hash.string(text) >>> 0).toString(36).padStart(7, "0")
