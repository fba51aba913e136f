/** What was seen of a system, and points of its conduct that can be told from it. */
import type { Answer } from "./system.ts"

/** How a call ended. */
export type Outcome =
  | { readonly _tag: "Answered"; readonly answer: Answer }
  /** `text` holds all that the error says, its causes included. */
  | { readonly _tag: "Failed"; readonly isError: boolean; readonly message: string; readonly text: string }
  /** It had not ended when its time was up. */
  | { readonly _tag: "Hung" }

/** A call and how it ended. */
export interface Call {
  readonly millis: number
  readonly outcome: Outcome
}

/** What was seen. */
export interface Observation {
  readonly calls: ReadonlyArray<Call>
  /** A call right after the others, when both providers were healthy. */
  readonly followUp?: Call | undefined
  /** When the requests reached each provider, in milliseconds since the start of its server; those of `followUp` apart. */
  readonly primary: ReadonlyArray<number>
  readonly fallback: ReadonlyArray<number>
}

/** A point of conduct: what is wrong, or `undefined` if nothing is. */
export type Point = (observation: Observation) => string | undefined

const inSeconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** At most so many requests to the primary, of those within some time after the first where it is given. */
export const attempts =
  (atMost: number, withinMillis = Number.POSITIVE_INFINITY): Point =>
  ({ primary }) => {
    const counted = primary.filter((at) => at - (primary[0] ?? 0) < withinMillis).length
    const time = Number.isFinite(withinMillis) ? ` in ${inSeconds(withinMillis)}` : ""
    return counted <= atMost ? undefined : `${counted} attempts on the primary${time}, at most ${atMost} wanted`
  }

/** At most so many requests to the primary before a moment. */
export const attemptsBefore =
  (millis: number, atMost: number): Point =>
  ({ primary }) => {
    const counted = primary.filter((at) => at < millis).length
    return counted <= atMost ? undefined : `${counted} attempts while the primary was down, at most ${atMost} wanted`
  }

/** A request to the primary between two moments. */
export const usedBetween =
  (fromMillis: number, toMillis: number): Point =>
  ({ primary }) =>
    primary.some((at) => at >= fromMillis && at < toMillis) ? undefined : "the primary was not used again in time"

/** The primary is asked a second time. */
export const retried: Point = ({ primary }) => (primary.length > 1 ? undefined : "not retried on the same provider")

/** The fallback is asked. */
export const fellBack: Point = ({ fallback }) => (fallback.length > 0 ? undefined : "the fallback was not asked")

/** Nothing is sent to the primary for so long after the first request. */
export const notRetriedBefore =
  (millis: number): Point =>
  ({ primary: [first, second] }) =>
    first === undefined || second === undefined || second - first >= millis
      ? undefined
      : `retried after ${inSeconds(second - first)}, not before ${inSeconds(millis)} wanted`

/** Every call ends in time, in whatever way. */
export const within =
  (millis: number): Point =>
  ({ calls }) => {
    const longest = Math.max(...calls.map((call) => call.millis))
    return longest <= millis ? undefined : `took ${inSeconds(longest)}, ${inSeconds(millis)} wanted`
  }

/** Every answer comes with a number of tokens. */
export const reportsUsage: Point = ({ calls }) =>
  calls.every(({ outcome }) => outcome._tag !== "Answered" || hasTokens(outcome.answer.usage))
    ? undefined
    : "no usage reported"

/** Every answer names the model that gave it. */
export const namesModel =
  (model: string): Point =>
  ({ calls }) => {
    const other = calls.find(({ outcome }) => outcome._tag === "Answered" && outcome.answer.model !== model)
    return other === undefined ? undefined : `the answer does not name the model ${model}`
  }

/** Every error says something. */
export const errorSays =
  (form: RegExp, what: string): Point =>
  ({ calls }) =>
    calls.every(({ outcome }) => outcome._tag !== "Failed" || form.test(outcome.text))
      ? undefined
      : `the error does not say ${what}`

const hasTokens = (usage: unknown): boolean =>
  typeof usage === "object" &&
  usage !== null &&
  Object.values(usage).some((count) => typeof count === "number" && count > 0)
