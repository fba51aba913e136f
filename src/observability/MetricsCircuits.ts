/** Shows where the circuits of providers stand. */
import { Effect, type Scope } from "effect"
import type { FuseEvent } from "./FuseEvent.ts"
import type { Instruments } from "./MetricsInstrument.ts"

/** The values of `llmfuse.circuit.state`. */
const states = { closed: 0, "half-open": 1, open: 2, isolated: 3 }

/** A listener. What has a value keeps it until its circuit changes: it may be the word of another service. */
export const make = ({ circuitState, circuitTransitions }: Instruments): ((event: FuseEvent) => void) => {
  const changed = (provider: string, to: keyof typeof states): void => {
    circuitTransitions(1, provider, to)
    circuitState(states[to], provider)
  }

  return (event) => {
    switch (event._tag) {
      case "AttemptStarted":
        if (!circuitState.has(event.provider)) circuitState(states.closed, event.provider)
        return
      case "CircuitOpened":
        return changed(event.provider, "open")
      case "CircuitHalfOpened":
        return changed(event.provider, "half-open")
      case "CircuitClosed":
        return changed(event.provider, "closed")
      case "CircuitIsolated":
        return changed(event.provider, "isolated")
    }
  }
}

/** Shows providers of a new service as closed, but those that another open scope has: theirs may stand otherwise. */
export const begin = (
  instruments: Instruments,
  providers: ReadonlyArray<string>
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const services = servicesOf(instruments)
      for (const provider of providers) {
        const count = services.get(provider) ?? 0
        if (count === 0) instruments.circuitState(states.closed, provider)
        services.set(provider, count + 1)
      }
    }),
    () =>
      Effect.sync(() => {
        const services = servicesOf(instruments)
        for (const provider of providers) services.set(provider, (services.get(provider) ?? 1) - 1)
      })
  )

/** How many open services have each provider. */
const allServices = new WeakMap<Instruments, Map<string, number>>()

const servicesOf = (instruments: Instruments): Map<string, number> => {
  const services = allServices.get(instruments) ?? new Map<string, number>()
  allServices.set(instruments, services)
  return services
}
