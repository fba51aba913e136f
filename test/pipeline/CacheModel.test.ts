import { isDeepStrictEqual } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, type Fiber, FiberId } from "effect"
import fc from "fast-check"
import * as Cache from "../../src/pipeline/Cache.ts"
import { SteppedClock, settle } from "../steppedClock.ts"
import { Model, type Outcome, type Plan, rules, type Value, type Waiter } from "./cacheModel.ts"

type Failure = "down" | "refused"

/** The cache itself, with the callers that have asked so far, in the order of the model's waiters. */
class Real {
  readonly cache: Cache.Cache<Value, Failure>
  readonly fibers: Array<Fiber.RuntimeFiber<Cache.Served<Value, Failure>, Failure>> = []
  readonly seen = { begun: 0, ended: 0 }
  readonly clock = new SteppedClock()

  constructor(cache: Cache.Cache<Value, Failure>) {
    this.cache = cache
  }

  ask(key: string, plan: Plan): Promise<void> {
    const asking = this.cache.through(key, this.effectOf(plan))
    this.fibers.push(Effect.runFork(Effect.withClock(asking, this.clock)))
    return settle()
  }

  interrupt(index: number): Promise<void> {
    this.fibers[index]?.unsafeInterruptAsFork(FiberId.none)
    return settle()
  }

  check(model: Model): void {
    const { served, runs, flights, size } = Effect.runSync(this.cache.snapshot)
    const actual = { outcomes: this.fibers.map(outcomeOf), served, runs, flights, size, ...this.seen }
    const expected = {
      outcomes: model.waiters.map(({ outcome }) => outcome),
      served: model.served,
      runs: model.runs,
      flights: model.flights.size,
      size: { entries: model.entries.length, bytes: model.bytes },
      begun: model.runs,
      ended: model.ended
    }
    // Chai's comparison takes most of the time of a run: it is left to explain a difference.
    if (!isDeepStrictEqual(actual, expected)) assert.deepStrictEqual(actual, expected)
  }

  private effectOf({ outcome, bytes, millis, cleanUp }: Plan): Effect.Effect<Value, Failure> {
    return Effect.suspend(() => {
      this.seen.begun += 1
      const value = { run: this.seen.begun, bytes, isKept: outcome === "kept" }
      const end: Effect.Effect<Value, Failure> =
        outcome === "defect"
          ? Effect.die("bug")
          : value.isKept || outcome === "unkept"
            ? Effect.succeed(value)
            : Effect.fail(outcome as Failure)
      const running = millis === 0 ? end : Effect.zipRight(Effect.sleep(millis), end)
      const cleaning = cleanUp === 0 || cleanUp === "stubborn" ? Effect.void : Effect.sleep(cleanUp)
      const interruptible = Effect.onInterrupt(running, () => cleaning)
      return (cleanUp === "stubborn" ? Effect.uninterruptible(running) : interruptible).pipe(
        Effect.ensuring(Effect.sync(() => (this.seen.ended += 1)))
      )
    })
  }
}

const outcomeOf = (fiber: Fiber.RuntimeFiber<Cache.Served<Value, Failure>, Failure>): Outcome | undefined => {
  const exit = fiber.unsafePoll()
  if (exit === null) return undefined
  if (Exit.isSuccess(exit)) {
    const { source, value, ageMillis } = exit.value
    return { source, run: value.run, ageMillis }
  }
  if (Cause.isDie(exit.cause)) return "defect"
  return Cause.isInterruptedOnly(exit.cause) ? "interrupted" : (Cause.squash(exit.cause) as Failure)
}

type Command = fc.AsyncCommand<Model, Real>

const command = (name: string, act: (model: Model, real: Real) => Promise<unknown> | undefined): Command => ({
  check: () => true,
  run: async (model, real) => {
    await act(model, real)
    real.check(model)
  },
  toString: () => name
})

/** No two runs end at once: each has so many milliseconds of its own beyond the full second. */
const withOwnMillis = (plan: Plan, own: number): Plan => ({
  ...plan,
  millis: plan.millis === 0 ? 0 : plan.millis + own,
  cleanUp: typeof plan.cleanUp === "number" && plan.cleanUp > 0 ? plan.cleanUp + own : plan.cleanUp
})

const ask = (key: string, plan: Plan) =>
  command(`ask ${key} ${JSON.stringify(plan)}`, (model, real) => {
    const own = withOwnMillis(plan, model.waiters.length + 1)
    model.ask(key, own)
    return real.ask(key, own)
  })

const interrupt = (which: number) =>
  command(`interrupt ${which}`, async (model, real) => {
    const waiting = model.waiters.flatMap((waiter: Waiter, index) => (waiter.flight === undefined ? [] : [index]))
    const index = waiting[which % waiting.length]
    if (index === undefined) return
    model.interrupt(model.waiters[index] as Waiter)
    await real.interrupt(index)
  })

const advance = (millis: number) =>
  command(`advance ${millis}`, (model, real) => {
    model.advance(millis)
    return real.clock.advance(millis)
  })

const invalidate = (key: string) =>
  command(`invalidate ${key}`, (model, real) => {
    model.invalidate(key)
    return Effect.runPromise(real.cache.invalidate(key))
  })

const clear = () =>
  command("clear", (model, real) => {
    model.clear()
    return Effect.runPromise(real.cache.clear)
  })

const setWall = (millis: number) =>
  command(`set the wall clock to ${millis}`, (_, real) => {
    real.clock.wallMillis = millis
    return undefined
  })

const keys = fc.constantFrom("a", "b", "c", "dd", "eeeeee")

const plans: fc.Arbitrary<Plan> = fc.record({
  outcome: fc.oneof(
    { weight: 5, arbitrary: fc.constant("kept" as const) },
    { weight: 4, arbitrary: fc.constant("down" as const) },
    { weight: 2, arbitrary: fc.constantFrom("unkept" as const, "refused" as const, "defect" as const) }
  ),
  bytes: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 40 }) },
    { weight: 1, arbitrary: fc.constantFrom(86, 88, 96, 97, 98, 99, 100, 1000) }
  ),
  millis: fc.constantFrom(0, 0, 1000, 2000, 12_000),
  cleanUp: fc.constantFrom(0, 0, 500, 1500, "stubborn" as const)
})

const asks = (keys: fc.Arbitrary<string>) => fc.tuple(keys, plans).map(([key, plan]) => ask(key, plan))

const commands = fc.commands(
  [
    asks(keys),
    asks(keys),
    asks(fc.constant("a")),
    asks(fc.constant("a")),
    asks(fc.constantFrom("a", "b")),
    fc.nat(20).map(interrupt),
    fc.constantFrom(1000, 2000, 5000, 10_000, 11_000, 15_000).map(advance),
    fc.constantFrom(1000, 5000, 9000).map(advance),
    fc.oneof(
      keys.map(invalidate),
      fc.constant(0).map(clear),
      fc.constantFrom(-3_600_000, 0, 365 * 86_400_000).map(setWall)
    )
  ],
  { maxCommands: 40, size: "max" }
)

/** Afterwards nobody waits any more, and everything that was begun has ended. */
const finish = async (model: Model, real: Real) => {
  for (const [index, waiter] of model.waiters.entries()) {
    if (waiter.flight === undefined) continue
    model.interrupt(waiter)
    await real.interrupt(index)
  }
  model.advance(60_000)
  await real.clock.advance(60_000)
  real.check(model)
  assert.strictEqual(Effect.runSync(real.cache.snapshot).flights, 0)
  assert.strictEqual(real.seen.ended, real.seen.begun)
}

const makeCache = Cache.make<Value, Failure>({
  ttl: rules.ttl,
  staleIfError: rules.stale,
  maxEntries: rules.maxEntries,
  maxBytes: rules.maxBytes,
  sizeOf: ({ bytes }) => bytes,
  isKept: ({ isKept }) => isKept,
  mayServeStale: (error) => error === "down"
})

describe("Cache, against a model", () => {
  const numRuns = Number(process.env.LLMFUSE_MODEL_RUNS ?? 200)

  it(`does the same as the model in ${numRuns} histories of callers, time and interruption`, {
    timeout: 3_600_000
  }, async () => {
    const met = new Set<string>()
    await fc.assert(
      fc.asyncProperty(commands, async (history) => {
        const model = new Model()
        const real = new Real(Effect.runSync(makeCache))
        await fc.asyncModelRun(() => ({ model, real }), history)
        await finish(model, real)
        for (const { outcome } of model.waiters) met.add(typeof outcome === "object" ? outcome.source : String(outcome))
      }),
      { numRuns }
    )
    assert.sameMembers([...met], ["fresh", "stale", "shared", "miss", "down", "refused", "defect", "interrupted"])
  })
})
