/** Every way in which a call can fail, as flat tagged errors. What each means is the failure table's to say. */
import { type Cause, DateTime, Duration, Effect, Either, Schema } from "effect"
import * as FailoverPolicy from "./FailoverPolicy.ts"
import { isUsage, type Usage } from "./Usage.ts"

/**
 * How one attempt ended. `rejected`: nothing was sent, because the circuit was open or our own limiter had no room;
 * `hedge-lost`: another provider that was asked at the same time was faster; `interrupted`: the call's deadline ended it.
 */
export type AttemptOutcome = "success" | "failure" | "rejected" | "hedge-lost" | "interrupted"

/** One entry of a call's story. */
export interface Attempt {
  /** The name of the provider. */
  readonly provider: string
  /** Which attempt on this provider within the call, from 1; 0 if it was rejected before the first. */
  readonly number: number
  readonly startedAt: DateTime.Utc
  readonly duration: Duration.Duration
  readonly outcome: AttemptOutcome
  /** Why it failed or was rejected. */
  readonly error?: CandidateError | undefined
  /** How long it was waited for before it began: backoff and limiter. */
  readonly waited?: Duration.Duration | undefined
  /** Until the first content of a streamed answer. */
  readonly timeToFirstToken?: Duration.Duration | undefined
  readonly usage?: Usage | undefined
  /** What it cost, in US dollars; absent where that is not known. */
  readonly cost?: number | undefined
  /** Whether usage and cost are estimated from the length of the texts, for the answer did not come to its end. */
  readonly estimated?: boolean | undefined
}

/** A look at what has to be there: an error is no place to check the counts. */
const common = {
  /** The name of the provider. */
  provider: Schema.String,
  /** One line that begins with the provider's name. */
  message: Schema.String,
  /** The HTTP status, where there was one. */
  statusCode: Schema.optional(Schema.Number),
  /** The provider's id of the exchange, for its support. */
  requestId: Schema.optional(Schema.String),
  /** How long the provider asks to be left alone. */
  retryAfter: Schema.optional(Schema.DurationFromSelf),
  /** The provider's own word on whether to retry (`x-should-retry`); it outranks the failure table. */
  shouldRetry: Schema.optional(Schema.Boolean),
  /**
   * What the provider says that it used for the answer that came to this error, and may bill; absent where it does not
   * say. Of a stream that broke off it is the last word so far, which may count less output than came.
   */
  usage: Schema.optional(Schema.declare(isUsage)),
  /** What led to it, without keys and request headers. */
  cause: Schema.optional(Schema.Defect)
}

/** What every error of a call can tell. */
export interface Failure {
  /** The case within the tag, where the failure table tells cases apart. */
  readonly failureCase?: string | undefined
  /** Whether the same request to the same provider may succeed soon. */
  readonly isRetryable: boolean
  /** The attempts that the call made on this provider. */
  readonly attemptCount: number
  /** Every attempt of the call so far, in order. */
  readonly attempts: ReadonlyArray<Attempt>
}

interface Story {
  readonly attempts: ReadonlyArray<Attempt>
  readonly attemptCount: number
}

/** Kept beside the errors, not in them: an error may be frozen, and its own fields are the provider's. */
const stories = new WeakMap<object, Story>()

/** Notes on an error what the call did until it came up. The error itself stays the same value. */
export const recordStory = (error: LlmFuseError, story: Story): void => {
  stories.set(error, story)
}

const ownWords = new WeakSet<object>()

/** Notes that the message of an error is the library's own: of numbers and names alone, it quotes nobody. */
export const inOwnWords = <E extends LlmFuseError>(error: E): E => {
  ownWords.add(error)
  return error
}

/** Whether the message of an error is the library's own. */
export const isInOwnWords = (error: LlmFuseError): boolean => ownWords.has(error)

type WithMessage<Fields extends Schema.Struct.Fields> = Schema.Simplify<
  Omit<Schema.Struct.Constructor<Fields>, "_tag" | "message"> & { readonly message?: string | undefined }
>

/** A tagged error class as `Schema.TaggedError` makes it, with a default message and the getters of `Failure`. */
interface FailureClass<Self, Tag extends string, Fields extends Schema.Struct.Fields>
  extends Schema.Class<
    Self,
    { readonly _tag: Schema.tag<Tag> } & Fields,
    Schema.Struct.Encoded<{ readonly _tag: Schema.tag<Tag> } & Fields>,
    Schema.Struct.Context<Fields>,
    WithMessage<Fields>,
    Failure,
    Cause.YieldableError
  > {
  readonly _tag: Tag
  /** What such an error says where nobody has other words for it. */
  readonly what: string
}

const failure =
  <Self>() =>
  <const Tag extends string, Fields extends Schema.Struct.Fields>(
    tag: Tag,
    fields: Fields,
    what: string
  ): FailureClass<Self, Tag, typeof common & Fields> => {
    const Tagged: new (props: Record<string, unknown>, options?: Schema.MakeOptions) => FailoverPolicy.Classified =
      Schema.TaggedError<never>(`llmfuse/${tag}`)(tag, { ...common, ...fields }) as never
    class Base extends Tagged {
      static readonly what = what
      constructor(props: Record<string, unknown>, options?: Schema.MakeOptions) {
        super({ ...props, message: props.message ?? `${props.provider}: ${what}` }, options)
      }
      get isRetryable(): boolean {
        return FailoverPolicy.default.verdict(this).retry !== "no"
      }
      get attemptCount(): number {
        return stories.get(this)?.attemptCount ?? 0
      }
      get attempts(): ReadonlyArray<Attempt> {
        return stories.get(this)?.attempts ?? []
      }
    }
    return Base as never
  }

/** The provider limits the rate: HTTP 429. */
export class RateLimitError extends failure<RateLimitError>()("RateLimitError", {}, "rate limited") {}

/** The provider's quota or money is used up; waiting a moment does not help. */
export class QuotaExhaustedError extends failure<QuotaExhaustedError>()("QuotaExhaustedError", {}, "quota exhausted") {}

/** The provider has no capacity: HTTP 503, 498, 529, or a 429 that means so. */
export class OverloadedError extends failure<OverloadedError>()("OverloadedError", {}, "overloaded") {}

/** The provider failed: HTTP 5xx, 409, 424. */
export class ServerError extends failure<ServerError>()("ServerError", {}, "server error") {}

/** The provider was not reached, or the connection broke: DNS, refused, reset, TLS. */
export class ConnectionError extends failure<ConnectionError>()("ConnectionError", {}, "connection failed") {}

/**
 * Time ran out: one of our timers, or (`upstream`) the provider's own. With `shortened`, the timer had been cut short so
 * that the call's deadline leaves time for the providers still to come: the provider is not to blame.
 */
export class TimeoutError extends failure<TimeoutError>()(
  "TimeoutError",
  {
    phase: Schema.Literal("headers", "firstToken", "contentGap", "attempt", "upstream"),
    shortened: Schema.optional(Schema.Boolean)
  },
  "timed out"
) {
  override get failureCase() {
    return this.phase === "upstream" ? "upstream" : this.shortened ? "shortened" : undefined
  }
}

/** The key is missing, wrong or not allowed to do this: HTTP 401, 403. */
export class AuthenticationError extends failure<AuthenticationError>()(
  "AuthenticationError",
  {},
  "authentication failed"
) {}

/** The provider does not have the model: HTTP 404. */
export class ModelNotFoundError extends failure<ModelNotFoundError>()("ModelNotFoundError", {}, "model not found") {}

/**
 * The request is not one that the provider takes: HTTP 400, 413, 422 and other 4xx; `reason: "capability"` if it was not
 * asked because it is known not to be able to.
 */
export class InvalidRequestError extends failure<InvalidRequestError>()(
  "InvalidRequestError",
  { reason: Schema.optional(Schema.Literal("capability")) },
  "invalid request"
) {
  override get failureCase() {
    return this.reason
  }
}

/** The request is longer than the model's context window. */
export class ContextLengthError extends failure<ContextLengthError>()("ContextLengthError", {}, "context too long") {}

/** The provider's policy blocked the input (`prompt`), or the model refused or was stopped (`response`). */
export class ContentPolicyError extends failure<ContentPolicyError>()(
  "ContentPolicyError",
  { stage: Schema.Literal("prompt", "response") },
  "blocked by the content policy"
) {
  override get failureCase() {
    return this.stage
  }
}

/**
 * HTTP success with a body that cannot be read or does not fit; `reason: "schema"` if it misses a wanted schema,
 * `"length"` if an object was cut off at the token limit.
 */
export class InvalidResponseError extends failure<InvalidResponseError>()(
  "InvalidResponseError",
  { reason: Schema.optional(Schema.Literal("schema", "length")) },
  "invalid response"
) {
  override get failureCase() {
    return this.reason
  }
}

/** HTTP success with nothing in it. */
export class EmptyResponseError extends failure<EmptyResponseError>()("EmptyResponseError", {}, "empty response") {}

/** A stream was cut, stalled, malformed, or ended without a finish. */
export class StreamInterruptedError extends failure<StreamInterruptedError>()(
  "StreamInterruptedError",
  { partial: Schema.String },
  "stream interrupted"
) {}

/** A failure of a custom provider in its own words; `retryable` says whether to ask it again. */
export class CustomProviderError extends failure<CustomProviderError>()(
  "CustomProviderError",
  { retryable: Schema.Boolean },
  "failed"
) {
  override get failureCase() {
    return this.retryable ? "retryable" : undefined
  }
}

/**
 * Our own limiter has no room within `maxWait`; `wait` is how long it would have taken, and `limit` the limit that it was.
 * How long for a place in flight is not known: for `"concurrency"`, `wait` is zero.
 */
export class ThrottledError extends failure<ThrottledError>()(
  "ThrottledError",
  {
    wait: Schema.DurationFromSelf,
    limit: Schema.optional(Schema.Literal("requests", "tokens", "concurrency"))
  },
  "throttled by our own limit"
) {}

/** Our circuit breaker is open; `openedBy` is the error that opened it. */
export class CircuitOpenError extends failure<CircuitOpenError>()(
  "CircuitOpenError",
  {
    /** When the next probe is let through; absent while the circuit is isolated by hand. */
    openUntil: Schema.optional(Schema.DateTimeUtcFromSelf),
    /** The failure that opened it. */
    openedBy: Schema.optional(Schema.Unknown)
  },
  "circuit open"
) {}

/** The call may not spend more: `maxCost` is its limit and `spent` what it has spent, both in US dollars. */
export class CostLimitError extends failure<CostLimitError>()(
  "CostLimitError",
  { maxCost: Schema.Number, spent: Schema.Number },
  "too expensive"
) {}

/** The call's time budget is used up. */
export class DeadlineExceededError extends failure<DeadlineExceededError>()(
  "DeadlineExceededError",
  { deadline: Schema.DurationFromSelf },
  "deadline exceeded"
) {}

/** Nobody answered, and the fallback failed too: `error` is what it failed with, `cause` the error of the call. */
export class FallbackError extends failure<FallbackError>()(
  "FallbackError",
  { error: Schema.Unknown },
  "the fallback failed too"
) {}

/** The call or `circuitState` names a provider that is not in the list; `known` are those that are. */
export class UnknownProviderError extends failure<UnknownProviderError>()(
  "UnknownProviderError",
  { known: Schema.Array(Schema.String) },
  "no such provider"
) {}

/** What a provider can fail with. */
export type ProviderError =
  | RateLimitError
  | QuotaExhaustedError
  | OverloadedError
  | ServerError
  | ConnectionError
  | TimeoutError
  | AuthenticationError
  | ModelNotFoundError
  | InvalidRequestError
  | ContextLengthError
  | ContentPolicyError
  | InvalidResponseError
  | EmptyResponseError
  | StreamInterruptedError
  | CustomProviderError

/** Why one candidate of a call did not answer. */
export type CandidateError = ProviderError | ThrottledError | CircuitOpenError | CostLimitError

/** Nobody answered. */
export class AllProvidersFailedError extends Schema.TaggedError<AllProvidersFailedError>(
  "llmfuse/AllProvidersFailedError"
)("AllProvidersFailedError", {
  /** From provider name to its last error, in the order asked. */
  errors: Schema.declare(
    (input: unknown): input is Readonly<Record<string, CandidateError>> => typeof input === "object"
  ),
  /** Every attempt of the call, in order. */
  attempts: Schema.declare((input: unknown): input is ReadonlyArray<Attempt> => Array.isArray(input)),
  /** The earliest moment at which a provider may answer again, if one is known. */
  retryAt: Schema.optional(Schema.DateTimeUtcFromSelf)
}) {
  /** Whether one of the providers may answer the same request soon. */
  get isRetryable(): boolean {
    return Object.values(this.errors).some((error) => error.isRetryable || error._tag === "CircuitOpenError")
  }
  override get message(): string {
    return `no provider answered: ${Object.values(this.errors).map(wordsOf).join("; ")}`
  }
  /** A report: a line for each provider with its attempts, its waits and the reason, and when to try again. */
  override toString(): string {
    const when = this.retryAt === undefined ? [] : [`  try again at ${DateTime.formatIso(this.retryAt)}`]
    const lines = namesIn(this).map((name) => reportLine(name, this.errors[name], this.attempts))
    return [`${this._tag}: no provider answered`, ...lines, ...when].join("\n")
  }
}

/** What an error says. A provider outside the types may fail with something that has no words. */
const wordsOf = (error: CandidateError): string => String(error.message ?? error._tag)

/** The providers in the order asked; attempts are in the order in which they ended. */
const namesIn = ({ attempts, errors }: AllProvidersFailedError): ReadonlyArray<string> => {
  const started = [...attempts].sort((one, other) => DateTime.Order(one.startedAt, other.startedAt))
  return [...new Set([...started.map(({ provider }) => provider), ...Object.keys(errors)])]
}

const reportLine = (name: string, error: CandidateError | undefined, attempts: ReadonlyArray<Attempt>): string => {
  const own = attempts.filter(({ provider, outcome }) => provider === name && outcome !== "rejected")
  const sum = (durations: ReadonlyArray<Duration.Duration | undefined>) =>
    durations.reduce<Duration.Duration>(
      (total, it) => (it === undefined ? total : Duration.sum(total, it)),
      Duration.zero
    )
  const waited = sum(own.map((it) => it.waited))
  const counted = own.length === 0 ? "not asked" : own.length === 1 ? "1 attempt" : `${own.length} attempts`
  const took = own.length === 0 ? "" : ` in ${Duration.format(sum(own.map((it) => it.duration)))}`
  const waits = Duration.toMillis(waited) === 0 ? "" : `, waited ${Duration.format(waited)}`
  const why = error === undefined ? endOf(own.at(-1)) : reasonOf(name, error)
  return `  ${name}: ${counted}${took}${waits}: ${why}`
}

/** How a provider ended that has no error of its own. */
const endOf = (last: Attempt | undefined): string =>
  last?.outcome === "hedge-lost" ? "given up, another was faster" : (last?.outcome ?? "rejected")

const reasonOf = (name: string, error: CandidateError): string => {
  const words = wordsOf(error)
  const reason = words.startsWith(`${name}: `) ? words.slice(name.length + 2) : words
  return reason === error._tag ? reason : `${error._tag}: ${reason}`
}

/** What a call can fail with. */
export type LlmFuseError =
  | CandidateError
  | DeadlineExceededError
  | UnknownProviderError
  | AllProvidersFailedError
  | FallbackError

const classes = [
  RateLimitError,
  QuotaExhaustedError,
  OverloadedError,
  ServerError,
  ConnectionError,
  TimeoutError,
  AuthenticationError,
  ModelNotFoundError,
  InvalidRequestError,
  ContextLengthError,
  ContentPolicyError,
  InvalidResponseError,
  EmptyResponseError,
  StreamInterruptedError,
  CustomProviderError,
  ThrottledError,
  CircuitOpenError,
  CostLimitError,
  DeadlineExceededError,
  UnknownProviderError,
  AllProvidersFailedError,
  FallbackError
] as const

/** The class of LlmFuse that an error is of, also where somebody has made a class of their own from it. */
export const classOf = (value: unknown): (typeof classes)[number] | undefined =>
  classes.find((Class) => value instanceof Class)

/** Whether a value is one of LlmFuse's errors. */
export const isLlmFuseError = (value: unknown): value is LlmFuseError => classOf(value) !== undefined

/**
 * An effect that fails with an error made without a stack trace. For errors that are part of the plan (an open circuit,
 * a full limiter): a stack trace costs several times the rest of a call.
 */
export const failWithoutStackTrace = <E>(make: () => E): Effect.Effect<never, E> =>
  Effect.suspend(() => Effect.fail(withoutStackTrace(make)))

/** Makes an error without a stack trace. */
export const withoutStackTrace = <E>(make: () => E): E => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  const made = Either.try(make)
  Error.stackTraceLimit = limit
  return Either.getOrThrowWith(made, (bug) => bug)
}
