/** What is measured: each candidate answers `n` calls, one after the other or 100 at a time. */
import { Effect } from "effect"
import { FuseClient, LlmFuse, Provider } from "../../dist/index.js"
import { requireRival } from "./rivals.mjs"

const {
  bulkhead,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  SamplingBreaker,
  timeout,
  TimeoutStrategy,
  wrap
} = requireRival("cockatiel")

const noop = async () => "ok"

const inSequence = (call) => async (n) => {
  for (let i = 0; i < n; i++) await call()
}

const concurrency = 100

const atOnce = (call) => async (n) => {
  for (let done = 0; done < n; done += concurrency) await Promise.all(Array.from({ length: concurrency }, call))
}

const cockatielStack = (...inner) => {
  const policy = wrap(
    retry(handleAll, { maxAttempts: 2, backoff: new ExponentialBackoff() }),
    circuitBreaker(handleAll, {
      halfOpenAfter: 30_000,
      breaker: new SamplingBreaker({ threshold: 0.5, duration: 30_000 })
    }),
    ...inner,
    bulkhead(1000, 1000)
  )
  return () => policy.execute(noop)
}

const cockatiel = cockatielStack(timeout(30_000, TimeoutStrategy.Aggressive))

const effectProvider = { name: "effect", complete: () => Effect.succeed("ok") }
/** As an adapter that goes through an HTTP client: an effect that does not end at once. */
const asyncEffectProvider = { name: "async", complete: () => Effect.promise(noop) }
const promiseProvider = Provider.fromPromise({ name: "promise", complete: noop })

/** Calls of the service within one fiber; only the loop itself is run as a promise. */
const inOneFiber = (provider) => {
  const fuse = Effect.runSync(Effect.scoped(Effect.provide(LlmFuse, LlmFuse.layer({ providers: [provider] }))))
  return (n) => {
    let left = n
    return Effect.runPromise(
      Effect.whileLoop({ while: () => left > 0, body: () => fuse.complete("hello"), step: () => left-- })
    )
  }
}

const asPromise = (provider) => {
  const client = FuseClient.make({ providers: [provider] })
  return () => client.complete("hello")
}

const clientOfEffect = asPromise(effectProvider)
const clientOfPromise = asPromise(promiseProvider)

/** Ratios are to the yardstick; candidates with many calls at once have their own. */
export const yardstick = "cockatiel, full stack"
export const concurrentYardstick = "cockatiel, full stack, 100 at once"

/** `limit` is the most that a candidate may cost of its yardstick. */
export const candidates = [
  { name: "await noop()", run: inSequence(noop) },
  { name: yardstick, run: inSequence(cockatiel) },
  { name: "cockatiel without timeout", run: inSequence(cockatielStack()) },
  { name: "LlmFuse in one fiber, Effect provider", run: inOneFiber(effectProvider), limit: 0.12 },
  { name: "LlmFuse in one fiber, async Effect provider", run: inOneFiber(asyncEffectProvider) },
  { name: "LlmFuse in one fiber, promise provider", run: inOneFiber(promiseProvider) },
  { name: "FuseClient, Effect provider", run: inSequence(clientOfEffect), limit: 0.35 },
  { name: "FuseClient, async Effect provider", run: inSequence(asPromise(asyncEffectProvider)) },
  { name: "FuseClient, promise provider", run: inSequence(clientOfPromise), limit: 0.35 },
  { name: concurrentYardstick, run: atOnce(cockatiel), isConcurrent: true },
  { name: "FuseClient, Effect provider, 100 at once", run: atOnce(clientOfEffect), isConcurrent: true },
  { name: "FuseClient, promise provider, 100 at once", run: atOnce(clientOfPromise), isConcurrent: true }
]
