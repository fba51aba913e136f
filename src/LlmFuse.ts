/** The service: keeps LLM calls answered when providers fail. */
import { type ConfigError, Context, Effect, Either, Layer, type Schema, type Stream } from "effect"
import * as Answering from "./fuse/Answering.ts"
import type * as Call from "./fuse/Call.ts"
import * as CallCheck from "./fuse/CallCheck.ts"
import * as Chat from "./fuse/Chat.ts"
import type { Conversation } from "./fuse/Conversation.ts"
import * as EmbeddingAnswer from "./fuse/EmbeddingAnswer.ts"
import * as FuseOptions from "./fuse/FuseOptions.ts"
import type { ProviderHealth } from "./fuse/Health.ts"
import * as Kept from "./fuse/Kept.ts"
import * as Member from "./fuse/Member.ts"
import type { ObjectResponse } from "./fuse/ObjectAnswer.ts"
import * as ObjectAnswer from "./fuse/ObjectAnswer.ts"
import * as Reception from "./fuse/Reception.ts"
import * as Search from "./fuse/Search.ts"
import type { ChatEvent } from "./model/ChatEvent.ts"
import type { ChatRequest } from "./model/ChatRequest.ts"
import type { ChatResponse } from "./model/ChatResponse.ts"
import type { EmbeddingRequest, EmbeddingResponse } from "./model/Embedding.ts"
import * as Embedding from "./model/Embedding.ts"
import type { LlmFuseError, UnknownProviderError } from "./model/LlmError.ts"
import * as OptionCheck from "./model/OptionCheck.ts"
import { normalize } from "./model/RequestCheck.ts"
import * as EventHub from "./observability/EventHub.ts"
import * as Logs from "./observability/Logs.ts"
import * as Metrics from "./observability/Metrics.ts"
import type * as CircuitState from "./pipeline/CircuitState.ts"
import type { Provider } from "./provider/Provider.ts"

/** Options of one call for an object. */
export interface ObjectOptions extends FuseOptions.CallOptions {
  /** Whether a provider whose answer does not fit is shown what is wrong and asked once more. Default: false. */
  readonly repair?: boolean | undefined
}

/** What `LlmFuse` does. */
export interface Service {
  /**
   * Asks the providers in order until one answers. Fails with `AllProvidersFailedError` when nobody does, and with the
   * error itself where another provider must not be asked (see the failure table).
   */
  readonly complete: (
    request: string | ChatRequest,
    options?: FuseOptions.CallOptions
  ) => Effect.Effect<ChatResponse, LlmFuseError>
  /**
   * The same, with the answer as it comes. Before its first content any failure is dealt with as in `complete`, and the
   * caller sees nothing of it; afterwards `recovery` decides. A stream ends with `Finished`, or fails with one typed
   * error; interrupting it stops everything at once. Nothing is sent before the stream is run.
   */
  readonly stream: (
    request: string | ChatRequest,
    options?: FuseOptions.CallOptions
  ) => Stream.Stream<ChatEvent, LlmFuseError>
  /**
   * Answers with an object of a schema, which must need nothing and decode without waiting. An answer that does not fit
   * is an `InvalidResponseError` with the reason `"schema"` and goes to the next provider; with `repair` the same provider
   * is first shown once what is wrong. An object that was cut off at the token limit ends the call, with the reason
   * `"length"`.
   */
  readonly object: <A, I>(
    schema: Schema.Schema<A, I>,
    request: string | ChatRequest,
    options?: ObjectOptions
  ) => Effect.Effect<ObjectResponse<A>, LlmFuseError>
  /**
   * Turns texts into vectors, one each, in their order. Only providers of one embedding space are asked, the space of the
   * first that can embed: vectors of two spaces cannot be compared. Many texts go in several requests.
   */
  readonly embed: (
    request: string | ReadonlyArray<string> | EmbeddingRequest,
    options?: FuseOptions.CallOptions
  ) => Effect.Effect<EmbeddingResponse, LlmFuseError>
  /** Where a provider's circuit stands. */
  readonly circuitState: (provider: string) => Effect.Effect<CircuitState.CircuitState, UnknownProviderError>
  /**
   * Everything that happens, from the moment the stream is run: of a call that is under way then what its attempts do,
   * and not its end. What a slow reader misses is counted.
   */
  readonly events: Stream.Stream<EventHub.ObservedEvent>
  /** How each provider is doing, in the order of the list. */
  readonly health: Effect.Effect<ReadonlyArray<ProviderHealth>>
  /** Takes a provider out by hand: calls pass it over until `restore`. What is under way there goes on. */
  readonly isolate: (provider: string) => Effect.Effect<void, UnknownProviderError>
  /** Puts a provider back, however its circuit stands, and forgets its failures. */
  readonly restore: (provider: string) => Effect.Effect<void, UnknownProviderError>
}

/**
 * The service. `yield* LlmFuse` in an Effect program; `LlmFuse.layer` provides it. Breakers and limits live as long as
 * the layer: provide it once around the program, not around each call.
 */
export class LlmFuse extends Context.Tag("llmfuse/LlmFuse")<LlmFuse, Service>() {
  /**
   * The service from options. Its type adds up what the providers need and what building them can fail with; a wrong
   * option, an empty list and a duplicate name are `ConfigError`s that name them.
   */
  static readonly layer = <const Providers extends ReadonlyArray<FuseOptions.ProviderInput>>(
    options: FuseOptions.Options<Providers>
  ): Layer.Layer<
    LlmFuse,
    ConfigError.ConfigError | FuseOptions.ProviderErrorOf<Providers[number]>,
    FuseOptions.ProviderContextOf<Providers[number]>
  > => Layer.scoped(LlmFuse, build(options)) as never
}

const build = (options: FuseOptions.Options): Effect.Effect<Service, unknown, unknown> =>
  Effect.gen(function* () {
    const resolved = yield* FuseOptions.resolve(options)
    const members = new Map<string, Member.Member>()
    const hub = yield* EventHub.make(resolved.captureContent)
    if (resolved.onEvent !== undefined) hub.listen(resolved.onEvent)
    if (resolved.logs) hub.listen(yield* Logs.listener)
    const modelOf = (name: string) => members.get(name)?.provider.model
    const count = resolved.metrics && Metrics.listener({ ...resolved.metrics, modelOf })
    if (count !== undefined) hub.listen(count, (dropped) => count({ _tag: "EventsDropped", count: dropped }))
    const kept = resolved.cache === undefined ? undefined : yield* Kept.make(resolved.cache)
    for (const input of options.providers) {
      const provider = yield* checkProvider(Effect.isEffect(input) ? yield* input : input)
      if (members.has(provider.name)) {
        return yield* OptionCheck.refuse(
          "providers",
          provider.name,
          "each name once; give one of the two another `name`"
        )
      }
      members.set(provider.name, yield* Member.make(provider, resolved, hub))
    }
    if (count !== undefined) yield* Metrics.begin(count, [...members.keys()])
    const account = FuseOptions.accountOf(
      resolved,
      [...members.values()].map(({ provider }) => provider)
    )
    const answering = Answering.make(CallCheck.make(members, resolved), resolved, kept, hub, account)
    return fromMembers(members, Search.make(resolved), answering, hub)
  })

const checkProvider = (provider: Provider): Either.Either<Provider, ConfigError.ConfigError> =>
  typeof provider?.complete !== "function"
    ? OptionCheck.refuse("providers", provider, "providers: { name, complete } or an effect that yields one")
    : typeof provider.name !== "string" || provider.name.trim() === "" || /^\d+$/.test(provider.name)
      ? OptionCheck.refuse("providers.name", provider.name, "a text that is not blank and no number")
      : Either.right(provider)

const fromMembers = (
  members: ReadonlyMap<string, Member.Member>,
  search: Search.Search,
  { converse, answer }: Answering.Answerer,
  hub: EventHub.EventHub
): Service => {
  const chat = (input: string | ChatRequest): Either.Either<Conversation<ChatResponse>, LlmFuseError> =>
    Either.map(normalize(input), (request) => ({
      request,
      run: (call, candidates) => search(call, Chat.make(request), candidates),
      accept: Either.right
    }))

  const withMember = <A>(name: string, use: (member: Member.Member) => Effect.Effect<A>) =>
    Effect.flatMap(CallCheck.find(members, name), use)

  return {
    complete: (input, callOptions) => converse("complete", chat(input), callOptions),
    stream: (input, callOptions) =>
      Reception.toStream((outlet) => converse("stream", chat(input), callOptions, outlet)),
    object: (schema, input, objectOptions) => {
      const { repair = false, ...callOptions } = objectOptions ?? {}
      const read = ObjectAnswer.reader(schema)
      const conversation = Either.map(
        Either.flatMap(normalize(input), (request) => normalize({ ...request, responseFormat: { schema } })),
        (request) => ({
          request,
          run: (call: Call.Call, candidates: ReadonlyArray<Member.Member>) =>
            search(call, ObjectAnswer.make(read, request, repair), candidates),
          accept: (response: ChatResponse) => Either.map(read(response.text), (object) => ({ ...response, object }))
        })
      )
      return converse("object", conversation, callOptions)
    },
    embed: (input, callOptions) =>
      answer("embed", Embedding.normalize(input), callOptions, (batch, call, candidates) => {
        const able = candidates.map(({ provider }) => provider).filter(({ embed }) => embed !== undefined)
        const space = able[0] === undefined ? "" : EmbeddingAnswer.spaceOf(able[0])
        const batches = EmbeddingAnswer.batchesOf(
          batch,
          able.filter((provider) => EmbeddingAnswer.spaceOf(provider) === space)
        )
        return Effect.map(
          Effect.forEach(batches, (it) => search(call, EmbeddingAnswer.make(it, space), candidates)),
          EmbeddingAnswer.joined
        )
      }),
    circuitState: (name) => withMember(name, ({ circuitState }) => circuitState),
    events: hub.events,
    health: Effect.suspend(() => Effect.all([...members.values()].map(({ health }) => health))),
    isolate: (name) => withMember(name, ({ isolate }) => isolate),
    restore: (name) => withMember(name, ({ restore }) => restore)
  }
}
