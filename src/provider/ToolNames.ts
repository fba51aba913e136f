/** The names of tools as a wire takes them. */
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ToolCall } from "../model/ChatResponse.ts"

/** Names on their way to a vendor and back. */
export interface ToolNames {
  /** The name that is sent for one of ours. */
  readonly sent: (name: string) => string
  /** Our name for one that came. */
  readonly own: (name: string) => string
}

/** Letters, digits, `_` and `-`, at most 64 of them: what every vendor takes that takes any. */
export const plain = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, maxLength)

/** The same, with a letter or `_` before the rest, as Gemini wants it. */
export const begun = (name: string): string =>
  (/^[A-Za-z_]/.test(name) ? name : `_${name}`).replace(/[^A-Za-z0-9_.:-]/g, "_").slice(0, maxLength)

/**
 * The names of the tools of a request, and of the calls in its history, in the spelling that `write` gives them; no two
 * become the same. What is sent otherwise than it is called is told to `note`.
 */
export const make = (
  { tools = [], messages }: ChatRequest,
  write: (name: string) => string,
  note: (name: string, sent: string) => void
): ToolNames => {
  const sent = new Map<string, string>()
  const own = new Map<string, string>()
  const called = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
  const names = new Set([...tools, ...called].map(({ name }) => name))
  const given = [...names].sort((one, other) => Number(write(one) !== one) - Number(write(other) !== other))
  for (const name of given) {
    const free = freeName(write(name), own)
    sent.set(name, free)
    own.set(free, name)
    if (free !== name) note(name, free)
  }
  return { sent: (name) => sent.get(name) ?? write(name), own: (name) => own.get(name) ?? name }
}

/** Calls as they came, under our names. */
export const ownCalls = (calls: ReadonlyArray<ToolCall>, { own }: ToolNames): ReadonlyArray<ToolCall> =>
  calls.map((call) => ({ ...call, name: own(call.name) }))

const maxLength = 64

/** Those that are taken as they are come first, so that none of them has to give way. */
const freeName = (wanted: string, taken: ReadonlyMap<string, string>, count = 2): string => {
  if (!taken.has(wanted)) return wanted
  const numbered = `${wanted.slice(0, maxLength - 1 - String(count).length)}_${count}`
  return taken.has(numbered) ? freeName(wanted, taken, count + 1) : numbered
}
