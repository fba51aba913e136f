/** Ten more faults that providers have and that the published catalogue leaves out. */
import type { FaultRequest } from "../../src/testing.ts"
import * as Conduct from "./conduct.ts"
import { type Fault, fault } from "./fault.ts"
import { realTime, type Timing } from "./timing.ts"

/** The ten, with times as told. */
export const ownFaults = (time: Timing): ReadonlyArray<Fault> => [
  fault(time, {
    id: "X01",
    title: "200, then an error event before any content",
    conduct: "the fallback answers",
    primary: { opening: "late", errorEvent: { message: "The server had an error while processing your request." } }
  }),
  fault(time, {
    id: "X02",
    title: "clean end of the stream after 40 words",
    conduct: "the whole answer, or a clear error",
    primary: { cut: { how: "end", after: { words: 40 } } }
  }),
  fault(time, {
    id: "X03",
    title: "200, finish reason `stop`, no content",
    conduct: "the fallback answers",
    primary: { text: "" }
  }),
  fault(time, {
    id: "X04",
    title: "429 `insufficient_quota`",
    conduct: "one attempt, then the fallback",
    primary: {
      status: 429,
      error: {
        type: "insufficient_quota",
        code: "insufficient_quota",
        message: "You exceeded your current quota, please check your plan and billing details."
      }
    },
    required: [Conduct.attempts(1)]
  }),
  fault(time, {
    id: "X05",
    title: "200 with a JSON error body",
    conduct: "the fallback answers",
    primary: { error: { message: "The upstream provider failed.", code: "502" } }
  }),
  fault(time, {
    id: "X06",
    title: "keep-alive comments without content for 30 s, then closed",
    conduct: "comments are not progress: bounded, and a healthy call right after it works",
    primary: {
      opening: "late",
      keepAlive: { every: time.seconds(1), count: 30 },
      cut: { how: "close", after: { words: 0 } }
    },
    followUp: true
  }),
  fault(time, {
    id: "X07",
    title: "429 with `Retry-After: 3600`",
    conduct: "the fallback answers at once; nobody waits, nobody retries early",
    primary: { status: 429, headers: { "retry-after": String(3600 * time.scale) } },
    required: [Conduct.within(time.limit(10))],
    advisory: [Conduct.attempts(1)]
  }),
  fault(time, {
    id: "X08",
    title: "529 for ever",
    conduct: "at most 6 attempts, then the fallback",
    primary: { status: 529 },
    required: [Conduct.attempts(6)]
  }),
  fault(time, {
    id: "X09",
    title: "401",
    conduct: "one attempt, then the fallback",
    primary: { status: 401 },
    required: [Conduct.attempts(1)]
  }),
  // An HTTP date has whole seconds: not compressed.
  fault(realTime, {
    id: "X10",
    title: "429 with `Retry-After` as an HTTP date 3 s ahead, once",
    conduct: "not retried before it",
    primary: ({ number }: FaultRequest) =>
      number === 1 ? { status: 429, headers: { "retry-after": httpDate(realTime.seconds(3)) } } : {},
    advisory: [Conduct.notRetriedBefore(realTime.seconds(2.8))]
  })
]

/** The first whole second that is so far ahead. */
const httpDate = (millisAhead: number): string =>
  new Date(Math.ceil((Date.now() + millisAhead) / 1000) * 1000).toUTCString()
