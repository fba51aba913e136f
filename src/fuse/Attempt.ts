/** One request to a provider: in one piece or as a stream, within its limits. */
import { Duration, Effect, Exit, Stream } from "effect"
import type { ChatEvent } from "../model/ChatEvent.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { ProviderError } from "../model/LlmError.ts"
import { attemptTimeout, endedBy } from "../pipeline/AttemptTimeout.ts"
import * as StreamTimers from "../pipeline/StreamTimers.ts"
import type * as Watch from "../pipeline/Watch.ts"
import type { Provider } from "../provider/Provider.ts"
import type { Call } from "./Call.ts"
import * as CallStream from "./CallStream.ts"
import * as Timeouts from "./Timeouts.ts"
import { Transcript } from "./Transcript.ts"

/** How long an attempt may take. */
export interface Time {
  readonly limits: Timeouts.Limits
  /** The share of the deadline, in milliseconds; infinite where it does not matter. */
  readonly shareMillis: number
}

/** A streamed attempt that is closed has this long to clean up before the next one begins. */
const cleanUp = "1 second"

/**
 * The answer in one piece. `watch` is the provider's shared timer over `watchMillis`, which most attempts can use.
 * What is there already needs no timer.
 */
export const inOnePiece = (
  provider: Provider,
  { request, clock }: Call,
  { limits, shareMillis }: Time,
  watch: Watch.Watch,
  watchMillis: number
): Effect.Effect<ProviderAnswer | string, ProviderError> => {
  const millis = Math.min(limits.wholeMillis, shareMillis)
  const timedOut = () => Timeouts.timedOut(provider.name, "attempt", millis, limits.wholeMillis)
  if (millis !== watchMillis) return attemptTimeout(Duration.millis(millis), timedOut)(provider.complete(request))
  const start = (expire: (error: ProviderError) => void) => watch.start(clock, () => expire(timedOut()))
  if (provider.completeWithin !== undefined) return provider.completeWithin(request, { start })
  const answer = provider.complete(request)
  return Exit.isExit(answer) ? answer : endedBy(() => start)(answer)
}

/** A streamed answer as it comes, and where it stands. */
export interface Reading {
  readonly transcript: Transcript
  /** Whether the caller has been handed some of it. */
  isCommitted: boolean
}

/** A reading that begins. */
export const newReading = (): Reading => ({ transcript: new Transcript(), isCommitted: false })

/**
 * Reads the provider's stream to its end, and hands out what comes where somebody reads along. The attempt has a scope
 * of its own, which is closed before this ends.
 */
export const streamed = (
  provider: Provider,
  call: Call,
  { limits, shareMillis }: Time,
  reading: Reading
): Effect.Effect<void, ProviderError> =>
  Effect.suspend(() => {
    const allowed = Timeouts.shorten(limits.stream, shareMillis, call.stream?.recovery === "restart")
    const timers = StreamTimers.make(allowed, call.clock)
    const read = Effect.flatMap(openStream(provider, call), (parts) => {
      timers.opened()
      return Stream.runForEachChunk(parts, (chunk) => {
        const deltas = reading.transcript.take(chunk)
        if (deltas.length === 0) return Effect.void
        timers.content()
        return call.stream === undefined
          ? Effect.void
          : handOut(call.stream, withStart(call.stream, provider, reading, deltas), timers)
      })
    })
    return endedBy<ProviderError>(
      (runtime) => (expire) =>
        timers.limit(runtime)((phase) => {
          const of = `${phase}Millis` as const
          expire(Timeouts.timedOut(provider.name, phase, allowed[of], limits.stream[of]))
        }),
      cleanUp
    )(Effect.scoped(read))
  })

const openStream = (provider: Provider, { request }: Call) => {
  const opening = provider.stream?.(request) ?? Stream.empty
  return Effect.isEffect(opening) ? opening : Effect.succeed(opening)
}

/** Events with what stands before the first ones of an attempt. */
export const withStart = (
  stream: CallStream.CallStream,
  { name, model }: Provider,
  reading: Reading,
  events: ReadonlyArray<ChatEvent>
): ReadonlyArray<ChatEvent> => {
  if (reading.isCommitted) return events
  reading.isCommitted = true
  return [...CallStream.commit(stream, name, model), ...events]
}

/** Takes events to the caller. The time in which there is no room is the caller's own. */
export const handOut = (
  { outlet }: CallStream.CallStream,
  events: ReadonlyArray<ChatEvent>,
  timers?: StreamTimers.StreamTimers
): Effect.Effect<void> => {
  if (events.length === 0 || outlet.offerNow(events)) return Effect.void
  timers?.pause()
  return Effect.map(outlet.offer(events), () => timers?.resume())
}
