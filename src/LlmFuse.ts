/** The service: keeps LLM calls answered when providers fail. */
import { type Clock, type ConfigError, Context, Duration, Effect, Either, Layer, Stream } from "effect"
import * as Call from "./fuse/Call.ts"
import * as CallCheck from "./fuse/CallCheck.ts"
import * as CallStream from "./fuse/CallStream.ts"
import { type Emit, toListener } from "./fuse/Emit.ts"
import * as FuseOptions from "./fuse/FuseOptions.ts"
import * as Member from "./fuse/Member.ts"
import * as Reception from "./fuse/Reception.ts"
import type { ChatEvent } from "./model/ChatEvent.ts"
import type { ChatRequest } from "./model/ChatRequest.ts"
import type { ChatResponse } from "./model/ChatResponse.ts"
import {
  type CandidateError,
  DeadlineExceededError,
  type LlmFuseError,
  type UnknownProviderError
} from "./model/LlmError.ts"
import * as OptionCheck from "./model/OptionCheck.ts"
import type * as CircuitState from "./pipeline/CircuitState.ts"
import * as Deadline from "./pipeline/Deadline.ts"
import { failover } from "./pipeline/Failover.ts"
import * as Monotonic from "./pipeline/Monotonic.ts"
import type { Provider } from "./provider/Provider.ts"

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
  /** Where a provider's circuit stands. */
  readonly circuitState: (provider: string) => Effect.Effect<CircuitState.CircuitState, UnknownProviderError>
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
  const run = (call: Call.Call, candidates: ReadonlyArray<Member.Member>) =>
    failover(
      candidates,
      (member, position) => member.ask(call, countLeft(candidates, position + 1)),
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

  const answer = (
    { request, candidates, timeouts, deadlineMillis, recovery }: CallCheck.CheckedCall,
    clock: Clock.Clock,
    outlet: CallStream.Outlet | undefined
  ): Effect.Effect<ChatResponse, LlmFuseError> => {
    const startMillis = Monotonic.unsafeMillis(clock)
    const deadline = deadlineMillis === undefined ? undefined : Deadline.after(startMillis, deadlineMillis)
    const stream = outlet === undefined ? undefined : CallStream.make(recovery, outlet)
    const call: Call.Call = { request, clock, startMillis, deadline, timeouts, stream, attempts: [] }
    const running = run(call, candidates)
    return deadlineMillis === undefined
      ? running
      : Deadline.within(deadline, () => Call.tell(call, deadlineExceeded(call, deadlineMillis)))(running)
  }

  const told = emit === undefined ? (call: Answering) => call : withEvents(emit)

  const ask = (input: string | ChatRequest, own: FuseOptions.CallOptions | undefined, outlet?: CallStream.Outlet) =>
    told(
      Effect.clockWith((clock): Answering => {
        const checked = check(input, own)
        return Either.isLeft(checked) ? Effect.fail(checked.left) : answer(checked.right, clock, outlet)
      })
    )

  return {
    complete: (input, callOptions) => ask(input, callOptions),
    stream: (input, callOptions) => Stream.fromPull(Reception.open((outlet) => ask(input, callOptions, outlet))),
    circuitState: (name) => Effect.flatMap(CallCheck.find(members, name), (member) => member.circuitState)
  }
}

type Answering = Effect.Effect<ChatResponse, LlmFuseError>

/** How many candidates from an index on have a circuit that is not open. */
const countLeft = (candidates: ReadonlyArray<Member.Member>, from: number): Effect.Effect<number> =>
  Effect.suspend(() => {
    const states = Effect.forEach(candidates.slice(from), (member) => member.circuitState)
    return Effect.map(states, (all) => all.filter((state) => state !== "Open").length)
  })

const deadlineExceeded = (call: Call.Call, millis: number): DeadlineExceededError => {
  const provider = call.attempts.at(-1)?.provider ?? "llmfuse"
  const message = `no answer within the deadline of ${millis} ms`
  return new DeadlineExceededError({ provider, deadline: Duration.millis(millis), message })
}

const withEvents =
  (emit: Emit) =>
  (call: Answering): Answering =>
    Effect.tapBoth(call, {
      onFailure: (error) => emit({ _tag: "CallFailed", error }),
      onSuccess: ({ provider, attempts, latency }) =>
        emit({ _tag: "CallSucceeded", provider, attempt: attempts.at(-1)?.number ?? 0, latency })
    })
