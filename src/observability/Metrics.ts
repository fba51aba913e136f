/** Counts what happens as metrics of Effect: a listener of events, of which nothing else knows. */
import { Effect, type Scope } from "effect"
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
export const listener = ({ modelOf = () => undefined, labels = {} }: Options = {}): Listener => {
  const instruments = Instrument.shared(labels)
  const calls = Calls.make(instruments)
  const countAttempt = Attempts.make(instruments, modelOf, calls.operationOf)
  const countRetry = Retries.make(instruments)
  const circuits = Circuits.make(instruments)

  const count: Listener = (event) => {
    if (event._tag === "EventsDropped") return instruments.eventsDropped(event.count)
    countAttempt(event)
    calls.count(event)
    countRetry(event)
    circuits.show(event)
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
  circuitsOf.set(count, circuits)
  return count
}

/** Updates the metrics. */
export type Listener = (event: ObservedEvent) => void

const circuitsOf = new WeakMap<Listener, Circuits.Circuits>()

/**
 * Shows the circuits of a service's providers as closed, as far as no other service with the same labels says otherwise;
 * with the scope what the listener has said of them is gone.
 */
export const begin = (listener: Listener, providers: ReadonlyArray<string>): Effect.Effect<void, never, Scope.Scope> =>
  circuitsOf.get(listener)?.begin(providers) ?? Effect.void
