/** What vendors of OpenAI's wire want back of their own answers. */
import { Either } from "effect"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import type * as EventReader from "./EventReader.ts"
import * as Json from "./Json.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"

/** The name of this wire in `OpaqueReasoning`. */
export const wire = "openai-chat"

/** What goes back: fields of the message, and of each of its tool calls. */
export interface SentBack {
  readonly ofMessage: Readonly<Record<string, unknown>>
  readonly ofCall: (id: string) => Readonly<Record<string, unknown>>
}

const nothing: SentBack = { ofMessage: {}, ofCall: () => ({}) }

/** What of an earlier answer goes back to a provider: only what it wrote itself. */
export const sentBack = (
  opaque: OpaqueReasoning | undefined,
  provider: string,
  { opaque: field }: Dialect,
  notes: Notes
): SentBack => {
  if (opaque === undefined) return nothing
  const kept = field === undefined ? undefined : Json.at(opaque.value, field)
  if (opaque.wire !== wire || opaque.provider !== provider || field === undefined || kept === undefined) {
    notes.changes.add("messages lost the reasoning that only another provider can read.")
    return nothing
  }
  if (field === "reasoning_details") return { ...nothing, ofMessage: { [field]: kept } }
  const ofCall = (id: string) => {
    const own = Json.at(kept, id)
    return own === undefined ? {} : { [field]: own }
  }
  return { ...nothing, ofCall }
}

/** Gathers from a whole message, or from the pieces of one. */
const collector = (provider: string, field: NonNullable<Dialect["opaque"]>) => {
  const details: Array<unknown> = []
  let calls: Readonly<Record<string, unknown>> = {}
  return {
    /** Whether there was something. */
    take: (message: unknown): boolean => {
      const [pieces, own] =
        field === "reasoning_details" ? [Json.list(Json.at(message, field)), {}] : [[], ofCalls(message)]
      for (const piece of pieces) join(details, piece)
      calls = { ...calls, ...own }
      return pieces.length > 0 || Object.keys(own).length > 0
    },
    opaque: (): OpaqueReasoning | undefined => {
      if (details.length > 0) return { wire, provider, value: { [field]: details } }
      return Object.keys(calls).length > 0 ? { wire, provider, value: { [field]: calls } } : undefined
    }
  }
}

/** What stands beside tool calls, by their ids. */
const ofCalls = (message: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Json.list(Json.at(message, "tool_calls")).flatMap((call) => {
      const [id, own] = [Json.text(Json.at(call, "id")), Json.at(call, "extra_content")]
      return id === undefined || own === undefined ? [] : [[id, own] as const]
    })
  )

/** The texts of a detail come in pieces; its signature comes with the last. What is encrypted comes whole. */
const join = (details: Array<unknown>, piece: unknown): void => {
  const last = details.at(-1)
  const goesOn = ["type", "index"].every((key) => Json.at(last, key) === Json.at(piece, key))
  const key = ["text", "summary"].find((it) => typeof Json.at(piece, it) === "string" || isSignature(piece, it))
  if (!Json.isRecord(last) || !Json.isRecord(piece) || !goesOn || key === undefined) {
    details.push(piece)
    return
  }
  const written = `${Json.text(last[key]) ?? ""}${Json.text(piece[key]) ?? ""}`
  const said = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined)
  details[details.length - 1] = { ...last, ...Object.fromEntries(said), [key]: written }
}

/** The last piece of a text may be its signature alone. */
const isSignature = (piece: unknown, key: string): boolean =>
  key === "text" && Json.at(piece, "type") === "reasoning.text" && Json.at(piece, "signature") !== undefined

/** A wire whose answers carry what is to be sent back. It is for one answer. */
export const gathering = (
  read: EventReader.Wire,
  provider: string,
  field: NonNullable<Dialect["opaque"]>
): EventReader.Wire => {
  const { take, opaque } = collector(provider, field)
  return {
    ...read,
    take: (draft, event) => {
      const choice = Json.list(Json.at(event, "choices"))[0]
      if (take(Json.at(choice, "delta") ?? Json.at(choice, "message"))) draft.opaque = opaque()
      read.take(draft, event)
    },
    answer: (reply) => {
      take(Json.at(Json.list(Json.at(reply.json, "choices"))[0], "message"))
      const gathered = opaque()
      return gathered === undefined
        ? read.answer(reply)
        : Either.map(read.answer(reply), (answer) => ({ ...answer, opaque: gathered }))
    }
  }
}
