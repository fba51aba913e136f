/** What happens, as lines of Effect's logger: one for a failed call, none for what goes well unless debugging. */
import { Duration, Effect, FiberRef, FiberRefs, LogLevel, Option, Runtime } from "effect"
import * as Discreet from "./Discreet.ts"
import type { FuseEvent } from "./FuseEvent.ts"

/** A line: its level, its words, and what goes beside them. */
interface Line {
  readonly level: LogLevel.LogLevel
  readonly message: string
  readonly annotations: Readonly<Record<string, unknown>>
}

/**
 * A listener that logs with the loggers and the minimum level of the program it is made in. Calls that failed or died of a
 * defect are errors, one line each; transitions of circuits, failovers and fallbacks are warnings; everything else is for
 * debugging. Lines hold the id of the call and the provider, and nothing of prompts and answers.
 */
export const listener: Effect.Effect<(event: FuseEvent) => void> = Effect.map(Effect.runtime<never>(), (runtime) => {
  const minimum = Option.getOrElse(
    FiberRefs.get(runtime.fiberRefs, FiberRef.currentMinimumLogLevel),
    () => LogLevel.Info
  )
  return (event) => {
    const level = levelOf(event)
    if (LogLevel.lessThan(level, minimum)) return
    const { message, annotations } = lineOf(event, level)
    Runtime.runSync(runtime, Effect.annotateLogs(Effect.logWithLevel(level, message), annotations))
  }
})

const levelOf = (event: FuseEvent): LogLevel.LogLevel => {
  switch (event._tag) {
    case "CallFailed":
    case "CallDied":
      return LogLevel.Error
    case "CircuitOpened":
    case "CircuitHalfOpened":
    case "CircuitClosed":
    case "CircuitIsolated":
    case "FailedOver":
    case "StreamRestarted":
    case "FallbackUsed":
    case "RateLowered":
      return LogLevel.Warning
    default:
      return LogLevel.Debug
  }
}

const lineOf = (event: FuseEvent, level: LogLevel.LogLevel): Line => ({
  level,
  message: wordsOf(event),
  annotations: Object.fromEntries(
    Object.entries({
      event: event._tag,
      callId: event.callId,
      provider: "provider" in event ? event.provider : "from" in event ? event.from : undefined,
      attempt: "attempt" in event ? event.attempt : undefined,
      error: "error" in event ? Discreet.tagOf(event.error) : undefined
    }).filter(([, value]) => value !== undefined)
  )
})

/** What an error says; the hub has seen to it that it quotes nobody. */
const saidBy = (error: unknown): string => (error instanceof Error ? error.message : Discreet.tagOf(error))

/** The kind of a defect, and its words where the hub lets them through. */
const defectIn = (defect: unknown): string => {
  const kind = Discreet.tagOf(defect)
  return defect instanceof Error ? `${kind}: ${defect.message}` : kind
}

const time = (duration: Duration.Duration): string => Duration.format(duration)

const wordsOf = (event: FuseEvent): string => {
  switch (event._tag) {
    case "CallStarted":
      return `${event.operation}: call started`
    case "AttemptStarted":
      return `${event.provider}: attempt ${event.attempt} started`
    case "AttemptSucceeded":
      return `${event.provider}: attempt ${event.attempt} answered after ${time(event.duration)}`
    case "AttemptInterrupted":
      return `${event.provider}: attempt ${event.attempt} interrupted after ${time(event.duration)}`
    case "AttemptRejected":
      return saidBy(event.error)
    case "AttemptFailed":
      return `${event.provider}: attempt ${event.attempt} failed after ${time(event.duration)}: ${saidBy(event.error)}`
    case "RetryScheduled":
      return `${event.provider}: asked again in ${time(event.delay)}`
    case "Throttled":
      return saidBy(event.error)
    case "CircuitOpened":
      return `${event.provider}: circuit opened (${event.reason})${event.error === undefined ? "" : `: ${saidBy(event.error)}`}`
    case "CircuitHalfOpened":
      return `${event.provider}: circuit half-open`
    case "CircuitClosed":
      return `${event.provider}: circuit closed`
    case "CircuitIsolated":
      return `${event.provider}: isolated by hand`
    case "RateLowered":
      return `${event.provider}: rate lowered to ${event.to} a minute`
    case "RateRaised":
      return `${event.provider}: rate raised to ${event.to} a minute`
    case "Hedged":
      return `${event.from}: slow, ${event.to} is asked too`
    case "HedgeLost":
      return `${event.provider}: given up, another was faster`
    case "FailedOver":
      return `${event.from}: failed over to ${event.to}: ${saidBy(event.error)}`
    case "StreamRestarted":
      return `${event.from}: the stream broke, ${event.to} begins afresh: ${saidBy(event.error)}`
    case "FallbackUsed":
      return `the fallback answers: ${saidBy(event.error)}`
    case "ServedFromCache":
      return `${event.provider}: served from the cache${event.isStale ? ", stale" : ""}`
    case "CallSucceeded":
      return `${event.provider}: answered after ${time(event.latency)}`
    case "CallFailed":
      return `call failed: ${saidBy(event.error)}`
    case "CallInterrupted":
      return "call interrupted"
    case "CallDied":
      return `call died of a defect: ${defectIn(event.error)}`
  }
}
