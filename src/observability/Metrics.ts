/** Counts what happens as metrics of Effect: a listener of events, of which nothing else knows. */
import type { Effect, Scope } from "effect"
import type { ObservedEvent } from "./EventHub.ts"
import * as Attempts from "./MetricsAttempts.ts"
import * as Calls from "./MetricsCalls.ts"
import * as Circuits from "./MetricsCircuits.ts"
import * as Instrument from "./MetricsInstrument.ts"
import type { MetricsOptions } from "./MetricsOptions.ts"
import * as Retries from "./MetricsRetries.ts"

/** What goes with the metrics. */
export interface Options extends MetricsOptions {
  /** The model that is asked for at a provider, for `gen_ai.request.model`. Default: left out. */
  readonly modelOf?: ((provider: string) => string | undefined) | undefined
}

/**
 * A listener that updates the metrics, at once. No label holds an id, a prompt, an answer, a key or a tag; the number of
 * their values is bounded.
 */
export const listener = ({
  modelOf = () => undefined,
  labels = {}
}: Options = {}): ((event: ObservedEvent) => void) => {
  const instruments = Instrument.shared(labels)
  const calls = Calls.make(instruments)
  const countAttempt = Attempts.make(instruments, modelOf, calls.operationOf)
  const countRetry = Retries.make(instruments)
  const showCircuit = Circuits.make(instruments)

  return (event) => {
    if (event._tag === "EventsDropped") return instruments.eventsDropped(event.count)
    countAttempt(event)
    calls.count(event)
    countRetry(event)
    showCircuit(event)
    switch (event._tag) {
      case "Throttled":
        return instruments.throttles(1, event.provider)
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

/**
 * Shows the circuits of a new service's providers as closed, as long as no other service whose scope is open has a
 * provider of that name and the same labels.
 */
export const begin = (
  providers: ReadonlyArray<string>,
  { labels = {} }: MetricsOptions = {}
): Effect.Effect<void, never, Scope.Scope> => Circuits.begin(Instrument.shared(labels), providers)
