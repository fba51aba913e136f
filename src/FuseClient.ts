/** LlmFuse for code without Effect: promises in front, one runtime behind, so that breakers and limits remember. */
/// <reference lib="esnext.disposable" preserve="true" />
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import {
  Cause,
  Chunk,
  ConfigError,
  Context,
  Effect,
  Exit,
  type Fiber,
  FiberId,
  Layer,
  Option,
  Runtime,
  Scheduler,
  Schema,
  Scope,
  Stream
} from "effect"
import { EventIterator, type Source } from "./client/EventIterator.ts"
import * as StreamSource from "./client/StreamSource.ts"
import type * as FuseOptions from "./fuse/FuseOptions.ts"
import type { ProviderHealth } from "./fuse/Health.ts"
import type { ObjectResponse } from "./fuse/ObjectAnswer.ts"
import * as Reception from "./fuse/Reception.ts"
import { LlmFuse, type ObjectOptions, type Service } from "./LlmFuse.ts"
import type { ChatEvent } from "./model/ChatEvent.ts"
import type { ChatRequest } from "./model/ChatRequest.ts"
import type { ChatResponse } from "./model/ChatResponse.ts"
import type { EmbeddingRequest, EmbeddingResponse } from "./model/Embedding.ts"
import type { ObservedEvent } from "./observability/EventHub.ts"
import type { CircuitState } from "./pipeline/CircuitState.ts"
import type { Provider } from "./provider/Provider.ts"

/** A provider of a client: a value, or an effect that needs nothing but the client's HTTP client. */
export type ClientProvider = Provider | Effect.Effect<Provider, unknown, HttpClient.HttpClient>

/** Options of `FuseClient.make`: those of `LlmFuse.layer`, and the HTTP client. */
export interface ClientOptions extends FuseOptions.Options<ReadonlyArray<ClientProvider>> {
  /** Where requests go out. Default: `FetchHttpClient.layer`, the platform's own `fetch`. */
  readonly httpClient?: Layer.Layer<HttpClient.HttpClient, unknown> | undefined
  /** What the client runs in besides: a tracer, loggers, a config provider. Default: Effect's own. */
  readonly layer?: Layer.Layer<never, unknown> | undefined
}

/** Options of one call of a client. */
export interface ClientCallOptions extends FuseOptions.CallOptions {
  /** Ends the call when it aborts: nothing more is sent, and the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** The client cannot be built: a wrong option or a missing key. The message names it; `cause` is the `ConfigError`. */
export class ConfigurationError extends Schema.TaggedError<ConfigurationError>("llmfuse/ConfigurationError")(
  "ConfigurationError",
  { message: Schema.String, cause: Schema.Unknown }
) {}

/** The client has been closed. */
export class ClientClosedError extends Schema.TaggedError<ClientClosedError>("llmfuse/ClientClosedError")(
  "ClientClosedError",
  { message: Schema.String }
) {}

const closedError = () => new ClientClosedError({ message: "the client is closed; make a new one" })

/** What building failed with, as an `Error`. */
const buildError = (cause: Cause.Cause<unknown>): unknown => {
  const reason = Cause.squash(cause)
  if (!ConfigError.isConfigError(reason)) {
    return reason instanceof Error ? reason : new ConfigurationError({ message: String(reason), cause: reason })
  }
  const message = reason._op === "And" || reason._op === "Or" ? String(reason) : reason.message
  return new ConfigurationError({ message, cause: reason })
}

type Run = <A>(effect: (service: Service) => Effect.Effect<A, unknown>, signal?: AbortSignal) => Promise<A>

type Open = <A>(
  opening: (service: Service) => StreamSource.Opening<A>,
  signal?: AbortSignal,
  endsQuietly?: boolean
) => Source<A>

/**
 * A client whose methods return promises. They reject with the typed error itself: `instanceof` and `_tag` both work.
 * State (circuits, limits) lives as long as the client.
 *
 * @example
 * const client = FuseClient.make({ providers: [Groq.make({ model }), Gemini.make({ model })] })
 * const response = await client.complete("Explain retrieval-augmented generation in one sentence.")
 * await client.close()
 */
export class FuseClient {
  readonly #run: Run
  readonly #open: Open
  readonly #close: () => Promise<void>

  private constructor(run: Run, open: Open, close: () => Promise<void>) {
    this.#run = run
    this.#open = open
    this.#close = close
  }

  /**
   * Makes a client. Throws `ConfigurationError` at once for a wrong option or a missing key. Only where a provider takes
   * time to be built is that found later; then every call rejects with it.
   */
  static make(options: ClientOptions): FuseClient {
    const { httpClient = FetchHttpClient.layer, layer: surroundings = Layer.empty, ...fuseOptions } = options
    const scope = Effect.runSync(Scope.make())
    const layer = Layer.provideMerge(Layer.provide(LlmFuse.layer(fuseOptions), httpClient), surroundings)
    // Layers are built over several ticks; this scheduler does them all now, as far as nothing really waits.
    const scheduler = new Scheduler.SyncScheduler()
    const building = Effect.runFork(Scope.extend(Layer.toRuntime(layer), scope), { scheduler })
    scheduler.flush()
    const built = building.unsafePoll()
    if (built !== null && Exit.isFailure(built)) throw buildError(built.cause)

    const inFlight = new Set<(reason: unknown) => void>()
    let runtime = built === null ? undefined : built.value
    let service: Service | undefined
    let closing: Promise<void> | undefined

    const ready = () =>
      new Promise<void>((resolve, reject) =>
        building.addObserver((exit) => {
          if (Exit.isFailure(exit)) return reject(closing === undefined ? buildError(exit.cause) : closedError())
          runtime = exit.value
          resolve()
        })
      )

    const run: Run = (effect, signal) => {
      if (closing !== undefined) return Promise.reject(closedError())
      if (signal?.aborted) return Promise.reject(signal.reason)
      if (runtime === undefined) return ready().then(() => run(effect, signal))
      service ??= Context.get(runtime.context, LlmFuse)
      // As an exit: Effect logs what a fiber fails with, and the caller is told of it here.
      const fiber = Runtime.runFork(runtime, Effect.exit(effect(service)))
      const ended = fiber.unsafePoll()
      return ended === null ? settled(fiber, inFlight, signal) : fromExit(Exit.flatten(ended))
    }

    const open: Open = (opening, signal, endsQuietly = false) => {
      if (closing !== undefined) return failing(closedError())
      if (signal?.aborted) return failing(signal.reason)
      if (runtime === undefined) return later(ready().then(() => open(opening, signal, endsQuietly)))
      return StreamSource.open(runtime, opening(Context.get(runtime.context, LlmFuse)), {
        signal,
        inFlight,
        endsQuietly
      })
    }

    const close = () => {
      closing ??= Promise.resolve().then(() => {
        for (const stop of inFlight) stop(closedError())
        building.unsafeInterruptAsFork(FiberId.none)
        return Effect.runPromise(Scope.close(scope, Exit.void))
      })
      return closing
    }
    return new FuseClient(run, open, close)
  }

  /** Asks the providers in order until one answers; a request is a string or a `ChatRequest`. */
  complete(request: string | ChatRequest, options?: ClientCallOptions): Promise<ChatResponse> {
    if (options === undefined) return this.#run((service) => service.complete(request))
    const { signal, ...callOptions } = options
    return this.#run((service) => service.complete(request, callOptions), signal)
  }

  /**
   * Asks as `complete` does, and hands out the answer as it comes: `for await (const event of client.stream("..."))`.
   * It begins when the first event is asked for, and ends with `Finished` or by throwing one typed error. Leaving the
   * loop, or an abort, stops everything at once.
   */
  stream(request: string | ChatRequest, options?: ClientCallOptions): EventIterator<ChatEvent> {
    const { signal, ...callOptions } = options ?? {}
    const events = (service: Service) => Reception.toPull(service.stream(request, callOptions))
    return new EventIterator(() => this.#open(events, signal))
  }

  /**
   * The text of the answer alone, piece by piece. It never restarts: joined, the pieces are the answer, or the loop
   * throws, whatever `recovery` says.
   */
  text(request: string | ChatRequest, options?: ClientCallOptions): EventIterator<string> {
    const { signal, ...callOptions } = options ?? {}
    const texts = (service: Service) =>
      Effect.map(Reception.toPull(service.stream(request, { ...callOptions, recovery: "fail" })), Effect.map(textsOf))
    return new EventIterator(() => this.#open(texts, signal))
  }

  /** Answers with an object of an Effect `Schema`: `response.object`. What does not fit goes to the next provider. */
  object<A, I>(
    schema: Schema.Schema<A, I>,
    request: string | ChatRequest,
    options?: ClientCallOptions & Pick<ObjectOptions, "repair">
  ): Promise<ObjectResponse<A>> {
    const { signal, ...callOptions } = options ?? {}
    return this.#run((service) => service.object(schema, request, callOptions), signal)
  }

  /** Turns texts into vectors, one each, in their order; never of two embedding spaces. */
  embed(
    request: string | ReadonlyArray<string> | EmbeddingRequest,
    options?: ClientCallOptions
  ): Promise<EmbeddingResponse> {
    const { signal, ...callOptions } = options ?? {}
    return this.#run((service) => service.embed(request, callOptions), signal)
  }

  /** Where a provider's circuit stands; rejects with `UnknownProviderError` for a name that is not in the list. */
  circuitState(provider: string): Promise<CircuitState> {
    return this.#run((service) => service.circuitState(provider))
  }

  /**
   * Everything that happens, from the first event asked for: `for await (const event of client.events())`. It holds no
   * call up: what a slow reader misses is counted. It ends when the loop is left, or the client closed.
   */
  events(): EventIterator<ObservedEvent> {
    return new EventIterator(() => this.#open((service) => Stream.toPull(service.events), undefined, true))
  }

  /** How each provider is doing, in the order of the list. */
  health(): Promise<ReadonlyArray<ProviderHealth>> {
    return this.#run((service) => service.health)
  }

  /** Takes a provider out by hand: calls pass it over until `restore`. What is under way there goes on. */
  isolate(provider: string): Promise<void> {
    return this.#run((service) => service.isolate(provider))
  }

  /** Puts a provider back, however its circuit stands, and forgets its failures. */
  restore(provider: string): Promise<void> {
    return this.#run((service) => service.restore(provider))
  }

  /** Ends all calls that are under way (they reject with `ClientClosedError`) and lets go of everything held. */
  close(): Promise<void> {
    return this.#close()
  }

  /** Closes the client at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#close()
  }
}

const textsOf = Chunk.filterMap((event: ChatEvent) =>
  event._tag === "TextDelta" ? Option.some(event.text) : Option.none()
)

const failing = (reason: unknown): Source<never> => ({
  isStopped: () => false,
  pull: () => Promise.reject(reason),
  close: () => Promise.resolve()
})

/** A source that is not there yet. */
const later = <A>(source: Promise<Source<A>>): Source<A> => {
  let opened: Source<A> | undefined
  source.then(
    (it) => {
      opened = it
    },
    () => undefined
  )
  return {
    isStopped: () => opened?.isStopped() ?? false,
    pull: () => source.then((it) => it.pull()),
    close: () => source.then((it) => it.close()).catch(() => undefined)
  }
}

const fromExit = <A>(exit: Exit.Exit<A, unknown>): Promise<A> =>
  Exit.isSuccess(exit) ? Promise.resolve(exit.value) : Promise.reject(Cause.squash(exit.cause))

/** The end of a fiber as a promise. An abort or a close rejects it at once and interrupts the fiber. */
const settled = <A>(
  fiber: Fiber.RuntimeFiber<Exit.Exit<A, unknown>>,
  inFlight: Set<(reason: unknown) => void>,
  signal: AbortSignal | undefined
): Promise<A> =>
  new Promise((resolve, reject) => {
    const stopWith = (reason: unknown) => {
      leave()
      reject(reason)
      fiber.unsafeInterruptAsFork(FiberId.none)
    }
    const onAbort = () => stopWith(signal?.reason)
    const leave = () => {
      inFlight.delete(stopWith)
      signal?.removeEventListener("abort", onAbort)
    }
    inFlight.add(stopWith)
    signal?.addEventListener("abort", onAbort)
    fiber.addObserver((ended) => {
      leave()
      const exit = Exit.flatten(ended)
      if (Exit.isSuccess(exit)) resolve(exit.value)
      else reject(Cause.squash(exit.cause))
    })
  })
