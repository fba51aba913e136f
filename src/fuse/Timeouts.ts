/** The time limits of an attempt. */
import { type ConfigError, type Duration, Either } from "effect"
import { inOwnWords, TimeoutError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import type * as StreamTimers from "../pipeline/StreamTimers.ts"

/** Time limits of an attempt; all above zero. Those before `attempt` are about streamed answers. */
export interface Timeouts {
  /** From sending until the provider begins to respond. Default: 30 seconds. */
  readonly headers?: Duration.DurationInput | undefined
  /** From sending until the first content: text, reasoning or a tool call. Default: 30 seconds. */
  readonly firstToken?: Duration.DurationInput | undefined
  /**
   * From one piece of content to the next. Keep-alives and empty deltas are no content, and time in which the caller
   * does not read does not count. Default: 30 seconds.
   */
  readonly contentGap?: Duration.DurationInput | undefined
  /**
   * The most that one attempt may take. Default: 30 seconds for an answer in one piece, none for a streamed one.
   * A provider's own `timeout` wins.
   */
  readonly attempt?: Duration.DurationInput | undefined
}

/** The limits with all defaults in place, in milliseconds. */
export interface Limits {
  /** Of an answer in one piece. */
  readonly wholeMillis: number
  /** Of a streamed answer. */
  readonly stream: StreamTimers.Limits
  /** Whether a limit is set that only a streamed answer can keep: then `complete` streams underneath. */
  readonly areOfStreams: boolean
}

const names = ["headers", "firstToken", "contentGap", "attempt"] as const

const defaultMillis = 30_000

/** Puts the defaults in place. Fails with a `ConfigError` that names the first wrong limit, its value and the rule. */
export const resolve = (timeouts: Timeouts, path: string): Either.Either<Limits, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, timeouts, names)
    const millis = (name: (typeof names)[number], fallback: number) =>
      timeouts[name] === undefined
        ? Either.right(fallback)
        : OptionCheck.durationMillis(`${path}.${name}`, timeouts[name], "above-zero")
    return {
      wholeMillis: yield* millis("attempt", defaultMillis),
      stream: {
        headersMillis: yield* millis("headers", defaultMillis),
        firstTokenMillis: yield* millis("firstToken", defaultMillis),
        contentGapMillis: yield* millis("contentGap", defaultMillis),
        attemptMillis: yield* millis("attempt", Number.POSITIVE_INFINITY)
      },
      areOfStreams: [timeouts.headers, timeouts.firstToken, timeouts.contentGap].some((limit) => limit !== undefined)
    }
  })

/** Limits over others, each that is set. */
export const over = (base: Timeouts, own: Timeouts | undefined): Timeouts =>
  own === undefined
    ? base
    : { ...base, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) }

/**
 * The limits of a streamed attempt that has only so long until others must get their turn. A stream that is under way is
 * cut short only between pieces of content, and only if the call would restart elsewhere.
 */
export const shorten = (limits: StreamTimers.Limits, shareMillis: number, restarts: boolean): StreamTimers.Limits => ({
  headersMillis: Math.min(limits.headersMillis, shareMillis),
  firstTokenMillis: Math.min(limits.firstTokenMillis, shareMillis),
  contentGapMillis: restarts ? Math.min(limits.contentGapMillis, shareMillis) : limits.contentGapMillis,
  attemptMillis: limits.attemptMillis
})

const waitedFor: Readonly<Record<StreamTimers.Phase, string>> = {
  headers: "no response",
  firstToken: "no content",
  contentGap: "no further content",
  attempt: "no whole answer"
}

/** The error of a limit that is up. `fullMillis` is how long it would be if the deadline had not cut it short. */
export const timedOut = (
  provider: string,
  phase: StreamTimers.Phase,
  millis: number,
  fullMillis: number
): TimeoutError => {
  const isShortened = millis < fullMillis
  const why = isShortened ? ", cut short to leave the other providers a share of the deadline" : ""
  const message = `${provider}: ${waitedFor[phase]} within ${Math.round(millis)} ms${why}`
  return inOwnWords(new TimeoutError({ provider, phase, message, ...(isShortened ? { shortened: true } : {}) }))
}
