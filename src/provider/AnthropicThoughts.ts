/** What Anthropic wants back of its own answers: its thoughts, with their signatures, where they stood. */
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import { type Block, textBlocks } from "./AnthropicContent.ts"
import * as Json from "./Json.ts"

/** The name of this wire in `OpaqueReasoning`. */
export const wire = "anthropic-messages"

/** Whose thoughts they are. */
export interface Author {
  /** The name of the provider. */
  readonly provider: string
  /** Whose reasoning the model can read. */
  readonly family: string
}

/** What is kept of thoughts: the blocks up to the last of them; of a text only its length, of a call only its id. */
interface Kept {
  readonly family: string
  readonly blocks: ReadonlyArray<Block>
}

/** The thoughts among the blocks of an answer; `undefined` if there are none that can be sent back. */
export const opaqueOf = (blocks: ReadonlyArray<unknown>, { provider, family }: Author): OpaqueReasoning | undefined => {
  const kept = blocks.flatMap(keptOf)
  const count = kept.findLastIndex(isThought) + 1
  return count === 0 ? undefined : { wire, provider, value: { family, blocks: kept.slice(0, count) } satisfies Kept }
}

const keptOf = (block: unknown): ReadonlyArray<Block> => {
  const text = (key: string) => Json.text(Json.at(block, key))
  switch (Json.at(block, "type")) {
    case "thinking": {
      const signature = text("signature")
      return signature === undefined ? [] : [{ type: "thinking", thinking: text("thinking") ?? "", signature }]
    }
    case "redacted_thinking":
      return [{ type: "redacted_thinking", data: Json.at(block, "data") }]
    case "text":
      return [{ type: "text", length: Json.number(Json.at(block, "length")) ?? text("text")?.length ?? 0 }]
    case "tool_use":
      return [{ type: "tool_use", id: Json.at(block, "id") }]
    default:
      return []
  }
}

/**
 * Gathers the blocks of an answer that streams in, as far as `opaqueOf` looks at them. What takes something in gives back
 * about how much is kept of it, in characters.
 */
export interface Gatherer {
  readonly begin: (index: unknown, block: unknown) => number
  readonly add: (index: unknown, to: "thinking" | "signature" | "text", piece: unknown) => number
  readonly clear: () => void
  readonly blocks: () => ReadonlyArray<unknown>
}

/** A gatherer of nothing. Of texts it keeps only the length. */
export const gatherer = (): Gatherer => {
  let blocks: Array<{
    index: unknown
    type: unknown
    id: unknown
    data: unknown
    text: string
    thinking: string
    signature: string
    length: number
  }> = []
  return {
    begin: (index, block) => {
      const text = (key: string) => Json.text(Json.at(block, key)) ?? ""
      const kept = ["thinking", "signature", "data", "id"].reduce((sum, key) => sum + text(key).length, 64)
      blocks.push({
        index,
        type: Json.at(block, "type"),
        id: Json.at(block, "id"),
        data: Json.at(block, "data"),
        thinking: text("thinking"),
        signature: text("signature"),
        text: "",
        length: 0
      })
      return kept
    },
    add: (index, to, piece) => {
      const block = typeof piece === "string" ? blocks.findLast((it) => it.index === index) : undefined
      if (block === undefined || typeof piece !== "string") return 0
      if (to === "text") {
        block.length += piece.length
        return 0
      }
      block[to] += piece
      return piece.length
    },
    clear: () => {
      blocks = []
    },
    blocks: () => blocks
  }
}

/** Whether a block is a thought. */
export const isThought = (block: Block | undefined): boolean =>
  block?.type === "thinking" || block?.type === "redacted_thinking"

/** The thoughts that go back to a family; `undefined` if they are not its own. */
export const sentBack = (opaque: OpaqueReasoning, family: string): ReadonlyArray<Block> | undefined => {
  const blocks = Json.at(opaque.value, "blocks")
  return opaque.wire === wire && Json.at(opaque.value, "family") === family && Array.isArray(blocks)
    ? blocks
    : undefined
}

/** A call as a block, and the id that the caller knows it by. */
export interface Call {
  readonly id: string
  readonly block: Block
}

/** An answer as it was: thoughts may stand between its texts and calls. Where it has been altered they come first. */
export const arrange = (kept: ReadonlyArray<Block>, text: string, calls: ReadonlyArray<Call>): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let taken = 0
  let called = 0
  for (const block of kept) {
    if (isThought(block)) blocks.push(block)
    else if (block.type === "text") {
      const from = taken
      taken += Number(block.length)
      blocks.push(...textBlocks(text.slice(from, taken)))
    } else if (calls[called]?.id === block.id) blocks.push(...calls.slice(called, ++called).map((call) => call.block))
    else taken = Number.POSITIVE_INFINITY
  }
  const isAsItWas = taken <= text.length
  return isAsItWas
    ? [...blocks, ...textBlocks(text.slice(taken)), ...calls.slice(called).map(({ block }) => block)]
    : [...kept.filter(isThought), ...textBlocks(text), ...calls.map(({ block }) => block)]
}
