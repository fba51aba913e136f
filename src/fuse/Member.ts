/** A provider with the stages that guard it. */
import { type ConfigError, Duration, Effect, type Scope } from "effect"
import * as Capabilities from "../model/Capabilities.ts"
import type { CandidateError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import type { EventHub } from "../observability/EventHub.ts"
import type { CircuitClosed, FuseEvent } from "../observability/FuseEvent.ts"
import * as CircuitBreaker from "../pipeline/CircuitBreaker.ts"
import type * as CircuitState from "../pipeline/CircuitState.ts"
import * as Latency from "../pipeline/Latency.ts"
import * as RetryBudget from "../pipeline/RetryBudget.ts"
import * as Watch from "../pipeline/Watch.ts"
import type { Limits, Provider } from "../provider/Provider.ts"
import * as Call from "./Call.ts"
import { reasonOf } from "./CallStream.ts"
import type { Resolved } from "./FuseOptions.ts"
import * as Health from "./Health.ts"
import * as GuardLimits from "./Limits.ts"
import { ProviderRecord } from "./ProviderRecord.ts"
import * as Timeouts from "./Timeouts.ts"
import * as Visit from "./Visit.ts"

/** A provider in the list, with its own circuit and limits. */
export interface Member extends Visit.Visits {
  readonly provider: Provider
  readonly record: ProviderRecord
  readonly health: Effect.Effect<Health.ProviderHealth>
  readonly circuitState: Effect.Effect<CircuitState.CircuitState>
  /** Takes it out by hand, and puts it back. */
  readonly isolate: Effect.Effect<void>
  readonly restore: Effect.Effect<void>
}

type Fact = Pick<CircuitClosed, "at" | "provider" | "callId">

/** What a typed failure means for the circuit: the failure table's word, with the hint that the error brings. */
const classifyFor =
  ({ failover, retry }: Resolved) =>
  (error: CandidateError): CircuitState.Outcome => {
    const hint = error.retryAfter === undefined ? undefined : Duration.toMillis(error.retryAfter)
    switch (failover.verdict(reasonOf(error)).breaker) {
      case "ignored":
        return "ignored"
      case "counts":
        return "failure"
      case "counts-or-opens":
        return hint !== undefined && hint > retry.maxDelayMillis ? { openForMillis: hint } : "failure"
      case "opens":
        return { openForMillis: hint }
    }
  }

/** Checks what a provider says about itself and gives it its stages. */
export const make = (
  provider: Provider,
  options: Resolved,
  hub: EventHub
): Effect.Effect<Member, ConfigError.ConfigError, Scope.Scope> =>
  Effect.gen(function* () {
    const { name } = provider
    const path = `providers.${name}`
    const own = yield* GuardLimits.check(provider.limits ?? {}, `${path}.limits`)
    const isSet = ([, value]: readonly [string, unknown]) => value !== undefined
    const limits: Limits = { ...options.limits, ...Object.fromEntries(Object.entries(own).filter(isSet)) }
    yield* Capabilities.check(provider.capabilities ?? {}, `${path}.capabilities`)
    if (provider.maxEmbeddingInputs !== undefined) {
      yield* OptionCheck.wholeNumber(`${path}.maxEmbeddingInputs`, provider.maxEmbeddingInputs, 1)
    }
    const guard = yield* GuardLimits.make(limits, name, `${path}.limits`, hub)
    const budget = options.budget === undefined ? undefined : yield* RetryBudget.make(options.budget)
    const record = new ProviderRecord(yield* Latency.make(), yield* Latency.make())
    const timeouts = Timeouts.over(options.timeouts, { attempt: provider.timeout })
    if (provider.timeout !== undefined) {
      yield* OptionCheck.durationMillis(`${path}.timeout`, provider.timeout, "above-zero")
    }
    const timeLimits = yield* Timeouts.resolve(timeouts, "timeouts")
    const tell = (call: Call.Call | undefined, event: (fact: Fact) => FuseEvent) =>
      Effect.sync(() => {
        if (!hub.isHeard()) return
        hub.tell(event({ at: hub.now(), provider: name, callId: call && Call.idOf(call) }))
      })
    const breaker = yield* CircuitBreaker.make<CandidateError, Call.Call>(options.breaker, {
      name,
      classify: classifyFor(options),
      onOpen: ({ about, ...opened }) => tell(about, (fact) => ({ _tag: "CircuitOpened", ...fact, ...opened })),
      onHalfOpen: (about) => tell(about, (fact) => ({ _tag: "CircuitHalfOpened", ...fact })),
      onClose: (about) => tell(about, (fact) => ({ _tag: "CircuitClosed", ...fact })),
      onIsolate: tell(undefined, (fact) => ({ _tag: "CircuitIsolated", ...fact }))
    })
    const watch = yield* Effect.acquireRelease(
      Effect.sync(() => Watch.make(timeLimits.wholeMillis)),
      ({ stop }) => stop
    )
    const visits = Visit.make({
      provider,
      options,
      guard,
      budget,
      record,
      breaker,
      timeouts,
      limits: timeLimits,
      watch
    })
    return {
      provider,
      record,
      health: Health.look(provider, breaker, guard, record),
      circuitState: breaker.state,
      isolate: breaker.isolate,
      restore: breaker.restore,
      ...visits
    }
  })
