import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, type Fiber, FiberId, Schema, Stream } from "effect"
import { LlmFuse, OverloadedError, Provider, StreamInterruptedError } from "llmfuse"
import type { TestOptions } from "./fuse.ts"
import { ShuffledTime } from "./shuffledTime.ts"

/** Virtual time in which one fiber is interrupted at one of the operations that are done from now on. */
class InterruptingTime extends ShuffledTime {
  operations = 0
  #at = 0
  #root: Fiber.RuntimeFiber<unknown, unknown> | undefined

  /** Runs an effect with an interruption at such an operation, its own or one of the fibers that work for it. */
  interrupted<A, E>(effect: Effect.Effect<A, E>, at: number): Fiber.RuntimeFiber<A, E> {
    this.operations = 0
    this.#at = at
    return this.fork(
      Effect.withFiberRuntime<A, E>((fiber) => {
        this.#root = fiber as Fiber.RuntimeFiber<unknown, unknown>
        return effect
      })
    )
  }

  override shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>): number | false {
    if (this.#root === undefined) return super.shouldYield(fiber)
    this.operations += 1
    if (this.operations !== this.#at) return super.shouldYield(fiber)
    this.#root.unsafeInterruptAsFork(FiberId.none)
    return 0
  }
}

/** What a provider does: fails so many requests, each after a while, a stream after its first word if so told. */
interface Behaviour {
  readonly failures?: number
  readonly millis?: number
  readonly breaksStreams?: boolean
}

/** A provider that counts whom it serves, and can be made well. */
const ailing = (name: string, { failures = 0, millis = 10, breaksStreams = false }: Behaviour) => {
  const seen = { requests: 0, underWay: 0, isWell: false }
  const served = Effect.acquireRelease(
    Effect.sync(() => {
      seen.underWay += 1
      seen.requests += 1
      return seen.isWell || seen.requests > failures
    }),
    () =>
      Effect.sync(() => {
        seen.underWay -= 1
      })
  ).pipe(Effect.tap(() => Effect.sleep(seen.isWell ? 1 : millis)))
  const text = '{"n":1}'
  const parts: Provider.Parts = Stream.make('{"n"', ":1}", { _tag: "End" as const, finishReason: "stop" as const })
  const answer = { text, finishReason: "stop" as const, usage: { inputTokens: 1, outputTokens: 1 } }
  const error = new OverloadedError({ provider: name })
  const provider = Provider.make({
    name,
    complete: () =>
      Effect.scoped(Effect.flatMap(served, (isUp) => (isUp ? Effect.succeed(answer) : Effect.fail(error)))),
    stream: () =>
      Effect.flatMap(
        served,
        (isUp): Effect.Effect<Provider.Parts, OverloadedError> =>
          isUp
            ? Effect.succeed(parts)
            : breaksStreams
              ? Effect.succeed(
                  Stream.concat(
                    Stream.make("half "),
                    Stream.fail(new StreamInterruptedError({ provider: name, partial: "" }))
                  )
                )
              : Effect.fail(error)
      )
  })
  return { seen, provider }
}

interface Case {
  readonly providers: ReadonlyArray<Behaviour>
  readonly options: Omit<TestOptions, "providers">
  /** Calls before the one that is interrupted, and how long after the last of them it begins. */
  readonly before?: number
  readonly restMillis?: number
  /** Asks the same at the same time, and must be answered. */
  readonly companion?: "first" | "second"
  /** How long after the interruption buckets are full again. */
  readonly healMillis?: number
}

const retry = { baseDelay: "20 millis", jitter: "none", maxAttempts: 2 } as const
const roomy = { requestsPerMinute: 6_000_000, tokensPerMinute: 6_000_000, burst: 1000, concurrency: 1 } as const

const cases: Readonly<Record<string, Case>> = {
  "a retry within limits": {
    providers: [{ failures: 1 }],
    options: { retry, limits: { ...roomy, maxWait: 0, adaptive: true } }
  },
  "tokens of a whole minute": {
    providers: [{}],
    options: { retry, limits: { tokensPerMinute: 100, estimateTokens: () => 100, maxWait: 0 } },
    healMillis: 61_000
  },
  "a place in the queue": {
    providers: [{ millis: 30 }],
    options: { limits: { ...roomy, maxWait: 500 } },
    companion: "first"
  },
  "a half-open probe": {
    providers: [{ failures: 1 }, {}],
    options: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1, resetTimeout: 100 } },
    before: 1,
    restMillis: 150
  },
  "a half-open probe that fails": {
    providers: [{ failures: 2 }, {}],
    options: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1, resetTimeout: 100 } },
    before: 1,
    restMillis: 150,
    healMillis: 150
  },
  "a hedge that wins": {
    providers: [{ millis: 100 }, { millis: 10 }, {}],
    options: { hedge: { delay: 20 }, limits: { ...roomy, maxWait: 0 } }
  },
  "a hedge that loses": {
    providers: [{ millis: 40 }, { millis: 100 }, { millis: 100 }],
    options: { hedge: { delay: 10, maxHedges: 2 }, limits: { ...roomy, maxWait: 0 } }
  },
  "a hedge after failures": {
    providers: [{ failures: 2 }, { failures: 1, millis: 30 }, { millis: 15 }],
    options: { retry, hedge: { delay: 5 }, limits: { ...roomy, maxWait: 0 } }
  },
  "a shared flight that the interrupted call began": {
    providers: [{ failures: 1 }],
    options: { retry, cache: { ttl: 1 }, limits: { ...roomy, maxWait: 500 } },
    companion: "second"
  },
  "a shared flight that another call began": {
    providers: [{ failures: 1 }],
    options: { retry, cache: { ttl: 1 }, limits: { ...roomy, maxWait: 500 } },
    companion: "first"
  },
  "a stale answer": {
    providers: [{ failures: 0 }, { failures: 9 }],
    options: { retry, cache: { ttl: 10, staleIfError: "1 hour" }, deadline: 5 },
    before: 1,
    restMillis: 20
  },
  "a fallback after all have failed": {
    providers: [{ failures: 2 }, { failures: 2 }],
    options: { retry, fallback: () => Effect.delay(Effect.succeed('{"n":0}'), 10) }
  },
  "a deadline": {
    providers: [{ millis: 100 }, { millis: 100 }],
    options: { deadline: 50, fallback: '{"n":0}', limits: { ...roomy, maxWait: 0 } }
  },
  "a stream that begins afresh": {
    providers: [{ failures: 1, breaksStreams: true }, { failures: 1, breaksStreams: true }, {}],
    options: { retry, recovery: "restart", limits: { ...roomy, maxWait: 0 } }
  },
  "everything at once": {
    providers: [{ failures: 2, breaksStreams: true }, { failures: 1, millis: 30 }, { millis: 15 }],
    options: {
      retry,
      recovery: "restart",
      hedge: { delay: 5, maxHedges: 2 },
      cache: { ttl: 1, staleIfError: 1 },
      deadline: "1 second",
      fallback: '{"n":0}',
      breaker: { failureThreshold: 1, resetTimeout: 100 },
      limits: { ...roomy, maxWait: 500, adaptive: true }
    },
    companion: "second",
    healMillis: 150
  }
}

const isLong = process.env.LLMFUSE_MODEL_RUNS !== undefined

/** How calls are made, and at every which operation they are interrupted: streams have thousands of them. */
const steps = { complete: isLong ? 1 : 3, stream: isLong ? 1 : 41, object: isLong ? 1 : 17 }

type Kind = keyof typeof steps

/** One run, interrupted at such an operation; whether it was over before. */
const isOverBefore = async (subject: Case, kind: Kind, at: number): Promise<boolean> => {
  const time = new InterruptingTime()
  const waitFor = async <A, E>(effect: Effect.Effect<A, E>): Promise<Exit.Exit<A, E>> => {
    const fiber = time.fork(effect)
    await time.advance(600_000, () => fiber.unsafePoll() !== null)
    return fiber.unsafePoll() ?? Exit.die("never ends")
  }
  const players = subject.providers.map((it, index) => ailing(`p${index}`, it))
  const layer = LlmFuse.layer({ ...subject.options, providers: players.map(({ provider }) => provider) })
  const fuse = Exit.getOrElse(await waitFor(Effect.scoped(Effect.provide(LlmFuse, layer))), (cause) => {
    throw Cause.squash(cause)
  })
  const ask: Effect.Effect<unknown, unknown> =
    kind === "complete"
      ? fuse.complete("hi")
      : kind === "stream"
        ? Stream.runDrain(fuse.stream("hi"))
        : fuse.object(Schema.Struct({ n: Schema.Number }), "hi")
  for (let call = 0; call < (subject.before ?? 0); call++) await waitFor(ask)
  await time.advance(subject.restMillis ?? 0)

  const first = subject.companion === "first" ? time.fork(ask) : undefined
  const root = time.interrupted(ask, at)
  const companion = subject.companion === "second" ? time.fork(ask) : first
  await time.advance(600_000, () => root.unsafePoll() !== null && companion?.unsafePoll() !== null)
  const isOver = time.operations < at
  await time.advance(5000)

  const where = `${kind}, operation ${at}`
  if (companion !== undefined) {
    const exit = companion.unsafePoll()
    assert(exit !== null && Exit.isSuccess(exit), `${where}: who asked at the same time is not answered: ${exit}`)
  }
  for (const { seen } of players) assert.strictEqual(seen.underWay, 0, `${where}: a request is under way`)
  assert.strictEqual(time.timers, 0, `${where}: a timer is left`)

  for (const { seen } of players) seen.isWell = true
  await time.advance(subject.healMillis ?? 0)
  const next = await waitFor(fuse.complete("next", { deadline: "1 hour" }))
  assert(Exit.isSuccess(next), `${where}: the next call is not answered: ${next}`)
  const { attempts, provider, latency } = next.value
  assert.deepStrictEqual(
    [provider, attempts.map(({ provider, outcome }) => `${provider} ${outcome}`), Duration.toMillis(latency)],
    ["p0", ["p0 success"], 1],
    where
  )
  for (const { provider } of players) {
    const state = await waitFor(fuse.circuitState(provider.name))
    assert(Exit.isSuccess(state) && state.value !== "HalfOpen", `${where}: a probe is kept`)
  }
  return isOver
}

describe("calls through all stages, interrupted at every operation, leave nothing behind and harm nobody", () => {
  for (const [name, subject] of Object.entries(cases)) {
    it(name, async () => {
      for (const [kind, step] of Object.entries(steps)) {
        let operation = 1
        while (!(await isOverBefore(subject, kind as Kind, operation))) {
          operation += step
          // The test runner wants to be heard from.
          if (operation % 50 < step) await new Promise((resolve) => setImmediate(resolve))
        }
        assert.isAbove(operation, 40)
      }
    }, 600_000)
  }
})
