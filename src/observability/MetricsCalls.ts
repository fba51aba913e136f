/** Counts calls and their attempts, from their beginning to their end. */
import type {
  AttemptFailed,
  AttemptStarted,
  CallFailed,
  CallInterrupted,
  CallSucceeded,
  FuseEvent,
  HedgeLost
} from "./FuseEvent.ts"
import * as Course from "./MetricsCourse.ts"
import { type Instruments, other } from "./MetricsInstrument.ts"

/** So many models have a name in labels; those beyond are called `other`. */
export const modelLimit = 100

/** A listener that holds something of a call only until its end is told. */
export const make = (
  instruments: Instruments,
  modelOf: (provider: string) => string | undefined
): ((event: FuseEvent) => void) => {
  /** What was begun while this listens. */
  const courses = new Map<string, Course.Course>()
  const nameOf = modelNames()

  /** The first labels of all that is named by OpenTelemetry. */
  const genAi = (course: Course.Course | undefined, provider: string, model?: string) =>
    [course && operationName(course), provider, nameOf(modelOf(provider)), nameOf(model)] as const

  const attemptSucceeded = (
    course: Course.Course | undefined,
    { provider, startMillis }: Course.Open,
    event: FuseEvent
  ) => {
    const model = event._tag === "CallSucceeded" ? event.model : undefined
    instruments.attempts(1, provider, "success")
    if (startMillis === undefined) return
    instruments.operationDuration(Course.secondsSince(startMillis, event), ...genAi(course, provider, model))
  }

  const attemptStarted = (event: AttemptStarted) => {
    const course = courses.get(event.callId)
    const before = course && Course.opened(course, event)
    if (course !== undefined && before !== undefined) attemptSucceeded(course, before, event)
  }

  const attemptFailed = ({ callId, provider, duration, error }: AttemptFailed) => {
    const course = courses.get(callId)
    course?.open.delete(provider)
    instruments.attempts(1, provider, "failure", error._tag)
    instruments.operationDuration(Course.seconds(duration), ...genAi(course, provider), error._tag)
  }

  const hedgeLost = ({ callId, provider, attempt }: HedgeLost) => {
    if (attempt === undefined) return
    courses.get(callId)?.open.delete(provider)
    instruments.attempts(1, provider, "hedge-lost")
  }

  /** Forgets the call. What is still open then was interrupted with it. */
  const ended = ({ callId }: CallSucceeded | CallFailed | CallInterrupted, course: Course.Course | undefined) => {
    courses.delete(callId)
    for (const provider of course?.open.keys() ?? []) instruments.attempts(1, provider, "interrupted")
  }

  const callSucceeded = (event: CallSucceeded) => {
    const { provider, model, latency, usage, timeToFirstToken, cost } = event
    const course = courses.get(event.callId)
    for (const open of Course.answered(course, event)) {
      course?.open.delete(open.provider)
      attemptSucceeded(course, open, event)
    }
    ended(event, course)
    instruments.calls(1, course?.operation, "success")
    instruments.callDuration(
      Course.seconds(latency),
      course?.operation,
      "success",
      course && Course.pathOf(course, event)
    )
    if (cost !== undefined) instruments.cost(cost, provider, nameOf(model))
    if (event.attempt === 0) return
    const labels = genAi(course, provider, model)
    if (timeToFirstToken !== undefined) instruments.timeToFirstToken(Course.seconds(timeToFirstToken), ...labels)
    if (usage === undefined) return
    instruments.tokenUsage(usage.inputTokens, ...labels, "input")
    if (course?.operation !== "embed") instruments.tokenUsage(usage.outputTokens, ...labels, "output")
  }

  const callEnded = (event: CallFailed | CallInterrupted) => {
    const course = courses.get(event.callId)
    const [outcome, type] =
      event._tag === "CallFailed" ? (["failure", event.error._tag] as const) : (["interrupted", undefined] as const)
    ended(event, course)
    instruments.calls(1, course?.operation, outcome, type)
    if (course === undefined) return
    instruments.callDuration(Course.secondsSince(course.startMillis, event), course.operation, outcome, course.path)
  }

  const wentBy = (callId: string, path: Course.Path) => {
    const course = courses.get(callId)
    if (course !== undefined) course.path = path
  }

  return (event) => {
    switch (event._tag) {
      case "CallStarted":
        return void courses.set(event.callId, Course.begin(event))
      case "AttemptStarted":
        return attemptStarted(event)
      case "AttemptFailed":
        return attemptFailed(event)
      case "HedgeLost":
        return hedgeLost(event)
      case "FailedOver":
        return wentBy(event.callId, "failover")
      case "ServedFromCache":
        return wentBy(event.callId, event.isStale ? "stale" : "cache")
      case "FallbackUsed":
        return wentBy(event.callId, "fallback")
      case "CallSucceeded":
        return callSucceeded(event)
      case "CallFailed":
      case "CallInterrupted":
        return callEnded(event)
    }
  }
}

const operationName = ({ operation }: Course.Course) => (operation === "embed" ? "embeddings" : "chat")

/** Names of models for labels, as many as there may be. A model that did not say its name has none. */
const modelNames = () => {
  const known = new Set<string>()
  return (model: string | undefined): string | undefined => {
    if (model === undefined || model === "") return undefined
    if (known.has(model)) return model
    if (known.size >= modelLimit) return other
    known.add(model)
    return model
  }
}
