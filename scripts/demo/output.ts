/** What is printed where: the answer to stdout, everything else to stderr, so that `> answer.txt` holds the answer alone. */
import { styleText } from "node:util"
import type { ChatResponse } from "../../src/index.ts"

/** Prints lines that are not the answer. */
export const say = (text: string): void => console.error(text)

/** Prints the answer below what was said. */
export const printAnswer = (response: ChatResponse): void => {
  say("")
  console.log(`[${response.provider}] ${response.text}`)
}

const isColourful = process.stderr.isTTY && process.stderr.hasColors() && !process.env.NO_COLOR

/** Colours a text that is said; only on a terminal, and not where `NO_COLOR` is set. */
export const paint = (style: "bold" | "dim" | "green" | "red" | "yellow", text: string): string =>
  isColourful ? styleText(style, text) : text
