/** Events that touch every metric, with every label and every outcome. */
import { DateTime, Duration } from "effect"
import { CircuitOpenError, type ObservedEvent } from "llmfuse"
import { outage, rateLimited } from "../errors.ts"

const at = DateTime.unsafeMake(0)
const duration = Duration.millis(50)
const usage = { inputTokens: 12, outputTokens: 3000 }

/** As they could come from two providers, `gemini` being the second. */
export const everything = (provider: string): ReadonlyArray<ObservedEvent> => {
  const error = outage(provider, 1)[0] as never
  const limited = rateLimited(provider, "1 second") as never
  const timeToFirstToken = Duration.millis(30)
  const succeeded = {
    _tag: "CallSucceeded",
    at,
    attempt: 1,
    model: "flash",
    latency: duration,
    usage,
    timeToFirstToken,
    cost: 0.002
  } as const
  const end = { at, attempt: 1, duration, usage, cost: 0.002, isEstimated: false } as const
  const answer = { _tag: "AttemptSucceeded", ...end, model: "flash", timeToFirstToken } as const
  const cut = { ...end, provider, isEstimated: true } as const
  const began = (callId: string) =>
    [
      { _tag: "CallStarted", at, callId, operation: "complete", tag: undefined },
      { _tag: "AttemptStarted", at, callId, provider, attempt: 1, waited: Duration.zero }
    ] as const
  const call = { at, callId: "b" }
  return [
    ...began("a"),
    { ...answer, callId: "a", provider },
    { ...succeeded, callId: "a", provider },
    ...began("b"),
    { _tag: "AttemptFailed", ...end, ...call, provider, error },
    { _tag: "RetryScheduled", ...call, provider, attempt: 1, delay: duration, error },
    { _tag: "AttemptStarted", ...call, provider, attempt: 2, waited: duration },
    { _tag: "AttemptFailed", ...end, ...call, provider, attempt: 2, error: limited },
    { _tag: "Throttled", ...call, provider, attempt: 2, error, wait: duration },
    { _tag: "FailedOver", ...call, from: provider, to: "gemini", error },
    { _tag: "StreamRestarted", ...call, from: provider, to: "gemini", error },
    { _tag: "CallFailed", ...call, error, cost: 0.004 },
    ...began("c"),
    { _tag: "Hedged", ...call, callId: "c", from: provider, to: "gemini" },
    { ...answer, callId: "c", provider: "gemini" },
    { _tag: "HedgeLost", ...cut, callId: "c" },
    { ...succeeded, callId: "c", provider: "gemini", cost: 0.004 },
    ...began("d"),
    { _tag: "FallbackUsed", ...call, callId: "d", error },
    { _tag: "AttemptInterrupted", ...cut, callId: "d" },
    { _tag: "CallInterrupted", ...call, callId: "d", cost: 0.002 },
    ...[true, false].flatMap((isStale, index) => {
      const callId = `e${index}`
      return [
        ...began(callId),
        { _tag: "ServedFromCache", at, callId, provider, ageMillis: 1, isStale } as const,
        { ...succeeded, callId, provider, attempt: 0 }
      ]
    }),
    ...began("f"),
    { _tag: "AttemptRejected", ...call, callId: "f", provider, attempt: 0, error: new CircuitOpenError({ provider }) },
    { _tag: "FailedOver", ...call, callId: "f", from: provider, to: "gemini", error },
    { ...answer, callId: "f", provider: "gemini" },
    { ...succeeded, callId: "f", provider: "gemini" },
    ...began("g"),
    { _tag: "CallDied", ...call, callId: "g", error: new TypeError("no function"), cost: 0.002 },
    { _tag: "RateLowered", ...call, provider, from: undefined, to: 30 },
    { _tag: "CircuitClosed", ...call, provider },
    { _tag: "EventsDropped", count: 3 }
  ]
}
