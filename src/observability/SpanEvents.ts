/** What happens between the attempts of a call, as events on its span. They quote nobody. */
import { type Clock, Duration, type Tracer } from "effect"
import * as Discreet from "./Discreet.ts"
import type { EventHub } from "./EventHub.ts"
import type { FuseEvent } from "./FuseEvent.ts"

/** The hub of a call that has a span. */
export interface SpanEvents {
  /** The same hub, which tells the span too. */
  readonly hub: EventHub
  /** To be called with the span when it begins. */
  readonly onStart: (span: Tracer.Span) => void
}

/** A hub for one call. Nothing is built for a span that is not sampled. */
export const make = (hub: EventHub, clock: Clock.Clock): SpanEvents => {
  let span: Tracer.Span | undefined
  return {
    hub: {
      ...hub,
      isHeard: () => hub.isHeard() || span?.sampled === true,
      tell: (event) => {
        if (hub.isHeard()) hub.tell(event)
        // Others may wait for an answer that the call no longer does.
        if (span?.sampled !== true || span.status._tag === "Ended") return
        const noted = noteOf(event)
        if (noted !== undefined) span.event(noted[0], clock.unsafeCurrentTimeNanos(), noted[1])
      }
    },
    onStart: (started) => {
      span = started
    }
  }
}

type Note = readonly [name: string, attributes: Record<string, unknown>]

/** What is no end of an attempt or the call: these have spans of their own. */
const noteOf = (event: FuseEvent): Note | undefined => {
  switch (event._tag) {
    case "AttemptRejected":
      return ["llmfuse.rejected", at(event)]
    case "Throttled":
      return ["llmfuse.rejected", { ...at(event), "llmfuse.limiter.wait_ms": Duration.toMillis(event.wait) }]
    case "RetryScheduled":
      return ["llmfuse.retry_scheduled", { ...at(event), "llmfuse.retry.delay_ms": Duration.toMillis(event.delay) }]
    case "FailedOver":
      return ["llmfuse.failed_over", { ...between(event), ...because(event) }]
    case "Hedged":
      return ["llmfuse.hedged", between(event)]
    case "StreamRestarted":
      return ["llmfuse.stream_restarted", { ...between(event), ...because(event) }]
    case "FallbackUsed":
      return ["llmfuse.fallback_used", because(event)]
    case "ServedFromCache":
      return ["llmfuse.served_from_cache", { "gen_ai.provider.name": event.provider, "llmfuse.stale": event.isStale }]
    default:
      return undefined
  }
}

const because = ({ error }: { readonly error: unknown }) => ({ "error.type": Discreet.tagOf(error) })

const between = ({ from, to }: { readonly from: string; readonly to: string }) => ({
  "llmfuse.from": from,
  "llmfuse.to": to
})

const at = (event: { readonly provider: string; readonly attempt: number; readonly error: unknown }) => ({
  "gen_ai.provider.name": event.provider,
  "llmfuse.attempt.number": event.attempt,
  ...because(event)
})
