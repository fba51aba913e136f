/** The service: keeps LLM calls answered when providers fail. */
import { type ConfigError, Context, Duration, Effect, Either, Layer } from "effect"
import * as Call from "./fuse/Call.ts"
import { type Emit, toListener } from "./fuse/Emit.ts"
import * as FuseOptions from "./fuse/FuseOptions.ts"
import * as Member from "./fuse/Member.ts"
import { type ChatRequest, normalize } from "./model/ChatRequest.ts"
import type { ChatResponse } from "./model/ChatResponse.ts"
import {
  type CandidateError,
  DeadlineExceededError,
  InvalidRequestError,
  type LlmFuseError,
  UnknownProviderError
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
  const everybody = [...members.values()]
  const known = [...members.keys()]

  const find = (name: string): Either.Either<Member.Member, UnknownProviderError> =>
    Either.fromNullable(members.get(name), () => {
      const message = `no provider is called ${JSON.stringify(name)}; known: ${known.join(", ")}`
      return new UnknownProviderError({ provider: String(name), known, message })
    })

  const all = Either.right(everybody)
  const candidatesFor = (
    names: ReadonlyArray<string> | undefined
  ): Either.Either<ReadonlyArray<Member.Member>, UnknownProviderError | InvalidRequestError> =>
    names === undefined
      ? all
      : !Array.isArray(names) || names.length === 0 || new Set(names).size < names.length
        ? refuse(`providers is ${JSON.stringify(names)}; allowed: a list of names, at least one, each once`)
        : Either.all(names.map(find))

  /** The pipeline: failover, and behind each member its breaker, retry, limits and timeout. */
  const run = (call: Call.Call, candidates: ReadonlyArray<Member.Member>) =>
    failover(
      candidates,
      (member, position) => member.ask(call, isNobodyLeft(candidates, position + 1)),
      () => failoverOptions(call, candidates.map(nameOf))
    )

  const failoverOptions = (call: Call.Call, names: ReadonlyArray<string>) => ({
    mayFailOver: (error: CandidateError) => options.failover.verdict(error).failover,
    onExhausted: (errors: ReadonlyArray<CandidateError>) => Call.exhausted(call, names, errors),
    onFailover:
      emit === undefined
        ? undefined
        : (error: CandidateError, from: number, to: number) =>
            emit({ _tag: "FailedOver", from: names[from] ?? "", to: names[to] ?? "", error })
  })

  const complete: Service["complete"] = (input, callOptions) =>
    Effect.clockWith((clock): Effect.Effect<ChatResponse, LlmFuseError> => {
      const request = normalize(input)
      if (Either.isLeft(request)) return Effect.fail(request.left)
      const candidates = candidatesFor(callOptions?.providers)
      if (Either.isLeft(candidates)) return Effect.fail(candidates.left)
      const startMillis = Monotonic.unsafeMillis(clock)
      const call = { request: request.right, clock, startMillis, deadline: undefined, attempts: [] }
      return callOptions?.deadline === undefined && options.deadlineMillis === undefined
        ? run(call, candidates.right)
        : Effect.flatMap(deadlineMillis(callOptions, options.deadlineMillis), (millis) => {
            const timed: Call.Call = { ...call, deadline: Deadline.after(startMillis, millis) }
            return run(timed, candidates.right).pipe(
              Deadline.within(timed.deadline, () => Call.tell(timed, deadlineExceeded(timed, millis)))
            )
          })
    })

  return {
    complete: emit === undefined ? complete : withEvents(complete, emit),
    circuitState: (name) => Effect.flatMap(find(name), (member) => member.circuitState)
  }
}

const nameOf = (member: Member.Member): string => member.provider.name

const refuse = (message: string) => Either.left(new InvalidRequestError({ provider: "llmfuse", message }))

/** Whether every candidate from an index on has an open circuit, or there is none. */
const isNobodyLeft = (candidates: ReadonlyArray<Member.Member>, from: number): Effect.Effect<boolean> =>
  Effect.suspend(() =>
    Effect.every(candidates.slice(from), (member) => Effect.map(member.circuitState, (state) => state === "Open"))
  )

const deadlineMillis = (
  callOptions: FuseOptions.CallOptions | undefined,
  fallback: number | undefined
): Either.Either<number, InvalidRequestError> =>
  Either.mapLeft(
    OptionCheck.durationMillis("deadline", callOptions?.deadline ?? fallback, "above-zero"),
    (error) => new InvalidRequestError({ provider: "llmfuse", message: messageOf(error) })
  )

const messageOf = (error: ConfigError.ConfigError): string => ("message" in error ? error.message : String(error))

const deadlineExceeded = (call: Call.Call, millis: number): DeadlineExceededError => {
  const provider = call.attempts.at(-1)?.provider ?? "llmfuse"
  const message = `no answer within the deadline of ${millis} ms`
  return new DeadlineExceededError({ provider, deadline: Duration.millis(millis), message })
}

const withEvents =
  (complete: Service["complete"], emit: Emit): Service["complete"] =>
  (input, callOptions) =>
    Effect.tapBoth(complete(input, callOptions), {
      onFailure: (error) => emit({ _tag: "CallFailed", error }),
      onSuccess: ({ provider, attempts, latency }) =>
        emit({ _tag: "CallSucceeded", provider, attempt: attempts.at(-1)?.number ?? 0, latency })
    })
