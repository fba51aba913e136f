/** Judges what was seen of a system before a fault. Pure: it can be tried without a server. */
import type { Call, Observation, Point } from "./conduct.ts"
import type { Fault } from "./fault.ts"

/**
 * `pass`: the whole answer came (or the error that is wanted), and the conduct was right. `partial`: it came, but an
 * advisory point failed. `safe`: a bounded, clean error. `fail`: a hang, a cut or doubled answer that was presented as
 * success, or a required point broken.
 */
export type Verdict = "pass" | "partial" | "safe" | "fail"

/** A verdict with its reasons; none for a pass. */
export interface Judgement {
  readonly verdict: Verdict
  readonly reasons: ReadonlyArray<string>
}

/** Judges an observation. `wholeText` is what a complete answer is, to the letter. */
export const judge = (fault: Fault, observation: Observation, wholeText: string): Judgement => {
  const wrong = [
    ...observation.calls.flatMap((call) => wrongOf(call, wholeText)),
    ...broken(fault.required, observation),
    ...followUpWrong(observation.followUp, wholeText)
  ]
  if (wrong.length > 0) return { verdict: "fail", reasons: unique(wrong) }

  const errors = observation.calls.flatMap(({ outcome }) => (outcome._tag === "Failed" ? [outcome.message] : []))
  const advised = broken(fault.advisory, observation)
  if (fault.wants === "error") {
    if (errors.length === 0) return { verdict: "partial", reasons: ["it was answered; the error was wanted"] }
    return advised.length === 0 ? { verdict: "pass", reasons: [] } : { verdict: "safe", reasons: advised }
  }
  if (errors.length > 0) return { verdict: "safe", reasons: unique(errors) }
  return advised.length === 0 ? { verdict: "pass", reasons: [] } : { verdict: "partial", reasons: advised }
}

const unique = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(texts)]

const broken = (points: ReadonlyArray<Point>, observation: Observation): ReadonlyArray<string> =>
  points.map((point) => point(observation)).filter((reason) => reason !== undefined)

/** What is wrong with how a call ended, whatever the fault. */
const wrongOf = ({ outcome, millis }: Call, wholeText: string): ReadonlyArray<string> => {
  switch (outcome._tag) {
    case "Hung":
      return [`no end within ${(millis / 1000).toFixed(1)} s`]
    case "Failed":
      return outcome.isError && outcome.message !== "" ? [] : ["it rejected with what is no error"]
    case "Answered":
      return outcome.answer.text === wholeText
        ? []
        : [`presented as success: ${described(outcome.answer.text, wholeText)}`]
  }
}

const described = (text: string, wholeText: string): string => {
  if (text === "") return "an empty answer"
  const words = text.split(/\s+/).length
  if (text.length < wholeText.length && wholeText.startsWith(text)) return `a cut answer of ${words} words`
  if (text.length > wholeText.length && text.includes(wholeText)) return `a doubled answer of ${words} words`
  return `another answer, of ${words} words`
}

const followUpWrong = (followUp: Call | undefined, wholeText: string): ReadonlyArray<string> => {
  if (followUp === undefined) return []
  const { outcome } = followUp
  if (outcome._tag === "Failed") return [`the healthy call after it failed: ${outcome.message}`]
  return wrongOf(followUp, wholeText).map((reason) => `the healthy call after it: ${reason}`)
}
