/** The trail of a call: one line per fact, as it happens. */
import { DateTime, Duration } from "effect"
import type { FuseEvent } from "../../src/index.ts"
import { reasonOf } from "./failure.ts"
import { printEvent } from "./json.ts"
import { areMachinesServed, paint, say } from "./output.ts"

/** A listener for `onEvent` that prints what happens: for people, one call at a time, or for machines. */
export const makeTrail = (): ((event: FuseEvent) => void) => (areMachinesServed() ? printEvent : makeLines())

const makeLines = (): ((event: FuseEvent) => void) => {
  let startedMillis = 0
  const afterwards: Array<string> = []
  return (event) => {
    switch (event._tag) {
      case "AttemptStarted":
        startedMillis = DateTime.toEpochMillis(event.at)
        return
      case "CircuitClosed":
        // It is told before the success that closed it; people want to read the success first.
        afterwards.push(line(event.provider, paint("green", "circuit closed: it works again")))
        return
      case "CallSucceeded":
        say(attemptLine(event.provider, event.attempt, "ok", DateTime.toEpochMillis(event.at) - startedMillis))
        for (const text of afterwards.splice(0)) say(text)
        return
      case "AttemptFailed": {
        const millis = Duration.toMillis(event.duration)
        return say(attemptLine(event.provider, event.attempt, "failed", millis, reasonOf(event.error)))
      }
      case "RetryScheduled":
        return say(line(event.provider, `waits ${seconds(event.delay)} before attempt ${event.attempt + 1}`))
      case "Throttled":
        return say(line(event.provider, `not asked: our own limit has no room for ${seconds(event.wait)}`))
      case "CircuitOpened": {
        const millis = DateTime.distance(event.at, event.openUntil)
        return say(line(event.provider, paint("red", `circuit opened: left alone for ${seconds(millis)}`)))
      }
      case "CircuitHalfOpened":
        return say(line(event.provider, paint("yellow", "circuit half-open: one attempt shows whether it works again")))
      case "FailedOver":
        return say(line(event.from, `${passingOver(event.error)} ${event.to}`))
      case "CallFailed":
        // The caller has the error too, and says what each provider failed with.
        return
    }
  }
}

type Passed = Extract<FuseEvent, { readonly _tag: "FailedOver" }>["error"]

const passingOver = (error: Passed): string =>
  error._tag === "CircuitOpenError"
    ? `skipped, its circuit is open for another ${seconds(error.retryAfter ?? 0)}; next is`
    : "fails over to"

/** A fact about a provider. */
export const line = (provider: string, fact: string): string => `  ${provider.padEnd(10)}  ${fact}`

const attemptLine = (
  provider: string,
  attempt: number,
  outcome: "ok" | "failed",
  millis: number,
  reason = ""
): string => {
  const painted = paint(outcome === "ok" ? "green" : "red", outcome.padEnd(6))
  const duration = `${Math.round(millis)} ms`.padStart(8)
  return line(provider, `attempt ${attempt}  ${painted}  ${duration}  ${reason}`.trimEnd())
}

const seconds = (duration: Duration.DurationInput): string => `${(Duration.toMillis(duration) / 1000).toFixed(2)} s`
