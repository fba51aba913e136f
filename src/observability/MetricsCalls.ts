/** Counts calls, from their beginning to their end. */
import type { CallDied, CallFailed, CallInterrupted, CallSucceeded, FuseEvent, Operation } from "./FuseEvent.ts"
import * as Course from "./MetricsCourse.ts"
import type { Instruments } from "./MetricsInstrument.ts"
import * as Names from "./MetricsNames.ts"

/** So many kinds of defects have a name in labels; those beyond are called `other`. */
export const defectLimit = 20

/** What is known of calls under way. */
export interface Calls {
  /** Takes an event in. */
  readonly count: (event: FuseEvent) => void
  /** What a call under way is for; undefined where its beginning was missed. */
  readonly operationOf: (callId: string) => Operation | undefined
}

type Unanswered = CallFailed | CallInterrupted | CallDied

/** Counts into the instruments, and holds something of a call only until its end is told. */
export const make = (instruments: Instruments): Calls => {
  /** What was begun while this listens. */
  const courses = new Map<string, Course.Course>()
  const boundedDefect = Names.atMost(defectLimit)

  const callSucceeded = (event: CallSucceeded) => {
    const course = courses.get(event.callId)
    courses.delete(event.callId)
    const path = course && Course.pathOf(course, event)
    instruments.calls(1, course?.operation, "success")
    instruments.callDuration(Course.seconds(event.latency), course?.operation, "success", path)
  }

  const callEnded = (event: Unanswered, outcome: string, type?: string) => {
    const course = courses.get(event.callId)
    courses.delete(event.callId)
    instruments.calls(1, course?.operation, outcome, type)
    if (course === undefined) return
    instruments.callDuration(Course.secondsSince(course.startMillis, event), course.operation, outcome, course.path)
  }

  const wentBy = (callId: string, path: Course.Path) => {
    const course = courses.get(callId)
    if (course !== undefined) course.path = path
  }

  const asked = (callId: string, provider: string) => {
    const course = courses.get(callId)
    if (course !== undefined) course.first ??= provider
  }

  return {
    operationOf: (callId) => courses.get(callId)?.operation,
    count: (event) => {
      switch (event._tag) {
        case "CallStarted":
          return void courses.set(event.callId, Course.begin(event))
        case "AttemptStarted":
          return asked(event.callId, event.provider)
        case "Hedged":
          // The first may still be in line.
          return asked(event.callId, event.from)
        case "FailedOver":
          return wentBy(event.callId, "failover")
        case "ServedFromCache":
          return wentBy(event.callId, event.isStale ? "stale" : "cache")
        case "FallbackUsed":
          return wentBy(event.callId, "fallback")
        case "CallSucceeded":
          return callSucceeded(event)
        case "CallFailed":
          return callEnded(event, "failure", event.error._tag)
        case "CallDied":
          return callEnded(event, "defect", boundedDefect(Names.ofDefect(event.error)))
        case "CallInterrupted":
          return callEnded(event, "interrupted")
      }
    }
  }
}
