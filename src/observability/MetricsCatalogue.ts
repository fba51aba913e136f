/** The metrics that there are: their names, units and labels. OpenTelemetry's names for GenAI where it has one. */

/** What a metric is. */
export interface Definition {
  readonly kind: "counter" | "gauge" | "histogram"
  readonly name: string
  /** As OpenTelemetry writes it (UCUM). */
  readonly unit: string
  readonly description: string
  /** In the order in which values are recorded. */
  readonly labels: ReadonlyArray<string>
  /** Upper ends of a histogram's buckets. */
  readonly boundaries?: ReadonlyArray<number>
}

const powers = (start: number, factor: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => Number((start * factor ** index).toFixed(2)))

/** OpenTelemetry's buckets for `gen_ai.client.operation.duration`, in seconds. */
const durations = powers(0.01, 2, 14)
const tokens = powers(1, 4, 14)
/** OpenTelemetry's buckets for the time to the first token, in seconds. */
const firstTokens = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

const genAi = ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"]

/**
 * OpenTelemetry's name; a number there, a text here, as all labels of Effect are. Of an error within a 200 it is the status
 * that the error names or stands for.
 */
const status = "http.response.status_code"

const counter = (name: string, unit: string, labels: ReadonlyArray<string>, description: string): Definition => ({
  kind: "counter",
  name,
  unit,
  labels,
  description
})

/** All metrics by what they count. */
export const catalogue = {
  operationDuration: {
    kind: "histogram",
    name: "gen_ai.client.operation.duration",
    unit: "s",
    labels: [...genAi, "error.type", status],
    boundaries: durations,
    description: "How long attempts took that a provider answered or failed."
  },
  tokenUsage: {
    kind: "histogram",
    name: "gen_ai.client.token.usage",
    unit: "{token}",
    labels: [...genAi, "gen_ai.token.type"],
    boundaries: tokens,
    description: "Tokens of attempts, as the provider counts them."
  },
  calls: counter("llmfuse.calls", "{call}", ["operation", "outcome", "error.type"], "Calls that have ended."),
  callDuration: {
    kind: "histogram",
    name: "llmfuse.call.duration",
    unit: "s",
    labels: ["operation", "outcome", "path"],
    boundaries: durations,
    description: "How long calls took, with all attempts and waits, and who answered them."
  },
  timeToFirstToken: {
    kind: "histogram",
    name: "llmfuse.time_to_first_token",
    unit: "s",
    labels: genAi,
    boundaries: firstTokens,
    description: "How long it took until the first content of a streamed answer was there."
  },
  attempts: counter(
    "llmfuse.attempts",
    "{attempt}",
    ["provider", "outcome", "error.type", status],
    "Attempts on providers that have ended; rejected is what was not sent."
  ),
  retries: counter("llmfuse.retries", "{retry}", ["provider", "error.type"], "Further attempts on the same provider."),
  failovers: counter("llmfuse.failovers", "{failover}", ["from", "to", "error.type"], "Steps to the next provider."),
  hedges: counter("llmfuse.hedges", "{hedge}", ["from", "to"], "Providers that were asked because one was slow."),
  throttles: counter("llmfuse.throttles", "{throttle}", ["provider"], "Attempts that our own limits did not let out."),
  circuitTransitions: counter(
    "llmfuse.circuit.transitions",
    "{transition}",
    ["provider", "to"],
    "Changes of a provider's circuit."
  ),
  circuitState: {
    kind: "gauge",
    name: "llmfuse.circuit.state",
    unit: "{state}",
    labels: ["provider"],
    description: "A provider's circuit: 0 closed, 1 half-open, 2 open, 3 isolated."
  },
  rate: {
    kind: "gauge",
    name: "llmfuse.rate",
    unit: "{attempt}/min",
    labels: ["provider"],
    description: "What an adaptive limit lets out to a provider."
  },
  streamRestarts: counter(
    "llmfuse.stream.restarts",
    "{restart}",
    ["from", "to", "error.type"],
    "Streams that broke and began afresh."
  ),
  fallbacks: counter("llmfuse.fallbacks", "{fallback}", ["error.type"], "Calls in which the fallback was asked."),
  cacheHits: counter("llmfuse.cache.hits", "{hit}", ["stale"], "Answers that came from an earlier call."),
  cost: counter(
    "llmfuse.cost",
    "USD",
    ["gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "estimated"],
    "What attempts cost, in US dollars, answered or not; estimated where the answer did not come to its end."
  ),
  eventsDropped: counter("llmfuse.events.dropped", "{event}", [], "Events that a slow reader of them has missed.")
} as const satisfies Record<string, Definition>

/** The definition of each metric, by its name. */
export const byName: ReadonlyMap<string, Definition> = new Map(
  Object.values(catalogue).map((definition) => [definition.name, definition])
)
