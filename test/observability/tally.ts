/** The counters that events must lead to, by a second way: one key for each event. */
import type { FuseEvent, ObservedEvent, Operation } from "llmfuse"

/** How often each word occurs. */
export const tally = (words: ReadonlyArray<string>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

const key = (name: string, labels: Readonly<Record<string, string | undefined>>): string =>
  `${name}{${Object.entries(labels)
    .flatMap(([label, value]) => (value === undefined ? [] : [`${label}=${value}`]))
    .sort()
    .join(",")}}`

/** The counters after these events, without what is spent. */
export const countersAfter = (events: ReadonlyArray<ObservedEvent>): Readonly<Record<string, number>> => {
  const operations = new Map<string, Operation>()
  return tally(
    events.flatMap((event, index) => {
      if (event._tag === "EventsDropped") return Array.from({ length: event.count }, () => "llmfuse.events.dropped{}")
      if (event._tag === "CallStarted") operations.set(event.callId, event.operation)
      const operation = event.callId === undefined ? undefined : operations.get(event.callId)
      if (isEnd(event)) operations.delete(event.callId)
      const retry = event._tag === "AttemptStarted" ? retryOf(event, events.slice(0, index)) : []
      return [...retry, ...keysOf(event, operation)]
    })
  )
}

/** What is spent after these events, by its labels. */
export const spentAfter = (
  events: ReadonlyArray<ObservedEvent>,
  modelOf: (provider: string) => string | undefined
): Readonly<Record<string, number>> => {
  const spent: Record<string, number> = {}
  for (const event of events) {
    if (!("isEstimated" in event) || event.isEstimated === undefined || event.cost === undefined) continue
    const answered = event._tag === "AttemptSucceeded" && event.model !== "" ? event.model : undefined
    const of = key("llmfuse.cost", {
      "gen_ai.provider.name": event.provider,
      "gen_ai.request.model": modelOf(event.provider),
      "gen_ai.response.model": answered,
      estimated: `${event.isEstimated}`
    })
    spent[of] = (spent[of] ?? 0) + event.cost
  }
  return spent
}

const isEnd = (event: FuseEvent) =>
  event._tag === "CallSucceeded" ||
  event._tag === "CallFailed" ||
  event._tag === "CallDied" ||
  event._tag === "CallInterrupted"

/** A retry, if the last that was told of the provider in this call, but for how attempts ended, is that one is planned. */
const retryOf = (
  { callId, provider }: { readonly callId: string; readonly provider: string },
  before: ReadonlyArray<ObservedEvent>
): ReadonlyArray<string> => {
  const last = before.findLast(
    (event) =>
      event._tag !== "EventsDropped" &&
      event.callId === callId &&
      (isEnd(event) ||
        event._tag === "AttemptSucceeded" ||
        ((event._tag === "AttemptStarted" || event._tag === "RetryScheduled") && event.provider === provider))
  )
  return last?._tag === "RetryScheduled" ? [key("llmfuse.retries", { provider, "error.type": last.error._tag })] : []
}

const keysOf = (event: FuseEvent, operation: Operation | undefined): ReadonlyArray<string> => {
  const type = "error" in event ? { "error.type": (event.error as { _tag: string } | undefined)?._tag } : {}
  switch (event._tag) {
    case "CallSucceeded":
      return [key("llmfuse.calls", { operation, outcome: "success" })]
    case "CallFailed":
      return [key("llmfuse.calls", { operation, outcome: "failure", ...type })]
    case "CallDied":
      return [key("llmfuse.calls", { operation, outcome: "defect", ...type })]
    case "CallInterrupted":
      return [key("llmfuse.calls", { operation, outcome: "interrupted" })]
    case "AttemptSucceeded":
      return [key("llmfuse.attempts", { provider: event.provider, outcome: "success" })]
    case "AttemptFailed": {
      const { statusCode } = event.error
      const status = statusCode === undefined ? {} : { "http.response.status_code": `${statusCode}` }
      return [key("llmfuse.attempts", { provider: event.provider, outcome: "failure", ...type, ...status })]
    }
    case "AttemptInterrupted":
      return [key("llmfuse.attempts", { provider: event.provider, outcome: "interrupted" })]
    case "AttemptRejected":
      return [key("llmfuse.attempts", { provider: event.provider, outcome: "rejected", ...type })]
    case "HedgeLost":
      return event.attempt === undefined
        ? []
        : [key("llmfuse.attempts", { provider: event.provider, outcome: "hedge-lost" })]
    case "Throttled":
      return [
        key("llmfuse.throttles", { provider: event.provider }),
        key("llmfuse.attempts", { provider: event.provider, outcome: "rejected", ...type })
      ]
    case "FailedOver":
      return [key("llmfuse.failovers", { from: event.from, to: event.to, ...type })]
    case "StreamRestarted":
      return [key("llmfuse.stream.restarts", { from: event.from, to: event.to, ...type })]
    case "Hedged":
      return [key("llmfuse.hedges", { from: event.from, to: event.to })]
    case "FallbackUsed":
      return [key("llmfuse.fallbacks", type)]
    case "ServedFromCache":
      return [key("llmfuse.cache.hits", { stale: String(event.isStale) })]
    case "CircuitOpened":
      return [key("llmfuse.circuit.transitions", { provider: event.provider, to: "open" })]
    case "CircuitHalfOpened":
      return [key("llmfuse.circuit.transitions", { provider: event.provider, to: "half-open" })]
    case "CircuitClosed":
      return [key("llmfuse.circuit.transitions", { provider: event.provider, to: "closed" })]
    case "CircuitIsolated":
      return [key("llmfuse.circuit.transitions", { provider: event.provider, to: "isolated" })]
    default:
      return []
  }
}
