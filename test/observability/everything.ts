/** Events that touch every metric, with every label and every outcome. */
import { DateTime, Duration } from "effect"
import type { ObservedEvent } from "llmfuse"
import { outage } from "../errors.ts"

const at = DateTime.unsafeMake(0)
const duration = Duration.millis(50)
const usage = { inputTokens: 12, outputTokens: 3000 }

/** As they could come from two providers, `gemini` being the second. */
export const everything = (provider: string): ReadonlyArray<ObservedEvent> => {
  const error = outage(provider, 1)[0] as never
  const succeeded = {
    _tag: "CallSucceeded",
    at,
    attempt: 1,
    model: "flash",
    latency: duration,
    usage,
    timeToFirstToken: Duration.millis(30),
    cost: 0.002
  } as const
  const began = (callId: string) =>
    [
      { _tag: "CallStarted", at, callId, operation: "complete", tag: undefined },
      { _tag: "AttemptStarted", at, callId, provider, attempt: 1, waited: Duration.zero }
    ] as const
  const call = { at, callId: "b" }
  return [
    ...began("a"),
    { ...succeeded, callId: "a", provider },
    ...began("b"),
    { _tag: "AttemptFailed", ...call, provider, attempt: 1, duration, error },
    { _tag: "RetryScheduled", ...call, provider, attempt: 1, delay: duration, error },
    { _tag: "Throttled", ...call, provider, error, wait: duration },
    { _tag: "FailedOver", ...call, from: provider, to: "gemini", error },
    { _tag: "StreamRestarted", ...call, from: provider, to: "gemini", error },
    { _tag: "CallFailed", ...call, error },
    ...began("c"),
    { _tag: "Hedged", ...call, callId: "c", from: provider, to: "gemini" },
    { _tag: "HedgeLost", ...call, callId: "c", provider, attempt: 1 },
    { ...succeeded, callId: "c", provider: "gemini" },
    ...began("d"),
    { _tag: "FallbackUsed", ...call, callId: "d", error },
    { _tag: "CallInterrupted", ...call, callId: "d" },
    ...[true, false].flatMap((isStale, index) => {
      const callId = `e${index}`
      return [
        ...began(callId),
        { _tag: "ServedFromCache", at, callId, provider, ageMillis: 1, isStale } as const,
        { ...succeeded, callId, provider, attempt: 0 }
      ]
    }),
    ...began("f"),
    { _tag: "FailedOver", ...call, callId: "f", from: provider, to: "gemini", error },
    { ...succeeded, callId: "f", provider: "gemini" },
    { _tag: "RateLowered", ...call, provider, from: undefined, to: 30 },
    { _tag: "CircuitClosed", ...call, provider },
    { _tag: "EventsDropped", count: 3 }
  ]
}
