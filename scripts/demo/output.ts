/** What is printed where: the answer to stdout, everything else to stderr, so that `> answer.txt` holds the answer alone. */
import { styleText } from "node:util"
import type { ChatResponse } from "../../src/index.ts"
import { printAnswerLine } from "./json.ts"

/** What is to be said when the line that is being written ends; `undefined` where none is. */
let heldBack: Array<string> | undefined

/** Whether everything is for machines: then nothing is said, and events and answers are lines of JSON. */
let isForMachines = false

/** From now on everything is for machines. */
export const beForMachines = (): void => {
  isForMachines = true
}

/** Whether it is. */
export const areMachinesServed = (): boolean => isForMachines

/** Prints lines that are not the answer. Where a line is being written, they wait for its end. */
export const say = (text: string): void => {
  if (isForMachines) return
  if (heldBack === undefined) console.error(text)
  else heldBack.push(text)
}

/** Begins a line that is written piece by piece. */
export const beginLine = (text: string): void => {
  if (isForMachines) return
  heldBack = []
  process.stderr.write(text)
}

/** Adds a piece to the line. */
export const continueLine = (text: string): void => {
  if (isForMachines) return
  process.stderr.write(text)
}

/** Ends the line, if one is being written. */
export const endLine = (): void => {
  if (heldBack === undefined) return
  const texts = ["", ...heldBack]
  heldBack = undefined
  for (const text of texts) say(text)
}

/** Prints the answer below what was said. */
export const printAnswer = (response: ChatResponse): void => {
  if (isForMachines) {
    printAnswerLine(response)
    return
  }
  say("")
  console.log(`[${response.provider}] ${response.text}`)
}

const isColourful = process.stderr.isTTY && process.stderr.hasColors() && !process.env.NO_COLOR

/** Colours a text that is said; only on a terminal, and not where `NO_COLOR` is set. */
export const paint = (style: "bold" | "dim" | "green" | "red" | "yellow", text: string): string =>
  isColourful ? styleText(style, text) : text
