/** What has come of one streamed attempt so far. */
import { Chunk } from "effect"
import type { ReasoningDelta, StreamEnd, StreamPart, TextDelta, ToolCallDelta } from "../model/ChatEvent.ts"
import type { ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import { GrowingText } from "./GrowingText.ts"

/** A part that can be shown as it comes. */
export type Delta = TextDelta | ReasoningDelta | ToolCallDelta

/** Gathers the parts of an answer. */
export class Transcript {
  readonly #text = new GrowingText()
  readonly #reasoning = new GrowingText()
  readonly #toolCalls: Array<ToolCall> = []
  #end: StreamEnd | undefined

  /** Takes parts in. Gives back those with content that can be shown: whole tool calls and the end wait for the end. */
  take(parts: Chunk.Chunk<StreamPart | string>): ReadonlyArray<Delta> {
    const deltas: Array<Delta> = []
    for (const part of Chunk.toReadonlyArray(parts)) {
      const delta = typeof part === "string" ? ({ _tag: "TextDelta", text: part } as const) : part
      switch (delta._tag) {
        case "TextDelta":
          if (delta.text === "") continue
          this.#text.add(delta.text)
          break
        case "ReasoningDelta":
          if (delta.text === "") continue
          this.#reasoning.add(delta.text)
          break
        case "ToolCallDelta":
          break
        case "ToolCall": {
          const { _tag, ...toolCall } = delta
          this.#toolCalls.push(toolCall)
          continue
        }
        case "End":
          this.#end = delta
          continue
        default:
          continue
      }
      deltas.push(delta)
    }
    return deltas
  }

  /** The text so far. */
  get text(): string {
    return this.#text.toString()
  }

  /** The answer, once the stream has ended. */
  get answer(): ProviderAnswer {
    const { _tag, ...end } = this.#end ?? { _tag: "End" }
    const reasoning = this.#reasoning.toString()
    return {
      ...end,
      text: this.text,
      toolCalls: this.#toolCalls,
      ...(reasoning === "" ? {} : { reasoning })
    }
  }
}
