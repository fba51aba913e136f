/** The sixteen faults of Failover Bench 0.1, a public benchmark of gateways and SDKs. */
import { type FaultRequest, FaultServer } from "../../src/testing.ts"
import * as Conduct from "./conduct.ts"
import { type Fault, fault } from "./fault.ts"
import { realTime, type Timing } from "./timing.ts"

/** The sixteen, with times as told. */
export const publishedFaults = (time: Timing): ReadonlyArray<Fault> => [
  fault(time, {
    id: "S01",
    title: "429 with `Retry-After: 2` once",
    conduct: "retried on the same provider, not before 1.8 s",
    primary: [{ status: 429, headers: { "retry-after": String(2 * time.scale) } }, {}],
    required: [Conduct.attempts(2, time.seconds(1.5))],
    advisory: [Conduct.retried, Conduct.notRetriedBefore(time.seconds(1.8))]
  }),
  fault(time, {
    id: "S02",
    title: "429 for ever, no hint",
    conduct: "at most 4 attempts in 3 s, 6 in all, then the fallback",
    primary: { status: 429 },
    required: [Conduct.attempts(4, time.seconds(3)), Conduct.attempts(6)]
  }),
  fault(time, {
    id: "S03",
    title: "500 once",
    conduct: "retried on the same provider",
    primary: [{ status: 500 }, {}],
    advisory: [Conduct.retried]
  }),
  fault(time, {
    id: "S04",
    title: "503 for ever",
    conduct: "at most 6 attempts, then the fallback",
    primary: { status: 503 },
    required: [Conduct.attempts(6)]
  }),
  fault(time, {
    id: "S05",
    title: "connection reset before the headers, once",
    conduct: "answered",
    primary: [{ cut: { how: "reset" } }, {}]
  }),
  fault(time, {
    id: "S06",
    title: "accepts and never answers",
    conduct: "one attempt, then the fallback after one timeout",
    primary: { cut: { how: "stall" } },
    advisory: [Conduct.attempts(1)]
  }),
  fault(time, {
    id: "S07",
    title: "headers at once, first token after 20 s",
    conduct: "the whole answer within 15 s, from the fallback",
    primary: { opening: "late", firstTokenDelay: time.seconds(20) },
    advisory: [Conduct.within(time.limit(15)), Conduct.fellBack]
  }),
  fault(time, {
    id: "S08",
    title: "stream cut after 40 of 60 words",
    conduct: "the whole answer, or a clear error",
    primary: { cut: { how: "close", after: { words: 40 } } }
  }),
  fault(time, {
    id: "S09",
    title: "stream silent after 20 words for 30 s, then closed",
    conduct: "bounded, and a healthy call right after it works",
    primary: { cut: { how: "stall", after: { words: 20 }, closeAfter: time.seconds(30) } },
    followUp: true
  }),
  fault(time, {
    id: "S10",
    title: "the tenth event is invalid JSON",
    conduct: "nothing partial as success, and the next call works",
    primary: { malformedEvent: 10 },
    followUp: true
  }),
  // How long a client waits for a terminator after all else has come is its own affair: not compressed.
  fault(realTime, {
    id: "S11",
    title: "complete, but no `[DONE]`, and left open",
    conduct: "finished within 8 s, usage reported",
    primary: { terminator: false, holdOpen: "30 seconds" },
    advisory: [Conduct.within(realTime.limit(8)), Conduct.reportsUsage]
  }),
  fault(time, {
    id: "S12",
    title: "400 `context_length_exceeded`",
    conduct: "one attempt, then the fallback",
    primary: {
      status: 400,
      error: {
        type: "invalid_request_error",
        code: "context_length_exceeded",
        message: "This model's maximum context length is 128000 tokens. Your messages resulted in 130000 tokens."
      }
    },
    required: [Conduct.attempts(1)]
  }),
  fault(time, {
    id: "S13",
    title: "400 `content_policy_violation`",
    conduct: "one attempt, and the provider's reason reaches the caller",
    primary: {
      status: 400,
      error: {
        type: "invalid_request_error",
        code: "content_policy_violation",
        message: "Your request was rejected by our safety system: category 7."
      }
    },
    wants: "error",
    required: [Conduct.attempts(1)],
    advisory: [Conduct.errorSays(/category 7/, "the provider's reason")]
  }),
  fault(time, {
    id: "S14",
    title: "as S08, and the fallback refuses an assistant prefill",
    conduct: "a clean restart, and the 400 never hides the cause",
    primary: { cut: { how: "close", after: { words: 40 } } },
    fallback: (request) =>
      endsWithAssistant(request)
        ? { status: 400, error: { message: "This model does not support assistant message prefill." } }
        : {},
    required: [
      Conduct.errorSays(
        /^(?!.*prefill)|cut|clos|terminat|interrupt|abort|reset|broke|premature/is,
        "how the stream broke"
      )
    ]
  }),
  fault(time, {
    id: "S15",
    title: "503 for 60 s, then healthy; a call every 4 s",
    conduct: "all answered, at most 3 attempts while down, used again within 30 s",
    primary: FaultServer.phases([{ status: 503 }, { from: time.seconds(60) }]),
    calls: { count: 20, everyMillis: time.seconds(4) },
    advisory: [Conduct.attemptsBefore(time.seconds(60), 3), Conduct.usedBetween(time.seconds(60), time.seconds(90))]
  }),
  fault(time, {
    id: "S16",
    title: "503 for ever, and the fallback answers",
    conduct: "the response names the fallback's model and its usage",
    primary: { status: 503 },
    advisory: [Conduct.namesModel("fallback"), Conduct.reportsUsage]
  })
]

const endsWithAssistant = ({ body }: FaultRequest): boolean => {
  const { messages } = Object(body)
  return Array.isArray(messages) && Object(messages.at(-1)).role === "assistant"
}
