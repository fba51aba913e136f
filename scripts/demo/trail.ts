/** The trail of a call: one line per fact, as it happens. */
import { DateTime, Duration } from "effect"
import type { FuseEvent } from "../../src/index.ts"
import { reasonOf } from "./failure.ts"
import { printEvent } from "./json.ts"
import { areMachinesServed, paint, say } from "./output.ts"

/** A listener for `onEvent` that prints what happens: for people, one call at a time, or for machines. */
export const makeTrail = (): ((event: FuseEvent) => void) => (areMachinesServed() ? printEvent : makeLines())

const makeLines = (): ((event: FuseEvent) => void) => (event) => {
  const text = lineOf(event)
  if (text !== undefined) say(text)
}

/** What people read of an event. The end of a call is not among it: the answer or the error follows. */
const lineOf = (event: FuseEvent): string | undefined => {
  switch (event._tag) {
    case "AttemptSucceeded":
      return attemptLine(event, paint("green", "ok    "))
    case "AttemptFailed":
      return attemptLine(event, paint("red", "failed"), reasonOf(event.error))
    case "AttemptInterrupted":
      return attemptLine(event, paint("red", "ended "), "the call has no time left, or nobody waits for it")
    case "RetryScheduled":
      return line(event.provider, `waits ${seconds(event.delay)} before attempt ${event.attempt + 1}`)
    case "Throttled":
      return line(event.provider, `not asked: our own limit has no room for ${seconds(event.wait)}`)
    case "CircuitOpened": {
      const millis = DateTime.distance(event.at, event.openUntil)
      return line(event.provider, paint("red", `circuit opened: left alone for ${seconds(millis)}`))
    }
    case "CircuitHalfOpened":
      return line(event.provider, paint("yellow", "circuit half-open: one attempt shows whether it works again"))
    case "CircuitClosed":
      return line(event.provider, paint("green", "circuit closed: it works again"))
    case "AttemptRejected":
      return line(event.provider, notAsked(event.error))
    case "FailedOver":
      return line(event.from, `fails over to ${event.to}`)
    case "Hedged":
      return line(event.from, `is slow: ${event.to} is asked too`)
    case "HedgeLost":
      return line(event.provider, "given up: another was faster")
    default:
      return undefined
  }
}

type Rejected = Extract<FuseEvent, { readonly _tag: "AttemptRejected" }>["error"]

const notAsked = (error: Rejected): string =>
  error._tag === "CircuitOpenError"
    ? `skipped: its circuit is open for another ${seconds(error.retryAfter ?? 0)}`
    : `skipped: ${reasonOf(error)}`

/** A fact about a provider. */
export const line = (provider: string, fact: string): string => `  ${provider.padEnd(10)}  ${fact}`

interface Ended {
  readonly provider: string
  readonly attempt: number
  readonly duration: Duration.Duration
}

const attemptLine = ({ provider, attempt, duration }: Ended, outcome: string, reason = ""): string => {
  const millis = `${Math.round(Duration.toMillis(duration))} ms`.padStart(8)
  return line(provider, `attempt ${attempt}  ${outcome}  ${millis}  ${reason}`.trimEnd())
}

const seconds = (duration: Duration.DurationInput): string => `${(Duration.toMillis(duration) / 1000).toFixed(2)} s`
