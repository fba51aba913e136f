/** The limits of one streamed attempt: which of them run, and when the first one is up. */
import { type Clock, Duration, Effect, FiberId, Runtime } from "effect"
import type { StartLimit } from "./AttemptTimeout.ts"
import * as Monotonic from "./Monotonic.ts"

/** The limit that is up. */
export type Phase = "headers" | "firstToken" | "contentGap" | "attempt"

/** How long a streamed attempt may take, in milliseconds; infinite where there is no limit. */
export interface Limits {
  /** From sending until the provider begins to respond. */
  readonly headersMillis: number
  /** From sending until the first content. */
  readonly firstTokenMillis: number
  /** From one piece of content to the next. */
  readonly contentGapMillis: number
  /** From sending until the end. */
  readonly attemptMillis: number
}

/**
 * The timers of one attempt. Time in which the caller has not asked for more is not the provider's and does not count:
 * `pause` and `resume` stand around it.
 */
export interface StreamTimers {
  /** The provider has begun to respond. */
  readonly opened: () => void
  /** Content has come. */
  readonly content: () => void
  readonly pause: () => void
  readonly resume: () => void
  /** Watches the limits; `expire` is told which was up first. */
  readonly limit: (runtime: Runtime.Runtime<never>) => StartLimit<Phase>
}

/** The timers of an attempt that is sent now. */
export const make = (limits: Limits, clock: Clock.Clock): StreamTimers => {
  const startMillis = Monotonic.unsafeMillis(clock)
  let waitsFor: "headers" | "firstToken" | "contentGap" = "headers"
  let contentMillis = startMillis
  let pausedMillis = 0
  let pausedSince: number | undefined

  /** The limit that will be up first, in time that counts. */
  const next = (): readonly [Phase, number] => {
    const gap = waitsFor === "contentGap" ? contentMillis + limits.contentGapMillis : Number.POSITIVE_INFINITY
    const first = waitsFor === "contentGap" ? Number.POSITIVE_INFINITY : startMillis + limits.firstTokenMillis
    const headers = waitsFor === "headers" ? startMillis + limits.headersMillis : Number.POSITIVE_INFINITY
    const whole = startMillis + limits.attemptMillis
    const at = Math.min(headers, first, gap, whole)
    return [at === headers ? "headers" : at === first ? "firstToken" : at === gap ? "contentGap" : "attempt", at]
  }

  const countingNow = () => (pausedSince ?? Monotonic.unsafeMillis(clock)) - pausedMillis

  // A limit that begins to run while the watcher sleeps is at least a content gap away, so it is never missed.
  const watch = (expire: (phase: Phase) => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      const [phase, atMillis] = next()
      const left = Math.ceil(atMillis - countingNow())
      const isPaused = pausedSince !== undefined
      if (left <= 0 && !isPaused) return Effect.sync(() => expire(phase))
      const untilNext = Math.min(left, limits.contentGapMillis, longestSleepMillis)
      return Effect.zipRight(
        clock.sleep(Duration.millis(isPaused ? Math.max(untilNext, lookUpMillis) : untilNext)),
        watch(expire)
      )
    })

  return {
    opened: () => {
      if (waitsFor === "headers") waitsFor = "firstToken"
    },
    content: () => {
      waitsFor = "contentGap"
      contentMillis = countingNow()
    },
    pause: () => {
      pausedSince = Monotonic.unsafeMillis(clock)
    },
    resume: () => {
      if (pausedSince !== undefined) pausedMillis += Monotonic.unsafeMillis(clock) - pausedSince
      pausedSince = undefined
    },
    limit: (runtime) => (expire) => {
      const watcher = Runtime.runFork(runtime, watch(expire))
      return () => watcher.unsafeInterruptAsFork(FiberId.none)
    }
  }
}

/** Timers have a longest wait. */
const longestSleepMillis = 3_600_000

/** While the caller does not ask for more, there is no hurry. */
const lookUpMillis = 100
