/** Shows where the circuits of providers stand. */
import { Effect, type Scope } from "effect"
import type { FuseEvent } from "./FuseEvent.ts"
import type { Instruments } from "./MetricsInstrument.ts"

/** The values of `llmfuse.circuit.state`. */
const states = { closed: 0, "half-open": 1, open: 2, isolated: 3 }

type State = keyof typeof states

/** What one service says of its circuits. Services with the same labels share a value: the last word counts. */
export interface Circuits {
  /** A listener. */
  readonly show: (event: FuseEvent) => void
  /**
   * Shows providers as closed, but those of which another service has said something; with the scope the words of this
   * service are gone, and the last one of another counts.
   */
  readonly begin: (providers: ReadonlyArray<string>) => Effect.Effect<void, never, Scope.Scope>
}

/** The circuits of a service. */
export const make = (instruments: Instruments): Circuits => {
  const { circuitState, circuitTransitions } = instruments
  /** What the services that have begun say of a provider, the last word last. */
  const wordsOn = (provider: string): Map<object, State> => {
    const all = words.get(instruments) ?? new Map<string, Map<object, State>>()
    words.set(instruments, all)
    const known = all.get(provider) ?? new Map<object, State>()
    all.set(provider, known)
    return known
  }
  /** As long as it has begun. */
  let own: object | undefined

  const say = (provider: string, to: State): void => {
    circuitState(states[to], provider)
    if (own === undefined) return
    const known = wordsOn(provider)
    known.delete(own)
    known.set(own, to)
  }

  const begin = (provider: string): void => {
    const known = wordsOn(provider)
    if (known.size === 0) say(provider, "closed")
    else if (own !== undefined && !known.has(own)) known.set(own, "closed")
  }

  const end = (provider: string): void => {
    const known = wordsOn(provider)
    if (own !== undefined) known.delete(own)
    const last = [...known.values()].at(-1)
    if (last !== undefined) circuitState(states[last], provider)
  }

  const changed = (provider: string, to: State): void => {
    circuitTransitions(1, provider, to)
    say(provider, to)
  }

  return {
    show: (event) => {
      switch (event._tag) {
        case "AttemptStarted":
          if (!circuitState.has(event.provider)) say(event.provider, "closed")
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
    },
    begin: (providers) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          own = {}
          providers.forEach(begin)
        }),
        () =>
          Effect.sync(() => {
            providers.forEach(end)
            own = undefined
          })
      )
  }
}

const words = new WeakMap<Instruments, Map<string, Map<object, State>>>()
