/** A call and an attempt of it, while they are under way. */
import { type Clock, DateTime, Duration } from "effect"
import type { Attempt, AttemptOutcome } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import type { EventHub } from "../observability/EventHub.ts"
import type { Operation } from "../observability/FuseEvent.ts"
import type { Deadline } from "../pipeline/Deadline.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import type { RetryPolicy } from "../pipeline/RetryPolicy.ts"
import type { Provider } from "../provider/Provider.ts"
import type { CallStream } from "./CallStream.ts"
import type { HedgeRule } from "./HedgeRule.ts"
import type { Timeouts } from "./Timeouts.ts"
import type { Transcript } from "./Transcript.ts"

/** A call under way. */
export interface Call {
  readonly hub: EventHub
  readonly operation: Operation
  /** Whether a tracer is there, and spans are made. */
  readonly isTraced: boolean
  /** Made when somebody asks for it. */
  id: string | undefined
  readonly clock: Clock.Clock
  /** Monotonic time. */
  readonly startMillis: number
  /** Whether nothing is looked up or waited for before its first attempt. */
  readonly asksAtOnce: boolean
  readonly deadline: Deadline | undefined
  /** The call's own limits for its attempts. */
  readonly timeouts: Timeouts | undefined
  /** The call's own way to retry. */
  readonly retry: RetryPolicy | undefined
  readonly hedge: HedgeRule | undefined
  /** Whether the call has options of its own that decide how it is answered. */
  readonly isOfItsOwn: boolean
  readonly tag: string | undefined
  /** In US dollars. */
  readonly maxCost: number | undefined
  /** The caller's side, where the answer is handed out as it comes. */
  readonly stream: CallStream | undefined
  /** Grows as the call goes on; the response and the errors hold this very list. */
  readonly attempts: Array<Attempt>
  /** The last attempt to begin. */
  current: Begun | undefined
  /** Whether its end has been told. */
  isOver: boolean
  /** Whether providers are asked in its name for others too, who go on waiting when its own caller leaves. */
  isShared: boolean
  /** Tells its end when they have their answer, if its own caller has left. */
  onShared: (() => void) | undefined
  /** The attempts under way, by provider; only a call that hedges has more than one. */
  readonly underWay: Map<string, Begun> | undefined
}

/** An attempt under way. */
export interface Begun {
  readonly provider: Provider
  readonly number: number
  readonly wallMillis: number
  /** Monotonic time. */
  readonly millis: number
  readonly waitedMillis: number
  /** When the first content of a streamed answer came; monotonic time. */
  firstContentMillis: number | undefined
  /** What has come of a streamed answer. */
  transcript: Transcript | undefined
  /** Whether its end is in the story. */
  isOver: boolean
  /** Wins the race that it is in, if it is in one; `false`: another has won. */
  readonly claim: (() => boolean) | undefined
  /** What it will use at least. */
  expected: () => Usage
  /** Notes and tells that nobody waits for it any more. */
  readonly giveUp: (call: Call, begun: Begun, outcome: GivenUp) => void
}

/** How an attempt ends that nobody waits for any more. */
export type GivenUp = Extract<AttemptOutcome, "hedge-lost" | "interrupted">

/** A time in whole milliseconds: Duration keeps fractions as big integers, which are slow and unreadable. */
export const whole = (millis: number): Duration.Duration => Duration.millis(Math.max(0, Math.round(millis)))

let lastDateTime = DateTime.unsafeMake(0)

/** A moment of the wall clock. Many attempts begin in the same millisecond, and the value is the same then. */
export const dateTimeAt = (wallMillis: number): DateTime.Utc => {
  if (lastDateTime.epochMillis !== wallMillis) lastDateTime = DateTime.unsafeMake(wallMillis)
  return lastDateTime
}

/** The id of the call. */
export const idOf = (call: Call): string => {
  call.id ??= call.hub.nextId()
  return call.id
}

/** What every event of the call tells. */
export const factsOf = (call: Call): { readonly at: DateTime.Utc; readonly callId: string } => ({
  at: wallTimeOf(call),
  callId: idOf(call)
})

/** The wall time by the clock of the call. */
export const wallTimeOf = (call: Call): DateTime.Utc => dateTimeAt(call.clock.unsafeCurrentTimeMillis())

/** Notes that an attempt begins. The first one, if nothing stood before it, begins with the call. */
export const begin = (
  call: Call,
  provider: Provider,
  number: number,
  waitedMillis: number,
  claim: Begun["claim"],
  expected: Begun["expected"],
  giveUp: Begun["giveUp"]
): Begun => {
  const begun: Begun = {
    provider,
    number,
    wallMillis: call.clock.unsafeCurrentTimeMillis(),
    millis: isFirst(call, number, waitedMillis) ? call.startMillis : nowOf(call),
    waitedMillis,
    firstContentMillis: undefined,
    transcript: undefined,
    isOver: false,
    claim,
    expected,
    giveUp
  }
  call.current = begun
  call.underWay?.set(provider.name, begun)
  return begun
}

const isFirst = (call: Call, number: number, waitedMillis: number): boolean =>
  call.asksAtOnce && number === 1 && waitedMillis === 0 && call.attempts.length === 0 && call.hedge === undefined

/** The monotonic time by the clock of the call. */
export const nowOf = (call: Call): number => Monotonic.unsafeMillis(call.clock)

/** Whether the call has any time left. */
export const hasTime = (call: Call): boolean => call.deadline === undefined || nowOf(call) < call.deadline.atMillis
