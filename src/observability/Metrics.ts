/** Counts what happens as metrics of Effect: a listener of events, of which nothing else knows. */
import type { ObservedEvent } from "./EventHub.ts"
import * as Attempts from "./MetricsAttempts.ts"
import * as Calls from "./MetricsCalls.ts"
import * as Instrument from "./MetricsInstrument.ts"

/** What goes with the metrics. */
export interface Options {
  /** The model that is asked for at a provider, for `gen_ai.request.model`. Default: left out. */
  readonly modelOf?: ((provider: string) => string | undefined) | undefined
  /**
   * Labels for every value, to tell services in one process apart. Metrics are global: without them the counts of all add
   * up, and of two providers of one name the last word on a circuit wins. Default: none.
   */
  readonly labels?: Readonly<Record<string, string>> | undefined
}

/** The values of `llmfuse.circuit.state`. */
const circuitStates = { closed: 0, "half-open": 1, open: 2, isolated: 3 }

/**
 * A listener that updates the metrics, at once. No label holds an id, a prompt, an answer, a key or a tag; the number of
 * their values is bounded.
 */
export const listener = ({
  modelOf = () => undefined,
  labels = {}
}: Options = {}): ((event: ObservedEvent) => void) => {
  const instruments = Instrument.makeAll(labels)
  const calls = Calls.make(instruments)
  const countAttempt = Attempts.make(instruments, modelOf, calls.operationOf)
  /** The providers whose circuit has a value. */
  const known = new Set<string>()

  const seen = (provider: string): void => {
    if (known.has(provider)) return
    known.add(provider)
    instruments.circuitState(circuitStates.closed, provider)
  }

  const circuitChanged = (provider: string, to: keyof typeof circuitStates): void => {
    known.add(provider)
    instruments.circuitTransitions(1, provider, to)
    instruments.circuitState(circuitStates[to], provider)
  }

  return (event) => {
    if (event._tag === "EventsDropped") return instruments.eventsDropped(event.count)
    countAttempt(event)
    calls.count(event)
    switch (event._tag) {
      case "AttemptStarted":
        return seen(event.provider)
      case "RetryScheduled":
        return instruments.retries(1, event.provider, event.error._tag)
      case "Throttled":
        return instruments.throttles(1, event.provider)
      case "CircuitOpened":
        return circuitChanged(event.provider, "open")
      case "CircuitHalfOpened":
        return circuitChanged(event.provider, "half-open")
      case "CircuitClosed":
        return circuitChanged(event.provider, "closed")
      case "CircuitIsolated":
        return circuitChanged(event.provider, "isolated")
      case "RateLowered":
      case "RateRaised":
        return instruments.rate(event.to, event.provider)
      case "Hedged":
        return instruments.hedges(1, event.from, event.to)
      case "FailedOver":
        return instruments.failovers(1, event.from, event.to, event.error._tag)
      case "StreamRestarted":
        return instruments.streamRestarts(1, event.from, event.to, event.error._tag)
      case "FallbackUsed":
        return instruments.fallbacks(1, event.error._tag)
      case "ServedFromCache":
        return instruments.cacheHits(1, String(event.isStale))
    }
  }
}
