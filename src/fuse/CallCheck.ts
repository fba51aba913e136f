/** Looks at the options of a call before anybody is asked. */
import { type ConfigError, Either } from "effect"
import { InvalidRequestError, UnknownProviderError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as RetryPolicy from "../pipeline/RetryPolicy.ts"
import { type Recovery, recoveries } from "./CallStream.ts"
import type { CallOptions, Resolved } from "./FuseOptions.ts"
import { type HedgeOptions, type HedgeRule, resolve as resolveHedge } from "./HedgeRule.ts"
import type { Member } from "./Member.ts"
import * as Timeouts from "./Timeouts.ts"

/** A call that may begin. */
export interface CheckedCall {
  /** Whom to ask, in order. */
  readonly candidates: ReadonlyArray<Member>
  readonly deadlineMillis: number | undefined
  /** The call's own limits. */
  readonly timeouts: Timeouts.Timeouts | undefined
  readonly recovery: Recovery
  /** The call's own way to retry. */
  readonly retry: RetryPolicy.RetryPolicy | undefined
  readonly hedge: HedgeRule | undefined
  readonly tag: string | undefined
  readonly maxCost: number | undefined
  /** Whether the call has options of its own that decide how it is answered. */
  readonly isOfItsOwn: boolean
}

/** A name that is not in the list, or an option that is wrong in itself. */
export type CallRefusal = UnknownProviderError | InvalidRequestError

type Checked<A> = Either.Either<A, CallRefusal>

const optionNames: ReadonlyArray<keyof CallOptions> = [
  "providers",
  "deadline",
  "timeouts",
  "retry",
  "hedge",
  "recovery",
  "tag",
  "maxCost"
]

/** Finds a provider by its name. */
export const find = (members: ReadonlyMap<string, Member>, name: string): Either.Either<Member, UnknownProviderError> =>
  Either.fromNullable(members.get(name), () => {
    const known = [...members.keys()]
    const message = `no provider is called ${JSON.stringify(name)}; known: ${known.join(", ")}`
    return new UnknownProviderError({ provider: String(name), known, message })
  })

/** A function that checks calls: what is wrong is named with its value and what is allowed. */
export const make = (
  members: ReadonlyMap<string, Member>,
  options: Resolved
): ((callOptions: CallOptions | undefined) => Checked<CheckedCall>) => {
  const everybody = [...members.values()]
  const { deadlineMillis, recovery, hedge, maxCost } = options

  const candidatesFor = (names: ReadonlyArray<string> | undefined): Checked<ReadonlyArray<Member>> =>
    names === undefined
      ? Either.right(everybody)
      : !Array.isArray(names) || names.length === 0 || new Set(names).size < names.length
        ? refuse(`providers is ${JSON.stringify(names)}; allowed: a list of names, at least one, each once`)
        : Either.all(names.map((name) => find(members, name)))

  const withOptions = (own: CallOptions): Checked<CheckedCall> =>
    Either.gen(function* () {
      yield* asRequestError(OptionCheck.knownKeys("", own, optionNames))
      const candidates = yield* candidatesFor(own.providers)
      if (own.timeouts !== undefined) yield* asRequestError(Timeouts.resolve(own.timeouts, "timeouts"))
      return {
        candidates,
        timeouts: own.timeouts,
        deadlineMillis:
          own.deadline === undefined
            ? deadlineMillis
            : yield* asRequestError(OptionCheck.durationMillis("deadline", own.deadline, "above-zero")),
        recovery:
          own.recovery === undefined
            ? recovery
            : yield* asRequestError(OptionCheck.oneOf("recovery", own.recovery, recoveries)),
        retry:
          own.retry === undefined
            ? undefined
            : yield* asRequestError(RetryPolicy.check({ ...options.retryOptions, ...own.retry }, "retry")),
        hedge: own.hedge === undefined ? hedge : own.hedge === false ? undefined : yield* ownHedge(own.hedge),
        tag: own.tag === undefined ? undefined : yield* ownTag(own.tag),
        maxCost:
          own.maxCost === undefined ? maxCost : yield* asRequestError(OptionCheck.positive("maxCost", own.maxCost)),
        isOfItsOwn:
          own.timeouts !== undefined || own.retry !== undefined || own.hedge !== undefined || own.maxCost !== undefined
      }
    })

  const plain = Either.right({
    candidates: everybody,
    timeouts: undefined,
    deadlineMillis,
    recovery,
    ...none,
    hedge,
    maxCost
  })

  return (callOptions) => (callOptions === undefined ? plain : withOptions(callOptions))
}

const none = { retry: undefined, tag: undefined, isOfItsOwn: false }

const ownHedge = (hedge: HedgeOptions) => asRequestError(resolveHedge(hedge, "hedge"))

const ownTag = (tag: unknown): Checked<string> =>
  typeof tag === "string" ? Either.right(tag) : refuse(`tag is ${String(tag)}; allowed: a text`)

const refuse = (message: string) => Either.left(new InvalidRequestError({ provider: "llmfuse", message }))

const asRequestError = <A>(checked: Either.Either<A, ConfigError.ConfigError>): Checked<A> =>
  Either.orElse(checked, (error) => refuse("message" in error ? error.message : String(error)))
