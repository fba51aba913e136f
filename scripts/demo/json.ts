/** What happens and what is answered, a line of JSON each, for machines. */
import { DateTime, Duration } from "effect"
import type { ChatResponse, FuseEvent } from "../../src/index.ts"

/** One line on stdout. Durations are milliseconds (`delayMillis` for `delay`), times ISO 8601, errors `{ tag, message }`. */
const printLine = (fact: object): void => {
  console.log(JSON.stringify(fact, (_, value: unknown) => plain(value)))
}

const plain = (value: unknown): unknown =>
  typeof value !== "object" || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value).map(([name, field]) => plainField(name, field)))

/** Before JSON asks the field itself how it would like to be written, as errors do. */
const plainField = (name: string, field: unknown): readonly [string, unknown] => {
  if (Duration.isDuration(field)) return [`${name}Millis`, Duration.toMillis(field)]
  if (DateTime.isDateTime(field)) return [name, DateTime.formatIso(field)]
  if (!(field instanceof Error)) return [name, field]
  return [name, { tag: "_tag" in field ? field._tag : field.name, message: field.message }]
}

/** A listener for `onEvent` that prints each event. */
export const printEvent = (event: FuseEvent): void => printLine(event)

/** Prints the answer after the events that led to it. */
export const printAnswerLine = ({ provider, model, text, finishReason, usage, cost, latency }: ChatResponse): void =>
  printLine({ _tag: "Answer", provider, model, text, finishReason, usage, cost, latency })
