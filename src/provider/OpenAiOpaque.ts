/** What vendors of OpenAI's wire want back of their own answers. */
import { Either } from "effect"
import type { AssistantMessage } from "../model/Message.ts"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import type * as EventReader from "./EventReader.ts"
import * as GeminiVersion from "./GeminiVersion.ts"
import * as Json from "./Json.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** The name of this wire in `OpaqueReasoning`. */
export const wire = "openai-chat"

/** What goes back: fields of the message, and of each of its tool calls. */
export interface SentBack {
  readonly ofMessage: Readonly<Record<string, unknown>>
  readonly ofCall: (id: string) => Readonly<Record<string, unknown>>
}

const nothing: SentBack = { ofMessage: {}, ofCall: () => ({}) }

/** What is known of a message and of who is asked. */
export interface Given {
  /** The name of the provider that is asked. */
  readonly provider: string
  readonly model: string
  readonly field: Dialect["opaque"]
  /** Whether tools were called since the user spoke. */
  readonly hasCalls: boolean
}

/** What of an earlier answer goes back to a provider: only what it wrote itself, or what stands for it. */
export const sentBack = (
  { opaque, toolCalls = [] }: Pick<AssistantMessage, "opaque" | "toolCalls">,
  { provider, model, field, hasCalls }: Given,
  notes: Notes
): SentBack => {
  const isOwn = opaque?.wire === wire && opaque.provider === provider && field !== undefined
  const kept = isOwn ? Json.at(opaque.value, field) : undefined
  if (opaque !== undefined && kept === undefined) {
    notes.changes.add("messages lost the reasoning that only another provider can read.")
  }
  switch (field) {
    case undefined:
      return nothing
    case "reasoning_details":
      return kept === undefined ? nothing : { ...nothing, ofMessage: { [field]: kept } }
    case "reasoning_content":
      // DeepSeek refuses calls without their reasoning, be it empty, and did refuse reasoning anywhere else.
      return hasCalls ? { ...nothing, ofMessage: { [field]: Json.text(kept) ?? "" } } : nothing
    case "extra_content": {
      const first = toolCalls[0]?.id
      return {
        ...nothing,
        ofCall: (id) => {
          const own = Json.at(kept, id) ?? (id === first && GeminiVersion.isKnownToSign(model) ? unsigned : undefined)
          return own === undefined ? {} : { [field]: own }
        }
      }
    }
  }
}

/** Gemini refuses calls without a signature; of calls side by side the first has one. */
const unsigned = { google: { thought_signature: GeminiVersion.foreignSignature } }

/** Gathers from a whole message, or from the pieces of one. */
const collector = (provider: string, field: NonNullable<Dialect["opaque"]>) => {
  const details: Array<unknown> = []
  const calls = new Map<string, unknown>()
  let reasoning = ""
  const take: Readonly<Record<typeof field, (message: unknown) => number>> = {
    reasoning_details: (message) => {
      const pieces = Json.list(Json.at(message, "reasoning_details"))
      for (const piece of pieces) join(details, piece)
      return pieces.reduce<number>((sum, piece) => sum + lengthOf(piece), 0)
    },
    reasoning_content: (message) => {
      const piece = Json.text(Json.at(message, "reasoning_content")) ?? ""
      reasoning += piece
      return piece.length
    },
    extra_content: (message) => {
      const own = ofCalls(message)
      for (const [id, value] of own) calls.set(id, value)
      return own.reduce((sum, [id, value]) => sum + id.length + lengthOf(value), 0)
    }
  }
  const value = (): unknown => {
    if (details.length > 0) return details
    return calls.size > 0 ? Object.fromEntries(calls) : Json.text(reasoning)
  }
  return {
    /** Gives back about how much it kept, in characters. */
    take: take[field],
    opaque: (): OpaqueReasoning | undefined => {
      const kept = value()
      return kept === undefined ? undefined : { wire, provider, value: { [field]: kept } }
    }
  }
}

const lengthOf = (value: unknown): number =>
  Either.match(Json.write(value), { onLeft: () => 0, onRight: (it) => it.length })

/** What stands beside tool calls, by the ids that the calls are handed out with. */
const ofCalls = (message: unknown): ReadonlyArray<readonly [id: string, own: unknown]> =>
  Json.list(Json.at(message, "tool_calls")).flatMap((call, place) => {
    const own = Json.at(call, "extra_content")
    const id = Json.text(Json.at(call, "id")) ?? `call_${Json.number(Json.at(call, "index")) ?? place}`
    return own === undefined || own === null ? [] : [[id, own] as const]
  })

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
      const length = take(Json.at(choice, "delta") ?? Json.at(choice, "message"))
      StreamDraft.keep(draft, length)
      if (length > 0) draft.opaque = opaque()
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
