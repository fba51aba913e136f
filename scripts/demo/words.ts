/** A streamed answer: its words as they come, which may turn out void, and the whole answer at the end. */
import type { ChatEvent } from "../../src/index.ts"
import { beginLine, continueLine, endLine, paint, printAnswer, say } from "./output.ts"
import { line } from "./trail.ts"

/** Shows the words on stderr, on one line for each provider, and prints the answer to stdout once it is whole. */
export const showWords = async (events: AsyncIterable<ChatEvent>): Promise<void> => {
  let cut: Extract<ChatEvent, { readonly _tag: "Restarted" }> | undefined
  try {
    for await (const event of events) {
      switch (event._tag) {
        case "Started":
          if (cut !== undefined) say(line(cut.provider, paint("yellow", cutAfter(cut.discarded, event.provider))))
          beginLine(line(event.provider, ""))
          break
        case "TextDelta":
          continueLine(paint("dim", event.text))
          break
        case "Restarted":
          endLine()
          cut = event
          break
        case "Finished":
          endLine()
          printAnswer(event.response)
      }
    }
  } finally {
    endLine()
  }
}

const cutAfter = (text: string, next: string): string =>
  `cut after ${text.trim().split(/\s+/).length} words, which are void; ${next} begins afresh`
