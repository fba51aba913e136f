/** Answers that are kept for those who ask the same. */
import { type ConfigError, Effect, Either } from "effect"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { LlmFuseError } from "../model/LlmError.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import * as Cache from "../pipeline/Cache.ts"
import { encoded } from "../pipeline/CacheStore.ts"
import { cacheKey } from "./CacheKey.ts"
import type { CacheOptions } from "./CacheOptions.ts"
import * as CacheRule from "./CacheRule.ts"
import * as Call from "./Call.ts"
import * as CallTelling from "./CallTelling.ts"
import * as Chat from "./Chat.ts"
import type { Answering, Conversation } from "./Conversation.ts"
import type { Member } from "./Member.ts"

/** Answers from what is kept, or runs, and keeps what has come of it. */
export type Kept = <A extends ChatResponse>(
  call: Call.Call,
  conversation: Conversation<A>,
  candidates: ReadonlyArray<Member>,
  running: Answering<A>
) => Answering<A>

const optionNames = ["ttl", "staleIfError", "maxEntries", "maxBytes", "store", "onStoreError"]

/** Whether an old answer may stand in: when nobody answered or time ran out, not when it is the request that is wrong. */
const mayServeStale = (error: LlmFuseError): boolean =>
  (error._tag === "AllProvidersFailedError" || error._tag === "DeadlineExceededError") && !halfSaid.has(error)

/** Errors of streams that have handed out part of an answer, which another would double. */
const halfSaid = new WeakSet<LlmFuseError>()

/** Builds the cache. Fails with a `ConfigError` that names the first wrong option, its value and the rule. */
export const make = (options: CacheOptions): Effect.Effect<Kept, ConfigError.ConfigError> =>
  Effect.gen(function* () {
    yield* OptionCheck.knownKeys("cache", options, optionNames)
    const { store, ...rest } = options
    const cache = yield* Cache.make<ChatResponse, LlmFuseError>({
      ...rest,
      store: store && encoded(store, CacheRule.codec),
      isKept: CacheRule.isKept,
      mayServeStale
    })
    return fromCache(cache)
  })

let parties = 0

/**
 * Who shares a run: those who ask the same, with as much time and the same options. A stream goes to its own caller, and
 * a deadline that is somebody else's is not to be shared.
 */
const partyOf = ({ stream, deadline, startMillis, isOfItsOwn }: Call.Call): string => {
  if (stream !== undefined || isOfItsOwn) {
    parties += 1
    return `${parties}`
  }
  return deadline === undefined ? "" : `within ${deadline.atMillis - startMillis}`
}

const fromCache =
  (cache: Cache.Cache<ChatResponse, LlmFuseError>): Kept =>
  <A extends ChatResponse>(
    call: Call.Call,
    { request, accept }: Conversation<A>,
    candidates: ReadonlyArray<Member>,
    running: Answering<A>
  ): Answering<A> => {
    const key = cacheKey(
      request,
      candidates.map(({ provider }) => provider)
    )
    let hasRun = false
    let own: A | undefined
    const run = Effect.suspend(() => {
      hasRun = true
      const answered = Effect.mapBoth(running, {
        onFailure: (error) => {
          if (call.stream?.isCommitted) halfSaid.add(error)
          return error
        },
        // The story of the call is its own, and the limits are those of its time.
        onSuccess: (response): ChatResponse => {
          own = response
          const { rateLimits: _, ...kept } = response
          return { ...kept, attempts: [] }
        }
      })
      return CallTelling.shared(call, answered)
    })

    const served: Effect.Effect<Cache.Served<ChatResponse, LlmFuseError>, LlmFuseError> = Effect.catchTag(
      cache.through(key, run, partyOf(call)),
      "DeadlineExceededError",
      // The time of those who began the run was up before our own.
      (error) => (hasRun || !Call.hasTime(call) ? Effect.fail(error) : served)
    )

    return Effect.flatMap(served, ({ value, source, ageMillis }) => {
      if (source === "miss" && own !== undefined) return Effect.succeed(own)
      const latency = Call.whole(Call.nowOf(call) - call.startMillis)
      const isStale = source === "stale"
      const response = isStale ? CacheRule.servedStale(value, latency, call) : CacheRule.servedFromCache(value, latency)
      const { provider } = response
      return Either.match(accept(response), {
        // What was kept for the same schema fits it; what a foreign store holds may not, and is then no answer.
        onLeft: () => running,
        onRight: (answer) =>
          Effect.suspend(() => {
            if (call.hub.isHeard()) {
              call.hub.tell({ _tag: "ServedFromCache", ...Call.factsOf(call), provider, ageMillis, isStale })
            }
            return Effect.as(Chat.present(call, response), answer)
          })
      })
    })
  }
