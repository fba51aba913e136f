/** The arguments of a tool call as Gemini streams them: whole, or value by value. */
import * as Json from "./Json.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** A piece of a tool call. Nobody promises the shape. */
export interface CallPiece {
  readonly id?: unknown
  readonly name?: unknown
  readonly args?: unknown
  readonly partialArgs?: ReadonlyArray<unknown> | null
  readonly willContinue?: unknown
}

/** Takes a piece into its call, and hands the arguments out when the last one has come. */
export const take = (draft: StreamDraft.StreamDraft, call: StreamDraft.Call, piece: CallPiece): void => {
  const { args, partialArgs } = piece
  call.values = (partialArgs ?? []).reduce(withValue, args ?? call.values ?? {})
  for (const partial of partialArgs ?? []) StreamDraft.keep(draft, lengthOf(partial))
  if (piece.willContinue !== true) StreamDraft.addArguments(draft, call, JSON.stringify(call.values))
}

/** About how much there is to keep of a value. */
const lengthOf = (partial: unknown): number =>
  32 +
  (Json.text(Json.at(partial, "jsonPath"))?.length ?? 0) +
  (Json.text(Json.at(partial, "stringValue"))?.length ?? 0)

const withValue = (args: unknown, partial: unknown): unknown => {
  const path = [...(Json.text(Json.at(partial, "jsonPath")) ?? "").matchAll(steps)].map(stepOf)
  return path.length === 0 ? args : set(args, path, partial)
}

/** The steps of a path such as `$.places[0].name` or `$['a b']`. */
const steps = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/g

const stepOf = ([, name, index, quoted, doubly]: RegExpMatchArray): string | number =>
  index === undefined ? (name ?? (quoted ?? doubly ?? "").replace(/\\(.)/g, "$1")) : Number(index)

/** The values belong to nobody else, so that they are changed where they are: a copy for each piece would be too slow. */
const set = (target: unknown, [step, ...rest]: ReadonlyArray<string | number>, partial: unknown): unknown => {
  if (step === undefined) return valueOf(target, partial)
  if (typeof step === "number") {
    const list: Array<unknown> = Array.isArray(target) ? target : []
    // Elements come in order: a number beyond the end would only make holes.
    const index = Math.min(step, list.length)
    list[index] = set(list[index], rest, partial)
    return list
  }
  const record = Json.isRecord(target) ? target : {}
  const value = set(Json.at(record, step), rest, partial)
  return Object.defineProperty(record, step, { value, configurable: true, enumerable: true, writable: true })
}

/** Texts come in pieces, other values whole. */
const valueOf = (before: unknown, partial: unknown): unknown => {
  const text = Json.at(partial, "stringValue")
  if (typeof text === "string") return `${typeof before === "string" ? before : ""}${text}`
  return Json.at(partial, "numberValue") ?? Json.at(partial, "boolValue") ?? before ?? null
}
