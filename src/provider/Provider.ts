/** What stands behind a name in the list of providers, and how to make one. */
import { type Duration, Effect, Effectable, type Scope, type Stream } from "effect"
import type { Capabilities } from "../model/Capabilities.ts"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { EmbeddingBatch, ProviderEmbeddings } from "../model/Embedding.ts"
import type { ProviderError } from "../model/LlmError.ts"
import type { PromiseContext } from "./Promised.ts"
import * as Promised from "./Promised.ts"
import * as PromiseStream from "./PromiseStream.ts"

export type { PromiseContext } from "./Promised.ts"

/** How much a provider may be asked. An attempt takes all that it needs together, or waits for it in line. */
export interface Limits {
  /** Attempts per minute, retries included; above zero. Default: off. */
  readonly requestsPerMinute?: number | undefined
  /**
   * Tokens per minute, of requests and answers; above zero. An attempt reserves an estimate, which is corrected when the
   * provider says how many it used, and given back when it fails. Default: off.
   */
  readonly tokensPerMinute?: number | undefined
  /** Attempts in flight at once; a whole number from 1. Default: off. */
  readonly concurrency?: number | undefined
  /** How many attempts may go at once after a pause; a whole number from 1. Default: 5. */
  readonly burst?: number | undefined
  /** How long an attempt may wait for room before the call goes to the next provider. Default: 1 second. */
  readonly maxWait?: Duration.DurationInput | undefined
  /** How many attempts, of each tag, may wait for a place in flight; a whole number from 0. Default: 100. */
  readonly maxQueue?: number | undefined
  /**
   * Whether the rate follows what the provider takes: cut when it says that it limits the rate, raised slowly while it
   * does not. Default: off. `true`: with the defaults; up to `requestsPerMinute` where that is set.
   */
  readonly adaptive?: boolean | AdaptiveLimits | undefined
  /**
   * The tokens that a request will use, those of its answer included, for `tokensPerMinute`. Default: one for each 4.5
   * characters, and `maxTokens`.
   */
  readonly estimateTokens?: ((request: ChatRequest) => number) | undefined
}

/** How a rate adapts; see `AdaptiveRate.Options`. */
export interface AdaptiveLimits {
  /** Attempts per minute that are always allowed; above 0. Default: 1. */
  readonly floor?: number | undefined
  /** Attempts per minute that are never exceeded; above 0. Default: `requestsPerMinute`, else none. */
  readonly ceiling?: number | undefined
  /** What a cut leaves of the rate; 0.5 to 0.9. Default: 0.85. */
  readonly decrease?: number | undefined
  /** By what share of the rate at the last cut it rises in a minute of use; above 0, at most 1. Default: 0.05. */
  readonly increase?: number | undefined
}

/** What every kind of provider can set about itself. */
export interface Settings {
  /** Shown in responses, errors and events; unique within the list. */
  readonly name: string
  /** The model that is asked, for the response where the provider does not report one. */
  readonly model?: string | undefined
  /**
   * Whose prices apply: a vendor such as `"groq"`, or the address that is asked. Default: nobody's; the vendors' classes
   * set it.
   */
  readonly vendor?: string | undefined
  /** The provider's own limits; each that is set wins over the options' `limits`. */
  readonly limits?: Limits | undefined
  /** The most that one attempt may take; wins over the options' `timeouts.attempt`. */
  readonly timeout?: Duration.DurationInput | undefined
  /** What it can do. A provider that cannot do what a request wants is passed over. Default: everything. */
  readonly capabilities?: Capabilities | undefined
}

/** The time that one attempt has. */
export interface TimeLimit {
  /** Starts the time; `onExpire` gets the error of the timeout when it is up. What it gives back stops it. */
  readonly start: (onExpire: (error: ProviderError) => void) => () => void
}

/** The parts of an answer as they come; a string is short for a piece of text. */
export type Parts = Stream.Stream<StreamPart | string, ProviderError>

/** A provider: a name, and a way to have a request answered. */
export interface Provider extends Settings {
  /** A string is short for an answer that has only a text. */
  readonly complete: (request: ChatRequest) => Effect.Effect<ProviderAnswer | string, ProviderError>
  /**
   * The same for a provider that minds the time itself, which is cheaper than a fiber for every attempt. Default: none;
   * `complete` is interrupted when its time is up.
   */
  readonly completeWithin?:
    | ((request: ChatRequest, limit: TimeLimit) => Effect.Effect<ProviderAnswer | string, ProviderError>)
    | undefined
  /**
   * The answer as it comes. An effect that yields the stream tells by its end that the provider has begun to respond,
   * which the `headers` limit is about; its scope lives as long as the attempt. A stream that ends is a whole answer: one
   * that was cut must fail, with `StreamInterruptedError`. Default: none; `complete` is asked and its answer handed out
   * in one piece.
   */
  readonly stream?: ((request: ChatRequest) => Parts | Effect.Effect<Parts, ProviderError, Scope.Scope>) | undefined
  /** Embeds texts. Default: none; the provider is passed over by `embed`. */
  readonly embed?: ((batch: EmbeddingBatch) => Effect.Effect<ProviderEmbeddings, ProviderError>) | undefined
  /** The space of its vectors; they are compared only within one. Default: the provider's name and model. */
  readonly embeddingSpace?: string | undefined
  /** How many texts it embeds with one request; a whole number from 1. Default: any number. */
  readonly maxEmbeddingInputs?: number | undefined
}

class Value extends Effectable.Class<Provider> implements Provider {
  readonly name: string
  readonly model: string | undefined
  readonly vendor: string | undefined
  readonly limits: Limits | undefined
  readonly timeout: Duration.DurationInput | undefined
  readonly capabilities: Capabilities | undefined
  readonly complete: Provider["complete"]
  readonly completeWithin: Provider["completeWithin"]
  readonly stream: Provider["stream"]
  readonly embed: Provider["embed"]
  readonly embeddingSpace: string | undefined
  readonly maxEmbeddingInputs: number | undefined

  constructor(provider: Provider) {
    super()
    this.name = provider.name
    this.model = provider.model
    this.vendor = provider.vendor
    this.limits = provider.limits
    this.timeout = provider.timeout
    this.capabilities = provider.capabilities
    this.complete = (request) => provider.complete(request)
    this.completeWithin = provider.completeWithin
    this.stream = provider.stream
    this.embed = provider.embed
    this.embeddingSpace = provider.embeddingSpace
    this.maxEmbeddingInputs = provider.maxEmbeddingInputs
  }

  override commit(): Effect.Effect<Provider> {
    return Effect.succeed(this)
  }
}

/**
 * A provider from a function that returns an effect. Typed failures are retried and failed over as the failure table
 * says; a defect is a bug: it reaches the caller. The value is also the effect that yields it.
 */
export const make = (provider: Provider): Provider & Effect.Effect<Provider> => new Value(provider)

/** What a provider from promises is made of. */
export interface PromiseProvider extends Settings {
  /** A string is short for an answer that has only a text. */
  readonly complete: (request: ChatRequest, context: PromiseContext) => PromiseLike<ProviderAnswer | string>
  /**
   * The answer as it comes: an async iterable, such as an async generator makes, of parts or of pieces of text, or a
   * promise of one. What it throws says that the answer is not whole. Default: none; `complete` is asked.
   */
  readonly stream?: ((request: ChatRequest, context: PromiseContext) => ReturnType<PromiseStream.Start>) | undefined
}

/**
 * A provider from functions that return promises. A rejection becomes the error that it describes: one of LlmFuse's
 * own as it is, one with an HTTP status by that status, a network failure as `ConnectionError`, everything else as
 * `CustomProviderError` (retryable unless it is a programming error).
 */
export const fromPromise = (provider: PromiseProvider): Provider & Effect.Effect<Provider> => {
  const answer = (request: ChatRequest, limit: TimeLimit | undefined) =>
    Effect.async<ProviderAnswer | string, ProviderError>((resume) => {
      const { context, abort } = Promised.makeContext()
      const stop = limit?.start((error) => {
        resume(Effect.fail(error))
        abort()
      })
      // `async` also turns what is thrown before the first `await` into a rejection.
      const run = async () => provider.complete(request, context)
      run().then(
        (value) => {
          stop?.()
          resume(Effect.succeed(value))
        },
        (reason) => {
          stop?.()
          resume(Promised.rejected(provider.name, reason))
        }
      )
      return Effect.sync(() => {
        stop?.()
        abort()
      })
    })
  const { stream } = provider
  return make({
    ...provider,
    complete: (request) => answer(request, undefined),
    completeWithin: answer,
    stream:
      stream && ((request) => PromiseStream.open(provider.name, (context) => stream.call(provider, request, context)))
  })
}
