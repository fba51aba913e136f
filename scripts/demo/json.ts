/** What happens and what is answered, a line of JSON each, for machines. */
import { DateTime, Duration } from "effect"
import type { ChatResponse, FuseEvent } from "../../src/index.ts"

/** One line on stdout. Durations are milliseconds (`delayMillis` for `delay`), times ISO 8601, errors `{ tag, message }`. */
const printLine = (fact: object): void => {
  console.log(JSON.stringify(fact, (_, value: unknown) => plain(value)))
}

const plain = (value: unknown): unknown => {
  if (value instanceof Error) return { tag: "_tag" in value ? value._tag : value.name, message: value.message }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) =>
      Duration.isDuration(field)
        ? [`${name}Millis`, Duration.toMillis(field)]
        : [name, DateTime.isDateTime(field) ? DateTime.formatIso(field) : field]
    )
  )
}

/** A listener for `onEvent` that prints each event. */
export const printEvent = (event: FuseEvent): void => printLine(event)

/** Prints the answer after the events that led to it. */
export const printAnswerLine = ({ provider, model, text, finishReason, usage, cost, latency }: ChatResponse): void =>
  printLine({ _tag: "Answer", provider, model, text, finishReason, usage, cost, latency })
