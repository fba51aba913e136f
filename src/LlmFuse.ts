/** The service: keeps LLM calls answered when providers fail. */
import { Clock, type ConfigError, Context, Duration, Effect, Either, Layer, type Schema, type Stream } from "effect"
import * as Call from "./fuse/Call.ts"
import * as CallCheck from "./fuse/CallCheck.ts"
import * as CallStream from "./fuse/CallStream.ts"
import * as Chat from "./fuse/Chat.ts"
import * as EmbeddingAnswer from "./fuse/EmbeddingAnswer.ts"
import { type Emit, toListener } from "./fuse/Emit.ts"
import * as FuseOptions from "./fuse/FuseOptions.ts"
import * as Member from "./fuse/Member.ts"
import type { ObjectResponse } from "./fuse/ObjectAnswer.ts"
import * as ObjectAnswer from "./fuse/ObjectAnswer.ts"
import * as Reception from "./fuse/Reception.ts"
import type { Job } from "./fuse/Stages.ts"
import type { ChatEvent } from "./model/ChatEvent.ts"
import type { ChatRequest } from "./model/ChatRequest.ts"
import type { ChatResponse } from "./model/ChatResponse.ts"
import type { EmbeddingRequest, EmbeddingResponse } from "./model/Embedding.ts"
import * as Embedding from "./model/Embedding.ts"
import {
  type CandidateError,
  DeadlineExceededError,
  type LlmFuseError,
  type UnknownProviderError
} from "./model/LlmError.ts"
import * as OptionCheck from "./model/OptionCheck.ts"
import { normalize } from "./model/RequestCheck.ts"
import type * as CircuitState from "./pipeline/CircuitState.ts"
import * as Deadline from "./pipeline/Deadline.ts"
import { failover } from "./pipeline/Failover.ts"
import * as Monotonic from "./pipeline/Monotonic.ts"
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
    const emit = resolved.onEvent === undefined ? undefined : toListener(resolved.onEvent)
    const members = new Map<string, Member.Member>()
    for (const input of options.providers) {
      const provider = yield* checkProvider(Effect.isEffect(input) ? yield* input : input)
      if (members.has(provider.name)) {
        return yield* OptionCheck.refuse(
          "providers",
          provider.name,
          "each name once; give one of the two another `name`"
        )
      }
      members.set(provider.name, yield* Member.make(provider, resolved, emit))
    }
    return fromMembers(members, resolved, emit)
  })

const checkProvider = (provider: Provider): Either.Either<Provider, ConfigError.ConfigError> =>
  typeof provider?.complete !== "function"
    ? OptionCheck.refuse("providers", provider, "providers: { name, complete } or an effect that yields one")
    : typeof provider.name !== "string" || provider.name.trim() === "" || /^\d+$/.test(provider.name)
      ? OptionCheck.refuse("providers.name", provider.name, "a text that is not blank and no number")
      : Either.right(provider)

const fromMembers = (
  members: ReadonlyMap<string, Member.Member>,
  options: FuseOptions.Resolved,
  emit: Emit | undefined
): Service => {
  const check = CallCheck.make(members, options)

  /** The pipeline: failover, and behind each member its breaker, retry, limits and timers. */
  const run = <A>(call: Call.Call, job: Job<A>, candidates: ReadonlyArray<Member.Member>) =>
    failover(
      candidates,
      (member, position) => member.ask(call, job, countLeft(candidates.slice(position + 1), job)),
      () => failoverOptions(call, candidates)
    )

  const failoverOptions = (call: Call.Call, candidates: ReadonlyArray<Member.Member>) => {
    const names = candidates.map(({ provider }) => provider.name)
    return {
      onFailure: (error: CandidateError, position: number) => candidates[position]?.noteFailure(call, error),
      mayFailOver: (error: CandidateError) =>
        options.failover.verdict(CallStream.reasonOf(error)).failover && !CallStream.isFinal(call.stream, error),
      onExhausted: (errors: ReadonlyArray<CandidateError>) => Call.exhausted(call, names, errors),
      onFailover:
        emit === undefined
          ? undefined
          : (error: CandidateError, from: number, to: number) =>
              emit({ _tag: "FailedOver", from: names[from] ?? "", to: names[to] ?? "", error })
    }
  }

  const told = emit === undefined ? <A>(call: Answering<A>) => call : withEvents(emit)

  /** Begins a call: checks what is asked, and runs it within its deadline. */
  const begin = <In, A extends Told>(
    input: Either.Either<In, LlmFuseError>,
    callOptions: FuseOptions.CallOptions | undefined,
    use: (input: In, call: Call.Call, candidates: ReadonlyArray<Member.Member>) => Answering<A>,
    outlet?: CallStream.Outlet
  ): Answering<A> =>
    told(
      Effect.withFiberRuntime<A, LlmFuseError>((fiber): Answering<A> => {
        if (Either.isLeft(input)) return Effect.fail(input.left)
        const checked = check(callOptions)
        if (Either.isLeft(checked)) return Effect.fail(checked.left)
        const { candidates, timeouts, deadlineMillis, recovery } = checked.right
        const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
        const startMillis = Monotonic.unsafeMillis(clock)
        const own = deadlineMillis === undefined ? undefined : Deadline.after(startMillis, deadlineMillis)
        const deadline = Deadline.earlier(own, fiber.getFiberRef(Deadline.current))
        const stream = outlet === undefined ? undefined : CallStream.make(recovery, outlet)
        const call: Call.Call = { clock, startMillis, deadline, timeouts, stream, attempts: [] }
        const running = use(input.right, call, candidates)
        return deadline === undefined
          ? running
          : Deadline.within(deadline, () => Call.tell(call, deadlineExceeded(call, deadline)))(running)
      })
    )

  const chat = (
    input: string | ChatRequest,
    callOptions: FuseOptions.CallOptions | undefined,
    outlet?: CallStream.Outlet
  ) =>
    begin(
      normalize(input),
      callOptions,
      (request, call, candidates) => run(call, Chat.make(request), candidates),
      outlet
    )

  return {
    complete: (input, callOptions) => chat(input, callOptions),
    stream: (input, callOptions) => Reception.toStream((outlet) => chat(input, callOptions, outlet)),
    object: (schema, input, objectOptions) => {
      const { repair = false, ...callOptions } = objectOptions ?? {}
      const request = Either.flatMap(normalize(input), (request) =>
        normalize({ ...request, responseFormat: { schema } })
      )
      return begin(request, callOptions, (asked, call, candidates) =>
        run(call, ObjectAnswer.make(schema, asked, repair), candidates)
      )
    },
    embed: (input, callOptions) =>
      begin(Embedding.normalize(input), callOptions, (batch, call, candidates) => {
        const able = candidates.map(({ provider }) => provider).filter(({ embed }) => embed !== undefined)
        const space = able[0] === undefined ? "" : EmbeddingAnswer.spaceOf(able[0])
        const batches = EmbeddingAnswer.batchesOf(
          batch,
          able.filter((provider) => EmbeddingAnswer.spaceOf(provider) === space)
        )
        return Effect.map(
          Effect.forEach(batches, (it) => run(call, EmbeddingAnswer.make(it, space), candidates)),
          EmbeddingAnswer.joined
        )
      }),
    circuitState: (name) => Effect.flatMap(CallCheck.find(members, name), (member) => member.circuitState),
    isolate: (name) => Effect.flatMap(CallCheck.find(members, name), (member) => member.isolate),
    restore: (name) => Effect.flatMap(CallCheck.find(members, name), (member) => member.restore)
  }
}

type Answering<A> = Effect.Effect<A, LlmFuseError>

/** What every answer tells of its call. */
type Told = Pick<ChatResponse, "provider" | "attempts" | "latency">

/** How many of the candidates could do the job and have a circuit that is not open. */
const countLeft = (candidates: ReadonlyArray<Member.Member>, job: Job<unknown>): Effect.Effect<number> =>
  Effect.suspend(() => {
    const able = candidates.filter(({ provider }) => job.obstacle(provider) === undefined)
    const states = Effect.forEach(able, (member) => member.circuitState)
    return Effect.map(states, (all) => all.filter((state) => state === "Closed" || state === "HalfOpen").length)
  })

const deadlineExceeded = (call: Call.Call, { atMillis }: Deadline.Deadline): DeadlineExceededError => {
  const millis = Math.max(0, Math.round(atMillis - call.startMillis))
  const provider = call.attempts.at(-1)?.provider ?? "llmfuse"
  const message = `no answer within the deadline of ${millis} ms`
  return new DeadlineExceededError({ provider, deadline: Duration.millis(millis), message })
}

const withEvents =
  (emit: Emit) =>
  <A extends Told>(call: Answering<A>): Answering<A> =>
    Effect.tapBoth(call, {
      onFailure: (error) => emit({ _tag: "CallFailed", error }),
      onSuccess: ({ provider, attempts, latency }) =>
        emit({ _tag: "CallSucceeded", provider, attempt: attempts.at(-1)?.number ?? 0, latency })
    })
