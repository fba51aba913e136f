/** Counts how attempts end, and what they used and cost: every end is told by one event. */
import type { CandidateError } from "../model/LlmError.ts"
import type {
  AttemptFailed,
  AttemptInterrupted,
  AttemptRejected,
  AttemptSucceeded,
  FuseEvent,
  HedgeLost,
  Operation,
  Throttled
} from "./FuseEvent.ts"
import { seconds } from "./MetricsCourse.ts"
import type { Instruments } from "./MetricsInstrument.ts"
import * as Names from "./MetricsNames.ts"

/** So many models have a name in labels; those beyond are called `other`. */
export const modelLimit = 100

/** The end of an attempt that was sent. */
type Ended = AttemptSucceeded | AttemptFailed | AttemptInterrupted | HedgeLost

/** A listener. `operationOf` knows what a call under way is for, if its beginning was told. */
export const make = (
  instruments: Instruments,
  modelOf: (provider: string) => string | undefined,
  operationOf: (callId: string) => Operation | undefined
): ((event: FuseEvent) => void) => {
  const bounded = Names.atMost(modelLimit)
  /** A model that did not say its name has none. */
  const nameOf = (model: string | undefined) => (model === undefined || model === "" ? undefined : bounded(model))

  /** The models' labels: the one that was asked for, and the one that answered, which only an answer tells. */
  const modelsOf = (event: Ended) =>
    [nameOf(modelOf(event.provider)), event._tag === "AttemptSucceeded" ? nameOf(event.model) : undefined] as const

  /** The first labels of all that is named by OpenTelemetry. */
  const genAi = (event: Ended, operation: Operation | undefined) =>
    [operation && (operation === "embed" ? "embeddings" : "chat"), event.provider, ...modelsOf(event)] as const

  const spent = (event: Ended) => {
    if (event.cost === undefined) return
    instruments.cost(event.cost, event.provider, ...modelsOf(event), String(event.isEstimated === true))
  }

  const answered = (event: AttemptSucceeded | AttemptFailed, error?: CandidateError) => {
    const { callId, duration, usage, isEstimated } = event
    const operation = operationOf(callId)
    const labels = genAi(event, operation)
    instruments.operationDuration(seconds(duration), ...labels, error?._tag, error && statusOf(error))
    if (event._tag === "AttemptSucceeded" && event.timeToFirstToken !== undefined) {
      instruments.timeToFirstToken(seconds(event.timeToFirstToken), ...labels)
    }
    if (usage === undefined || isEstimated) return
    instruments.tokenUsage(usage.inputTokens, ...labels, "input")
    if (operation !== "embed") instruments.tokenUsage(usage.outputTokens, ...labels, "output")
  }

  const rejected = ({ provider, error }: AttemptRejected | Throttled) =>
    instruments.attempts(1, provider, "rejected", error._tag)

  return (event) => {
    switch (event._tag) {
      case "AttemptSucceeded":
        instruments.attempts(1, event.provider, "success")
        answered(event)
        return spent(event)
      case "AttemptFailed":
        instruments.attempts(1, event.provider, "failure", event.error._tag, statusOf(event.error))
        answered(event, event.error)
        return spent(event)
      case "AttemptInterrupted":
        instruments.attempts(1, event.provider, "interrupted")
        return spent(event)
      case "HedgeLost":
        if (event.attempt === undefined) return
        instruments.attempts(1, event.provider, "hedge-lost")
        return spent(event)
      case "AttemptRejected":
      case "Throttled":
        return rejected(event)
    }
  }
}

/** The HTTP status of an error, where it is one: 500 values at most, and a provider sends a few of them. */
const statusOf = ({ statusCode }: CandidateError): string | undefined =>
  statusCode !== undefined && Number.isInteger(statusCode) && statusCode >= 100 && statusCode <= 599
    ? String(statusCode)
    : undefined
