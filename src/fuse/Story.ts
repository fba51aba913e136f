/** The story of a call: the attempts that it made, as they begin and end. */
import { Duration } from "effect"
import type { Attempt, AttemptOutcome, CandidateError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import { type Begun, type Call, dateTimeAt, whole } from "./Call.ts"

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

/** Whether the answer of an attempt counts: if not, another provider was faster, and this one is being interrupted. */
export const wins = (begun: Begun): boolean => !begun.isOver && begun.claim?.() !== false

/** Notes how an attempt ended. What ends after it was given up adds nothing to the story. */
export const end = (call: Call, begun: Begun, { nowMillis, outcome, error, billed }: Ending): Attempt => {
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
  call.attempts.push(attempt)
  return attempt
}

/** Notes that nothing was sent, and why. */
export const reject = (
  call: Call,
  provider: string,
  number: number,
  error: CandidateError,
  wallMillis: number
): void => {
  const startedAt = dateTimeAt(wallMillis)
  call.attempts.push({ provider, number, startedAt, duration: Duration.zero, outcome: "rejected", error })
}

/** Notes that the call has ended while attempts of it were under way. */
export const breakOff = (call: Call): void => {
  const { current, underWay } = call
  for (const begun of underWay?.values() ?? (current === undefined ? [] : [current])) {
    if (!begun.isOver) begun.giveUp(call, begun, "interrupted")
  }
}

/** How many attempts a provider has had in the call. */
export const countOf = ({ attempts }: Pick<Call, "attempts">, name: string): number =>
  attempts.length === 0 ? 0 : (attempts.findLast(({ provider }) => provider === name)?.number ?? 0)

/** What the attempts have cost; `undefined` if that is known of none. */
export const costOf = ({ attempts }: { readonly attempts: ReadonlyArray<Attempt> }): number | undefined => {
  let sum: number | undefined
  for (const { cost } of attempts) if (cost !== undefined) sum = (sum ?? 0) + cost
  return sum
}
