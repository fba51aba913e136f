/** What has come of one streamed attempt so far. */
import { Chunk, Either } from "effect"
import type { ReasoningDelta, StreamEnd, StreamPart, TextDelta, ToolCallDelta } from "../model/ChatEvent.ts"
import type { ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import * as Json from "../provider/Json.ts"
import { GrowingText } from "./GrowingText.ts"

/** A part that can be shown as it comes. */
export type Delta = TextDelta | ReasoningDelta | ToolCallDelta

/** Gathers the parts of an answer. */
export class Transcript {
  readonly #text = new GrowingText()
  readonly #reasoning = new GrowingText()
  readonly #toolCalls: Array<ToolCall> = []
  #end: StreamEnd | undefined
  #characters = 0
  #showsArguments = false

  /** Takes parts in. Gives back those with content that can be shown: whole tool calls and the end wait for the end. */
  take(parts: Chunk.Chunk<StreamPart | string>): ReadonlyArray<Delta> {
    const deltas: Array<Delta> = []
    for (const part of Chunk.toReadonlyArray(parts)) {
      const delta = typeof part === "string" ? ({ _tag: "TextDelta", text: part } as const) : part
      switch (delta._tag) {
        case "TextDelta":
          if (delta.text === "") continue
          this.#text.add(delta.text)
          this.#characters += delta.text.length
          break
        case "ReasoningDelta":
          if (delta.text === "") continue
          this.#reasoning.add(delta.text)
          this.#characters += delta.text.length
          break
        case "ToolCallDelta":
          this.#showsArguments = true
          this.#characters += delta.arguments.length
          break
        case "ToolCall": {
          const { _tag, ...toolCall } = delta
          this.#toolCalls.push(toolCall)
          if (!this.#showsArguments) this.#characters += lengthOf(toolCall)
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

  /** How many characters were written so far: of text, of reasoning and of the arguments of tool calls. */
  get characters(): number {
    return this.#characters
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

/** The length of arguments that came in one piece. */
const lengthOf = ({ arguments: read, rawArguments }: ToolCall): number =>
  rawArguments?.length ?? Either.match(Json.write(read), { onLeft: () => 0, onRight: (json) => json.length })
