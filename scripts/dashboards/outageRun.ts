/** An outage of the first of two providers in virtual time, and what the metrics say of it. */
import { Clock, Effect, Fiber, Metric, MetricState, Random } from "effect"
import { LlmFuse, OverloadedError, type Provider } from "../../src/index.ts"
import { catalogue, type Definition } from "../../src/observability/MetricsCatalogue.ts"
import { SteppedClock } from "../../test/steppedClock.ts"

/** What the panels show at one moment. */
export interface Point {
  readonly second: number
  /** Per second, over the last ten. */
  readonly rates: { readonly primary: number; readonly secondary: number; readonly failed: number }
  /** Of the primary: 0 closed, 1 half-open, 2 open. */
  readonly circuit: number
  /** Seconds, over the last thirty. */
  readonly latency: { readonly p50: number; readonly p95: number; readonly p99: number }
}

/** An outage, second by second. */
export interface Outage {
  readonly primary: string
  readonly secondary: string
  readonly from: number
  readonly to: number
  readonly points: ReadonlyArray<Point>
  /** Calls that failed, or that a bug has ended. */
  readonly failedCalls: number
}

const [primary, secondary] = ["groq", "gemini"]
const [from, to, length] = [120, 300, 480]
const callsPerSecond = 4

/** The same for the same seed. */
export const simulate = async (seed: number): Promise<Outage> => {
  const clock = new SteppedClock()
  runs += 1
  const labels = { run: `outage-${runs}` }
  const load = Effect.gen(function* () {
    const fuse = yield* LlmFuse
    for (let call = 0; call < length * callsPerSecond; call += 1) {
      yield* Effect.fork(fuse.complete("hi"))
      yield* Effect.sleep(1000 / callsPerSecond)
    }
  })
  const layer = LlmFuse.layer({
    providers: [providerOf(primary, [400, 900], isOut), providerOf(secondary, [700, 1500], () => false)],
    retry: { maxAttempts: 2, jitter: "none" },
    metrics: { labels }
  })
  const fiber = Effect.runFork(
    Effect.provide(load, layer).pipe(Effect.withClock(clock), Effect.withRandom(Random.make(seed)))
  )

  const readings: Array<Reading> = []
  for (let second = 0; second < length; second += 1) {
    readings.push(read(labels.run))
    await clock.advance(1000)
  }
  await Effect.runPromise(Fiber.interrupt(fiber))
  return {
    primary,
    secondary,
    from,
    to,
    points: readings.map((_, second) => pointAt(readings, second)),
    failedCalls: readings.at(-1)?.failedCalls ?? 0
  }
}

let runs = 0

const isOut = (millis: number): boolean => millis >= from * 1000 && millis < to * 1000

/** Answers within a random time; while it is out, it fails after two seconds. */
const providerOf = (
  name: string,
  [least, most]: readonly [number, number],
  isOut: (millis: number) => boolean
): Provider.Provider => ({
  name,
  complete: () =>
    Effect.flatMap(Clock.currentTimeMillis, (millis) =>
      isOut(millis)
        ? Effect.delay(Effect.fail(new OverloadedError({ provider: name, statusCode: 503 })), "2 seconds")
        : Effect.flatMap(Random.nextIntBetween(least, most), (wait) => Effect.delay(Effect.succeed("ok"), wait))
    )
})

interface Reading {
  readonly counts: Point["rates"]
  readonly circuit: number
  /** How many calls took no longer than each bucket's end. */
  readonly buckets: ReadonlyMap<number, number>
  readonly failedCalls: number
}

const read = (run: string): Reading => {
  const pairs = Metric.unsafeSnapshot().filter(({ metricKey: { tags } }) => tags.some(({ value }) => value === run))
  const statesOf = ({ name }: Definition, labels: Readonly<Record<string, string>>) =>
    pairs.flatMap(({ metricKey, metricState }) =>
      metricKey.name === name &&
      Object.entries(labels).every(([key, value]) => metricKey.tags.some((it) => it.key === key && it.value === value))
        ? [metricState]
        : []
    )
  const count = (definition: Definition, labels: Readonly<Record<string, string>>): number =>
    statesOf(definition, labels)
      .filter(MetricState.isCounterState)
      .reduce((sum, state) => sum + Number(state.count), 0)
  const buckets = new Map<number, number>()
  for (const state of statesOf(catalogue.callDuration, {}).filter(MetricState.isHistogramState)) {
    for (const [end, value] of state.buckets) buckets.set(end, (buckets.get(end) ?? 0) + value)
  }
  const [gauge] = statesOf(catalogue.circuitState, { provider: primary }).filter(MetricState.isGaugeState)
  return {
    counts: {
      primary: count(catalogue.attempts, { provider: primary, outcome: "success" }),
      secondary: count(catalogue.attempts, { provider: secondary, outcome: "success" }),
      failed: count(catalogue.attempts, { provider: primary, outcome: "failure" })
    },
    circuit: Number(gauge?.value ?? 0),
    buckets,
    failedCalls: count(catalogue.calls, { outcome: "failure" }) + count(catalogue.calls, { outcome: "defect" })
  }
}

const pointAt = (readings: ReadonlyArray<Reading>, second: number): Point => {
  const now = readings[second] as Reading
  const before = readings[Math.max(0, second - 10)] as Reading
  const rate = (of: keyof Point["rates"]) => (now.counts[of] - before.counts[of]) / Math.max(1, Math.min(10, second))
  const earlier = readings[Math.max(0, second - 30)] as Reading
  const quantile = (share: number) => quantileOf(share, now.buckets, earlier.buckets)
  return {
    second,
    rates: { primary: rate("primary"), secondary: rate("secondary"), failed: rate("failed") },
    circuit: now.circuit,
    latency: { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) }
  }
}

/** As Prometheus' `histogram_quantile`: values are spread evenly in a bucket. */
const quantileOf = (share: number, now: Reading["buckets"], earlier: Reading["buckets"]): number => {
  const counts = [...now].map(([end, count]) => ({ end, count: count - (earlier.get(end) ?? 0) }))
  const rank = share * (counts.at(-1)?.count ?? 0)
  const index = counts.findIndex(({ count }) => count >= rank)
  const [under, bucket] = [counts[index - 1] ?? { end: 0, count: 0 }, counts[index]]
  if (rank === 0 || bucket === undefined) return 0
  if (bucket.end === Number.POSITIVE_INFINITY) return under.end
  return under.end + ((bucket.end - under.end) * (rank - under.count)) / (bucket.count - under.count)
}
