import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Duration, Exit, type Fiber, Option } from "effect"
import fc from "fast-check"
import { ThrottledError } from "llmfuse"
import * as Limiter from "../../src/pipeline/Limiter.ts"
import type { Permit } from "../../src/pipeline/LimiterPermit.ts"
import { LimiterModel, modelOptions, type Status } from "./limiterModel.ts"
import { ManualTime } from "./manualTime.ts"

/** 200 by default; the long profile runs 10,000. */
const numRuns = Number(process.env.LLMFUSE_MODEL_RUNS ?? 200)

interface Call {
  readonly fiber: Fiber.RuntimeFiber<void, ThrottledError | "failed">
  readonly end: Deferred.Deferred<void, "failed">
  readonly permit: { current: Permit | undefined }
}

/** The real limiter with all calls that were made to it. */
class Real {
  readonly time = new ManualTime()
  readonly limiter = this.time.run(Limiter.make(modelOptions))
  readonly calls: Array<Call> = []

  arrive(tokens: number, key: string, atMost: number): void {
    const end = this.time.run(Deferred.make<void, "failed">())
    const permit: Call["permit"] = { current: undefined }
    const call = this.limiter.withRoom({ tokens, key, atMost: Duration.millis(atMost) }, (room) => {
      permit.current = room
      return Deferred.await(end)
    })
    this.calls.push({ fiber: this.time.fork(call), end, permit })
  }

  statusOf({ fiber, permit }: Call): Status {
    const exit = fiber.unsafePoll()
    if (exit === null) return permit.current === undefined ? "waiting" : "running"
    return errorOf(exit) === undefined ? "ended" : "refused"
  }
}

const errorOf = (exit: Exit.Exit<void, ThrottledError | "failed"> | null): ThrottledError | undefined => {
  if (exit === null || Exit.isSuccess(exit)) return undefined
  const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
  return error instanceof ThrottledError ? error : undefined
}

const agree = (model: LimiterModel, real: Real): void => {
  const { requestsLeft, tokensLeft, inFlight, queued } = real.time.run(real.limiter.snapshot)
  assert.deepStrictEqual(
    real.calls.map((call) => real.statusOf(call)),
    model.calls.map(({ status }) => status)
  )
  assert.deepStrictEqual([requestsLeft, tokensLeft], [model.requests / 1000, model.tokens / 100])
  assert.deepStrictEqual([inFlight, queued], [model.inFlight, model.queued])
  assert.isAtMost(inFlight, modelOptions.concurrency)
  // A timer for each who waits, and none for anybody else.
  assert.strictEqual(real.time.timers, queued)
  for (const [index, { waitMillis, limit }] of model.calls.entries()) {
    const error = errorOf(real.calls[index]?.fiber.unsafePoll() ?? null)
    if (waitMillis === undefined) continue
    assert.strictEqual(error && Duration.toMillis(error.wait), waitMillis)
    if (limit !== undefined) assert.strictEqual(error?.limit, limit)
  }
}

/** What can happen, to the model and to the real one. */
type Event =
  | { readonly _tag: "Arrive"; readonly tokens: number; readonly key: string; readonly atMost: number }
  | { readonly _tag: "End" | "Fail" | "Interrupt" | "Refund"; readonly which: number; readonly actual?: undefined }
  | { readonly _tag: "Reconcile"; readonly which: number; readonly actual: number }
  | { readonly _tag: "Pass" | "Block"; readonly millis: number }

class Command implements fc.Command<LimiterModel, Real> {
  readonly event: Event
  constructor(event: Event) {
    this.event = event
  }

  check(): boolean {
    return true
  }

  run(model: LimiterModel, real: Real): void {
    const { event } = this
    if (event._tag === "Arrive") {
      model.arrive(event.tokens, event.key, event.atMost)
      real.arrive(event.tokens, event.key, event.atMost)
    } else if ("which" in event) {
      this.runOn(event, model, real)
    } else if (event._tag === "Pass") {
      model.pass(event.millis)
      real.time.advance(event.millis)
    } else {
      model.block(event.millis)
      real.time.run(real.limiter.blockFor(event.millis))
    }
    agree(model, real)
  }

  private runOn(event: Extract<Event, { readonly which: number }>, model: LimiterModel, real: Real): void {
    const alive = model.calls.flatMap((call, index) =>
      call.status === "running" || (event._tag === "Interrupt" && call.status === "waiting") ? [index] : []
    )
    const index = alive[event.which % alive.length]
    const [modelled, call] = [model.calls[index ?? -1], real.calls[index ?? -1]]
    if (modelled === undefined || call === undefined) return
    const { permit, end, fiber } = call
    if (event._tag === "Interrupt") {
      model.interrupt(modelled)
      fiber.unsafeInterruptAsFork(fiber.id())
      real.time.settle()
    } else if (event._tag === "Reconcile" || event._tag === "Refund") {
      const actual = event.actual ?? 0
      model.reconcile(modelled, actual)
      const room = permit.current
      if (room !== undefined) real.time.run(event._tag === "Refund" ? room.refund : room.reconcile(actual))
    } else {
      model.end(modelled)
      real.time.run(event._tag === "End" ? Deferred.succeed(end, undefined) : Deferred.fail(end, "failed"))
    }
  }

  toString(): string {
    return JSON.stringify(this.event)
  }
}

const which = fc.nat(20)
const events: ReadonlyArray<fc.Arbitrary<Event>> = [
  fc.record({
    _tag: fc.constant("Arrive" as const),
    tokens: fc.oneof({ weight: 9, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.integer({ min: 41, max: 99 }) }),
    key: fc.constantFrom("a", "a", "b", "c"),
    atMost: fc.oneof(fc.constantFrom(0, 1000, 1001, 3999, 1e9), fc.nat(8000))
  }),
  fc.record({ _tag: fc.constantFrom("End" as const, "End" as const, "Fail" as const, "Interrupt" as const), which }),
  fc.record({ _tag: fc.constant("Refund" as const), which }),
  fc.record({
    _tag: fc.constant("Reconcile" as const),
    which,
    actual: fc.oneof(fc.nat(60), fc.constantFrom(500, 5000))
  }),
  fc.record({ _tag: fc.constant("Pass" as const), millis: fc.oneof(fc.constantFrom(1, 100, 999, 1000), fc.nat(2500)) }),
  fc.record({ _tag: fc.constant("Block" as const), millis: fc.nat(5000) })
]

const commands = fc.commands(
  [...events, events[0], events[0], events[4]].flatMap((event) =>
    event === undefined ? [] : [event.map((value) => new Command(value))]
  ),
  { maxCommands: 30 }
)

describe("Limiter, against a model", () => {
  it(
    `behaves as the model does, whatever happens to it in whatever order (${numRuns} runs)`,
    { timeout: 1_200_000 },
    () =>
      fc.assert(
        fc.property(commands, (sequence) => {
          fc.modelRun(() => ({ model: new LimiterModel(), real: new Real() }), sequence)
        }),
        { numRuns }
      )
  )
})
