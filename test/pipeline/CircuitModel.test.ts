import { assert, describe, it } from "@effect/vitest"
import * as cockatiel from "cockatiel"
import { Cause, Clock, DateTime, Deferred, Effect, Exit, type Fiber, type Scheduler } from "effect"
import * as fc from "fast-check"
import { CircuitBreaker, CircuitOpenError } from "llmfuse"
import { vi } from "vitest"

const runs = Number(process.env.LLMFUSE_MODEL_RUNS ?? 300)

/** Runs effects to where they wait, at a time that stands still until it is moved. */
class Bench {
  nowMillis = 0
  readonly #tasks: Array<() => void> = []
  readonly #scheduler: Scheduler.Scheduler = {
    scheduleTask: (task) => void this.#tasks.push(task),
    shouldYield: () => false
  }
  readonly #clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => this.nowMillis,
    unsafeCurrentTimeNanos: () => BigInt(this.nowMillis * 1e6),
    currentTimeMillis: Effect.sync(() => this.nowMillis),
    currentTimeNanos: Effect.sync(() => BigInt(this.nowMillis * 1e6)),
    sleep: () => Effect.never
  }

  start<A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> {
    const fiber = Effect.runFork(Effect.withClock(effect, this.#clock), { scheduler: this.#scheduler })
    this.flush()
    return fiber
  }

  run<A, E>(effect: Effect.Effect<A, E>): A {
    const exit = this.start(effect).unsafePoll()
    return exit !== null && Exit.isSuccess(exit) ? exit.value : assert.fail("it waits or fails")
  }

  flush() {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) task()
  }
}

type Ending = "success" | "failure" | "ignored" | "defect" | "interrupted" | { readonly openForMillis: number }

/** A circuit breaker as one would write it with no eye on speed: lists of everything, looked through each time. */
class Model {
  state: "Closed" | "Open" | "HalfOpen" | "Isolated" = "Closed"
  period = 0
  failures = 0
  history: Array<{ atMillis: number; isFailure: boolean; isSlow: boolean }> = []
  untilMillis = 0
  openings = 0
  probes = new Set<number>()
  successes = 0
  leaseUntilMillis = 0
  readonly calls = new Map<number, { readonly period: number; readonly startMillis: number }>()
  readonly options: ModelOptions

  constructor(options: ModelOptions) {
    this.options = options
  }

  admit(id: number, now: number): boolean {
    if (this.state === "Isolated" || (this.state === "Open" && now < this.untilMillis)) return false
    if (this.state === "Open") this.enter("HalfOpen")
    if (this.state === "HalfOpen") {
      if (this.probes.size + this.successes >= this.options.halfOpenCalls) {
        if (now < this.leaseUntilMillis) return false
        this.probes.clear()
      }
      this.probes.add(id)
      this.leaseUntilMillis = now + this.options.halfOpenTimeout
    }
    this.calls.set(id, { period: this.period, startMillis: now })
    return true
  }

  end(id: number, ending: Ending, now: number): void {
    const call = this.calls.get(id) ?? assert.fail("no such call")
    this.calls.delete(id)
    const { slowCall, failureRate, failureThreshold, halfOpenCalls } = this.options
    const isSlow = slowCall !== undefined && now - call.startMillis > slowCall.slowerThan
    if (this.state === "Open" && call.period === this.period - 1 && typeof ending === "object") {
      this.untilMillis = Math.max(this.untilMillis, now + ending.openForMillis)
    }
    if (call.period !== this.period || this.state === "Open" || this.state === "Isolated") return
    this.probes.delete(id)
    if (ending === "ignored" || ending === "defect" || ending === "interrupted") return
    const isFailure = ending === "failure"
    if (typeof ending === "object") {
      this.open(now, ending.openForMillis)
      return
    }
    if (this.state === "HalfOpen") {
      if (isFailure || isSlow) this.open(now)
      else if (++this.successes >= halfOpenCalls) this.enter("Closed")
      return
    }
    this.failures = isFailure ? this.failures + 1 : 0
    this.history.push({ atMillis: now, isFailure, isSlow })
    const isOver = (rate: Rate | undefined, bad: "isFailure" | "isSlow") => {
      if (rate === undefined) return false
      const recent = this.recent(rate, now)
      return (
        recent.length >= rate.minimumCalls && recent.filter((it) => it[bad]).length / recent.length >= rate.threshold
      )
    }
    if (isFailure && (this.failures >= failureThreshold || isOver(failureRate, "isFailure"))) this.open(now)
    else if (isSlow && isOver(slowCall, "isSlow")) this.open(now)
  }

  recent({ window, buckets }: Rate, now: number) {
    const slotOf = (millis: number) => Math.floor(millis / (window / buckets))
    return this.history.filter(({ atMillis }) => slotOf(atMillis) > slotOf(now) - buckets)
  }

  open(now: number, openForMillis?: number): void {
    const { resetTimeout, reopening } = this.options
    this.openings = this.state === "HalfOpen" ? this.openings + 1 : 1
    const grown =
      reopening === undefined
        ? resetTimeout
        : Math.max(
            resetTimeout,
            Math.min(reopening.maxTimeout, resetTimeout * reopening.multiplier ** (this.openings - 1))
          )
    this.enter("Open")
    this.untilMillis = now + (openForMillis ?? grown)
  }

  enter(state: Model["state"]): void {
    this.state = state
    this.period += 1
    this.failures = 0
    this.history = []
    this.probes.clear()
    this.successes = 0
  }
}

interface Rate {
  readonly threshold: number
  readonly window: number
  readonly buckets: number
  readonly minimumCalls: number
}

interface ModelOptions {
  readonly failureThreshold: number
  readonly failureRate?: Rate | undefined
  readonly slowCall?: (Rate & { readonly slowerThan: number }) | undefined
  readonly resetTimeout: number
  readonly reopening?: { readonly multiplier: number; readonly maxTimeout: number } | undefined
  readonly halfOpenCalls: number
  readonly halfOpenTimeout: number
}

type Command =
  | { readonly _tag: "Begin" }
  | { readonly _tag: "End"; readonly which: number; readonly ending: Ending }
  | { readonly _tag: "Pass"; readonly millis: number }
  | { readonly _tag: "Isolate" }
  | { readonly _tag: "Restore" }

const rate = fc.record({
  threshold: fc.constantFrom(0.25, 0.5, 1),
  window: fc.constantFrom(100, 1000, 5000),
  buckets: fc.integer({ min: 1, max: 10 }),
  minimumCalls: fc.integer({ min: 1, max: 5 })
})

const options: fc.Arbitrary<ModelOptions> = fc.record({
  failureThreshold: fc.integer({ min: 1, max: 6 }),
  failureRate: fc.option(rate, { nil: undefined }),
  slowCall: fc.option(
    fc.tuple(rate, fc.constantFrom(50, 500)).map(([it, slowerThan]) => ({ ...it, slowerThan })),
    { nil: undefined }
  ),
  resetTimeout: fc.constantFrom(1, 100, 1000),
  reopening: fc.option(
    fc.record({ multiplier: fc.constantFrom(1, 2, 3), maxTimeout: fc.constantFrom(50, 1000, 4000) }),
    { nil: undefined }
  ),
  halfOpenCalls: fc.integer({ min: 1, max: 3 }),
  halfOpenTimeout: fc.constantFrom(50, 500)
})

const ending: fc.Arbitrary<Ending> = fc.oneof(
  { weight: 3, arbitrary: fc.constant("success" as const) },
  { weight: 4, arbitrary: fc.constant("failure" as const) },
  fc.constantFrom("ignored", "defect", "interrupted"),
  fc.record({ openForMillis: fc.constantFrom(0, 10, 200, 3000) })
)

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ _tag: "Begin" } as const) },
  { weight: 6, arbitrary: fc.record({ _tag: fc.constant("End" as const), which: fc.nat(20), ending }) },
  {
    weight: 3,
    arbitrary: fc.record({ _tag: fc.constant("Pass" as const), millis: fc.constantFrom(1, 49, 100, 700, 5000) })
  },
  { weight: 1, arbitrary: fc.constantFrom({ _tag: "Isolate" } as const, { _tag: "Restore" } as const) }
)

interface Call {
  readonly id: number
  readonly gate: Deferred.Deferred<void, Ending>
  readonly fiber: Fiber.RuntimeFiber<void, Ending | CircuitOpenError>
}

const endingOf = (ending: Ending): Exit.Exit<void, Ending> =>
  ending === "success" ? Exit.void : ending === "defect" ? Exit.die("a bug") : Exit.fail(ending)

const obey = (options: ModelOptions, commands: ReadonlyArray<Command>) => {
  const bench = new Bench()
  const model = new Model(options)
  const breaker = bench.run(
    CircuitBreaker.make<Ending>(options, {
      classify: (ending) => (typeof ending === "object" || ending === "ignored" ? ending : "failure")
    })
  )
  const pending: Array<Call> = []
  let nextId = 0

  const step = (command: Command) => {
    switch (command._tag) {
      case "Begin": {
        const id = nextId++
        const gate = Deferred.unsafeMake<void, Ending>(bench.start(Effect.never).id())
        const fiber = bench.start(breaker.protect(Deferred.await(gate)))
        const exit = fiber.unsafePoll()
        assert.strictEqual(exit === null, model.admit(id, bench.nowMillis), "admitted")
        if (exit === null) return pending.push({ id, gate, fiber })
        assert.isTrue(Exit.isFailure(exit) && Cause.failureOption(exit.cause).pipe((it) => it._tag === "Some"))
        return
      }
      case "End": {
        const [call] = pending.length === 0 ? [] : pending.splice(command.which % pending.length, 1)
        if (call === undefined) return
        if (command.ending === "interrupted") call.fiber.unsafeInterruptAsFork(call.fiber.id())
        else Deferred.unsafeDone(call.gate, endingOf(command.ending))
        bench.flush()
        return model.end(call.id, command.ending, bench.nowMillis)
      }
      case "Pass":
        bench.nowMillis += command.millis
        return
      case "Isolate":
        bench.run(breaker.isolate)
        if (model.state !== "Isolated") model.enter("Isolated")
        return
      case "Restore":
        bench.run(breaker.restore)
        return model.enter("Closed")
    }
  }

  for (const command of commands) {
    step(command)
    const now = bench.nowMillis
    const snapshot = bench.run(breaker.snapshot)
    const isClosed = model.state === "Closed"
    const counted = (rate: Rate | undefined, bad: "isFailure" | "isSlow") => {
      if (rate === undefined || !isClosed) return undefined
      const recent = model.recent(rate, now)
      const calls = recent.length
      return { calls, rate: calls === 0 ? 0 : recent.filter((it) => it[bad]).length / calls }
    }
    assert.deepStrictEqual(
      {
        state: snapshot.state,
        failures: snapshot.consecutiveFailures,
        probes: snapshot.probes,
        openUntil: snapshot.openUntil && DateTime.toEpochMillis(snapshot.openUntil),
        failureRate: snapshot.failureRate,
        slowCall: snapshot.slowCall
      },
      {
        state: model.state,
        failures: isClosed ? model.failures : 0,
        probes: model.state === "HalfOpen" ? model.probes.size : 0,
        openUntil: model.state === "Open" ? model.untilMillis : undefined,
        failureRate: counted(options.failureRate, "isFailure"),
        slowCall: counted(options.slowCall, "isSlow")
      }
    )
  }
}

describe("CircuitBreaker against its model", () => {
  it("does what the model does, for any commands", { timeout: 600_000 }, () => {
    fc.assert(fc.property(options, fc.array(command, { minLength: 1, maxLength: 60 }), obey), { numRuns: runs })
  })
})

describe("CircuitBreaker against cockatiel's", () => {
  type Step = "success" | "failure" | number

  const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
    fc.oneof(
      { weight: 2, arbitrary: fc.constant("success" as const) },
      { weight: 5, arbitrary: fc.constant("failure" as const) },
      { weight: 2, arbitrary: fc.constantFrom(1, 499, 500, 999, 1000, 60_000) }
    ),
    { maxLength: 60 }
  )

  it("lets the same calls through, for any history of one call after the other", { timeout: 600_000 }, async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 0 })
    try {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 6 }), steps, async (threshold, history) => {
          const bench = new Bench()
          const ours = bench.run(CircuitBreaker.make({ failureThreshold: threshold, resetTimeout: 1000 }))
          const theirs = cockatiel.circuitBreaker(cockatiel.handleAll, {
            halfOpenAfter: 1000,
            breaker: new cockatiel.ConsecutiveBreaker(threshold)
          })
          vi.setSystemTime(0)

          for (const [index, step] of history.entries()) {
            if (typeof step === "number") {
              bench.nowMillis += step
              vi.setSystemTime(bench.nowMillis)
              continue
            }
            const ourExit = bench.run(
              Effect.exit(ours.protect(step === "success" ? Effect.void : Effect.fail("down" as const)))
            )
            const theirExit = await theirs
              .execute(() => (step === "success" ? Promise.resolve() : Promise.reject(new Error("down"))))
              .then(
                () => "success",
                (error) => (error instanceof cockatiel.BrokenCircuitError ? "rejected" : "failure")
              )
            assert.strictEqual(endOf(ourExit), theirExit, `step ${index}`)
          }
        }),
        { numRuns: runs }
      )
    } finally {
      vi.useRealTimers()
    }
  })

  const endOf = (exit: Exit.Exit<void, unknown>) =>
    Exit.isSuccess(exit) ? "success" : Cause.squash(exit.cause) instanceof CircuitOpenError ? "rejected" : "failure"
})
