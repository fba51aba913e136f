/** One request to a provider: in one piece or as a stream, within its limits. */
import { type Clock, Duration, Effect, Exit, Stream } from "effect"
import type { ChatEvent } from "../model/ChatEvent.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { ProviderError } from "../model/LlmError.ts"
import { after, endedBy, type StartLimit } from "../pipeline/AttemptTimeout.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import * as StreamTimers from "../pipeline/StreamTimers.ts"
import type { Provider } from "../provider/Provider.ts"
import { type Begun, type Call, factsOf } from "./Call.ts"
import * as CallStream from "./CallStream.ts"
import type { ProviderRecord } from "./ProviderRecord.ts"
import type { AttemptTime, Stages } from "./Stages.ts"
import { wins } from "./Story.ts"
import * as Timeouts from "./Timeouts.ts"
import { Transcript } from "./Transcript.ts"

/** A streamed attempt that is closed has this long to clean up before the next one begins. */
const cleanUp = "1 second"

/** The answer in one piece. */
export const inOnePiece = (
  stages: Stages,
  request: ChatRequest,
  { clock }: Call,
  time: AttemptTime
): Effect.Effect<ProviderAnswer | string, ProviderError> => {
  const { provider } = stages
  return provider.completeWithin === undefined || millisOf(time) !== stages.limits.wholeMillis
    ? withinTime(stages, provider.complete(request), clock, time)
    : provider.completeWithin(request, { start: inFlight(stages.record, onWatch(stages, clock, time)) })
}

/** Bounds what is not streamed. What is there already needs no timer. */
export const withinTime = <A>(
  stages: Stages,
  answer: Effect.Effect<A, ProviderError>,
  clock: Clock.Clock,
  time: AttemptTime
): Effect.Effect<A, ProviderError> => {
  if (Exit.isExit(answer)) return answer
  const held = time.hold === undefined ? answer : time.hold(answer)
  const { provider, limits, record } = stages
  const millis = millisOf(time)
  return endedBy<ProviderError>((runtime) =>
    inFlight(
      record,
      millis === limits.wholeMillis
        ? onWatch(stages, clock, time)
        : after<ProviderError>(Duration.millis(millis), () => timeoutOf(provider.name, time))(runtime)
    )
  )(held)
}

/** The provider's shared timer, which most attempts can use. */
const onWatch =
  ({ provider, watch }: Stages, clock: Clock.Clock, time: AttemptTime): StartLimit<ProviderError> =>
  (expire) =>
    watch.start(clock, () => expire(timeoutOf(provider.name, time)))

/** Counts an attempt as in flight from the start of its limit to its end or expiry. */
const inFlight =
  (record: ProviderRecord, start: StartLimit<ProviderError>): StartLimit<ProviderError> =>
  (expire) => {
    let isOver = false
    const over = () => {
      if (!isOver) record.inFlight -= 1
      isOver = true
    }
    record.inFlight += 1
    const stop = start((error) => {
      over()
      expire(error)
    })
    return () => {
      over()
      stop()
    }
  }

const millisOf = ({ limits, shareMillis }: AttemptTime): number => Math.min(limits.wholeMillis, shareMillis)

const timeoutOf = (name: string, time: AttemptTime) =>
  Timeouts.timedOut(name, "attempt", millisOf(time), time.limits.wholeMillis)

/** A streamed answer as it comes, and where it stands. */
export interface Reading {
  readonly transcript: Transcript
  readonly begun: Begun
  /** Whether the caller has been handed some of it. */
  isCommitted: boolean
}

/** A reading that begins. */
export const newReading = (begun: Begun): Reading => {
  const transcript = new Transcript()
  begun.transcript = transcript
  return { transcript, begun, isCommitted: false }
}

/**
 * Reads the provider's stream to its end, and hands out what comes where somebody reads along. The attempt has a scope
 * of its own, which is closed before this ends.
 */
export const streamed = (
  { provider, record }: Stages,
  request: ChatRequest,
  call: Call,
  { limits, shareMillis, hold = (attempt) => attempt }: AttemptTime,
  reading: Reading
): Effect.Effect<void, ProviderError> =>
  Effect.suspend(() => {
    const allowed = Timeouts.shorten(limits.stream, shareMillis, call.stream?.recovery === "restart")
    const timers = StreamTimers.make(allowed, call.clock)
    const read = Effect.flatMap(openStream(provider, request), (parts) => {
      timers.opened()
      return Stream.runForEachChunk(parts, (chunk) => {
        const deltas = reading.transcript.take(chunk)
        if (deltas.length === 0) return Effect.void
        timers.content()
        reading.begun.firstContentMillis ??= Monotonic.unsafeMillis(call.clock)
        if (call.stream === undefined) return Effect.void
        // Another provider was faster: this one is being interrupted, and must not be heard.
        if (!reading.isCommitted && !wins(reading.begun)) return Effect.interrupt
        return handOut(call.stream, withStart(call, call.stream, provider, reading, deltas), timers)
      })
    })
    return endedBy<ProviderError>(
      (runtime) =>
        inFlight(record, (expire) =>
          timers.limit(runtime)((phase) => {
            const of = `${phase}Millis` as const
            expire(Timeouts.timedOut(provider.name, phase, allowed[of], limits.stream[of]))
          })
        ),
      cleanUp
    )(hold(Effect.scoped(read)))
  })

const openStream = (provider: Provider, request: ChatRequest) => {
  const opening = provider.stream?.(request) ?? Stream.empty
  return Effect.isEffect(opening) ? opening : Effect.succeed(opening)
}

/** Events with what stands before the first ones of an attempt. */
export const withStart = (
  call: Call,
  stream: CallStream.CallStream,
  { name, model }: Provider,
  reading: Reading,
  events: ReadonlyArray<ChatEvent>
): ReadonlyArray<ChatEvent> => {
  if (reading.isCommitted) return events
  reading.isCommitted = true
  return [...commit(call, stream, name, model), ...events]
}

/** What stands before the first content of an answer; tells of what becomes void by it. */
export const commit = (
  call: Call,
  stream: CallStream.CallStream,
  to: string,
  model: string | undefined
): ReadonlyArray<ChatEvent> => {
  const { broken } = stream
  if (broken !== undefined && call.hub.isHeard()) {
    const { provider: from, error } = broken
    call.hub.tell({ _tag: "StreamRestarted", ...factsOf(call), from, to, error })
  }
  return CallStream.commit(stream, to, model)
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
