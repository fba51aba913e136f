/** The story of a call: the attempts that it made, as they begin and end. */
import { DateTime, Duration } from "effect"
import type { Attempt, AttemptOutcome, CandidateError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import type { Provider } from "../provider/Provider.ts"
import type { Transcript } from "./Transcript.ts"

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
  /** Notes and tells that nobody waits for it any more. */
  readonly giveUp: (begun: Begun, outcome: GivenUp) => Attempt
}

/** How an attempt ends that nobody waits for any more. */
export type GivenUp = Extract<AttemptOutcome, "hedge-lost" | "interrupted">

/** What is known of the attempts of a call. */
export interface Story {
  /** Grows as the call goes on; the response and the errors hold this very list. */
  readonly attempts: Array<Attempt>
  /** The last attempt to begin. */
  current: Begun | undefined
  /** The attempts under way, by provider; only a call that hedges has more than one. */
  readonly underWay: Map<string, Begun> | undefined
}

/** What an attempt is said to have used, and what that costs as far as it is known. */
export interface Billed {
  readonly usage: Usage
  readonly cost: number | undefined
  /** Whether both are estimated from the length of the texts. */
  readonly estimated: boolean
}

interface Ending {
  readonly nowMillis: number
  readonly outcome: AttemptOutcome
  readonly error?: CandidateError | undefined
  readonly billed?: Billed | undefined
}

/** A time in whole milliseconds: Duration keeps fractions as big integers, which are slow and unreadable. */
export const whole = (millis: number): Duration.Duration => Duration.millis(Math.max(0, Math.round(millis)))

let lastDateTime = DateTime.unsafeMake(0)

/** A moment of the wall clock. Many attempts begin in the same millisecond, and the value is the same then. */
export const dateTimeAt = (wallMillis: number): DateTime.Utc => {
  if (lastDateTime.epochMillis !== wallMillis) lastDateTime = DateTime.unsafeMake(wallMillis)
  return lastDateTime
}

/** Whether the answer of an attempt counts: if not, another provider was faster, and this one is being interrupted. */
export const wins = (begun: Begun): boolean => !begun.isOver && begun.claim?.() !== false

/** Notes how an attempt ended. What ends after it was given up adds nothing to the story. */
export const end = (story: Story, begun: Begun, { nowMillis, outcome, error, billed }: Ending): Attempt => {
  const attempt: { -readonly [K in keyof Attempt]: Attempt[K] } = {
    provider: begun.provider.name,
    number: begun.number,
    startedAt: dateTimeAt(begun.wallMillis),
    duration: whole(nowMillis - begun.millis),
    outcome
  }
  if (error !== undefined) attempt.error = error
  if (billed !== undefined) {
    attempt.usage = billed.usage
    if (billed.cost !== undefined) attempt.cost = billed.cost
    if (billed.estimated) attempt.estimated = true
  }
  const { firstContentMillis } = begun
  if (firstContentMillis !== undefined) attempt.timeToFirstToken = whole(firstContentMillis - begun.millis)
  if (begun.waitedMillis > 0) attempt.waited = whole(begun.waitedMillis)
  if (begun.isOver) return attempt
  begun.isOver = true
  story.attempts.push(attempt)
  return attempt
}

/** Notes that nothing was sent, and why. */
export const reject = (
  story: Story,
  provider: string,
  number: number,
  error: CandidateError,
  wallMillis: number
): void => {
  const startedAt = dateTimeAt(wallMillis)
  story.attempts.push({ provider, number, startedAt, duration: Duration.zero, outcome: "rejected", error })
}

/** Notes that the call has ended while attempts of it were under way. */
export const breakOff = ({ current, underWay }: Story): void => {
  for (const begun of underWay?.values() ?? (current === undefined ? [] : [current])) {
    if (!begun.isOver) begun.giveUp(begun, "interrupted")
  }
}

/** What the attempts have cost; `undefined` if that is known of none. */
export const costOf = ({ attempts }: Pick<Story, "attempts">): number | undefined => {
  let sum: number | undefined
  for (const { cost } of attempts) if (cost !== undefined) sum = (sum ?? 0) + cost
  return sum
}
