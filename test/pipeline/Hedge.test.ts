import { assert, describe, it } from "@effect/vitest"
import { Clock, Data, Deferred, Effect, Exit, Fiber, FiberRef, Logger, LogLevel, TestClock } from "effect"
import { hedge, type Options, type Race } from "../../src/pipeline/Hedge.ts"
import * as Latency from "../../src/pipeline/Latency.ts"
import * as RetryBudget from "../../src/pipeline/RetryBudget.ts"
import { interruptAtEveryOperation } from "../interruptAt.ts"

class Failed extends Data.TaggedError("Failed")<{ readonly who: string; readonly isFinal?: boolean }> {}
class Nobody extends Data.TaggedError("Nobody")<{ readonly who: ReadonlyArray<string> }> {}

const onExhausted = (errors: ReadonlyArray<Failed>) => new Nobody({ who: errors.map(({ who }) => who) })
const mayFailOver = (error: Failed) => error.isFinal !== true

type Attempt = (race: Race) => Effect.Effect<string, Failed>

/** Answers with its name after so many milliseconds. */
const answers =
  (who: string, afterMillis: number): Attempt =>
  () =>
    Effect.delay(Effect.succeed(who), afterMillis)
const fails =
  (who: string, afterMillis: number, isFinal = false): Attempt =>
  () =>
    Effect.delay(Effect.fail(new Failed({ who, isFinal })), afterMillis)
const hangs: Attempt = () => Effect.never
const atOnce =
  (effect: Effect.Effect<string, Failed>): Attempt =>
  () =>
    effect

/** A race between attempts at a hedge delay of 100 ms, and the story of it with times. */
const race = (attempts: ReadonlyArray<Attempt>, options: Partial<Options<Failed, Nobody>> = {}) => {
  const story: Array<string> = []
  const tell = (what: string) => Effect.map(Clock.currentTimeMillis, (now) => void story.push(`${now} ${what}`))
  const run = hedge(
    attempts,
    (attempt, position, race) =>
      Effect.zipRight(
        tell(`ask ${position}`),
        Effect.onInterrupt(attempt(race), () => tell(`interrupted ${position}`))
      ),
    {
      delay: 100,
      mayFailOver,
      onExhausted,
      onHedge: (from, to) => tell(`hedge ${from} to ${to}`),
      onFailover: (error, from, to) => tell(`failover ${error.who} ${from} to ${to}`),
      onHedgeLost: (position) => tell(`lost ${position}`),
      ...options
    }
  )
  return { run: Effect.onExit(run, () => tell("end")), story, tell }
}

/** Runs a race to its end and tells how it ended. */
const runOut = <A, E>(run: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(run)
    yield* TestClock.adjust("1 minute")
    return fiber.unsafePoll()
  })

const noHedgeIn = (story: ReadonlyArray<string>) => assert.isFalse(story.some((line) => line.includes("hedge")))

describe("hedge", () => {
  it.effect("asks nobody else when the first answers in time", () =>
    Effect.gen(function* () {
      const { run, story } = race([answers("a", 99), answers("b", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      assert.deepStrictEqual(story, ["0 ask 0", "99 end"])
    })
  )

  it.effect("asks the next too when the first is slow; who answers first wins, the other is interrupted", () =>
    Effect.gen(function* () {
      const { run, story } = race([hangs, answers("b", 50), answers("c", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("b"))
      assert.deepStrictEqual(story, [
        "0 ask 0",
        "100 hedge 0 to 1",
        "100 ask 1",
        "150 lost 0",
        "150 interrupted 0",
        "150 end"
      ])
    })
  )

  it.effect("the first may still win after the hedge", () =>
    Effect.gen(function* () {
      const { run, story } = race([answers("a", 120), answers("b", 50)])

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      assert.includeMembers(story, ["120 lost 1", "120 interrupted 1"])
    })
  )

  it.effect("asks one more after each further delay, up to maxHedges at once", () =>
    Effect.gen(function* () {
      const { run, story } = race([hangs, hangs, hangs, answers("d", 1)], { maxHedges: 2 })

      assert.isNull(yield* runOut(run))
      assert.deepStrictEqual(
        story.filter((line) => line.includes("ask")),
        ["0 ask 0", "100 ask 1", "200 ask 2"]
      )
    })
  )

  it.effect("with no hedges allowed it is failover", () =>
    Effect.gen(function* () {
      const { run, story } = race([fails("a", 500), answers("b", 500)], { maxHedges: 0 })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("b"))
      assert.deepStrictEqual(story, ["0 ask 0", "500 failover a 0 to 1", "500 ask 1", "1000 end"])
    })
  )

  it.effect("a failure starts the next at once, and a delay counts from there (grpc-java#10145)", () =>
    Effect.gen(function* () {
      const { run, story } = race([fails("a", 30), hangs, answers("c", 10)])

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("c"))
      assert.deepStrictEqual(story.slice(0, 5), [
        "0 ask 0",
        "30 failover a 0 to 1",
        "30 ask 1",
        "130 hedge 1 to 2",
        "130 ask 2"
      ])
    })
  )

  it.effect("a failed hedge is replaced at once, without leave for another hedge", () =>
    Effect.gen(function* () {
      let asked = 0
      const mayHedge = () => {
        asked += 1
        return true
      }
      const { run, story } = race([hangs, fails("b", 10), answers("c", 10)], { mayHedge })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("c"))
      assert.include(story, "110 failover b 1 to 2")
      assert.strictEqual(asked, 1)
    })
  )

  it.effect("a failing hedge never beats a live primary (resilience4j-hedge)", () =>
    Effect.gen(function* () {
      const { run, story } = race([answers("a", 5000), fails("b", 1), fails("c", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      assert.include(story, "5000 end")
    })
  )

  it.effect("hedging suppressed after the first has failed returns the failure at once (grpc-java#7222)", () =>
    Effect.gen(function* () {
      const { run, story } = race([fails("a", 10), fails("b", 150)], { mayHedge: () => false })
      const alone = race([fails("a", 150)], { mayHedge: () => false })

      assert.deepStrictEqual(yield* runOut(run), Exit.fail(new Nobody({ who: ["a", "b"] })))
      assert.include(story, "160 end")
      yield* runOut(alone.run)
      assert.deepStrictEqual(alone.story, ["60000 ask 0", "60150 end"])
    })
  )

  it.effect("an exhausted budget only suppresses the hedge: the primary goes on (failsafe-go#141)", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make({ share: 0, minimumPerSecond: 0 })
      const { run, story } = race([answers("a", 1000), answers("b", 1)], { mayHedge: () => budget.withdrawal })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      assert.deepStrictEqual(story, ["0 ask 0", "1000 end"])
    })
  )

  it.effect("a hedge takes one from the budget, failover none", () =>
    Effect.gen(function* () {
      const budget = yield* RetryBudget.make()
      const mayHedge = () => budget.withdrawal
      const { run } = race([hangs, fails("b", 1), answers("c", 1)], { mayHedge })
      const quick = race([answers("a", 99), answers("b", 1)], { mayHedge })

      const fiber = yield* Effect.fork(Effect.zipRight(run, quick.run))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)

      assert.strictEqual((yield* budget.snapshot).retries, 1)
    })
  )

  it.effect("does not wait for a loser that does not let itself be interrupted (Polly awaits cancelled losers)", () =>
    Effect.gen(function* () {
      const stubborn: Attempt = () => Effect.uninterruptible(Effect.as(Effect.sleep("50 seconds"), "late"))
      const { run, story } = race([stubborn, answers("b", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("b"))
      assert.include(story, "101 end")
      assert.deepStrictEqual(
        story.filter((line) => line.includes("lost")),
        ["101 lost 0"]
      )
    })
  )

  it.effect("an empty history of latencies gives no hedge, not one after 0 ms (resilience4j-hedge)", () =>
    Effect.gen(function* () {
      const latency = yield* Latency.make()
      const delay = () => latency.percentile(0.95)
      const before = race([answers("a", 1000), answers("b", 1)], { delay })
      yield* runOut(before.run)
      for (let sample = 0; sample < 20; sample++) latency.record(200)
      const after = race([answers("a", 1000), answers("b", 1)], { delay })
      yield* runOut(after.run)

      noHedgeIn(before.story)
      assert.include(after.story, "60200 hedge 0 to 1")
    })
  )

  it.effect("no sane delay, no hedge; a delay of zero hedges at once", () =>
    Effect.gen(function* () {
      for (const delay of [undefined, Number.NaN, -1, Number.POSITIVE_INFINITY, 2 ** 31]) {
        const { run, story } = race([answers("a", 1000), answers("b", 1)], { delay })
        assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
        noHedgeIn(story)
      }
      const { run } = race([answers("a", 1000), answers("b", 1)], { delay: 0 })
      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("b"))
    })
  )

  it.effect("one attempt's end aborts no other race (opossum#780)", () =>
    Effect.gen(function* () {
      const quick = race([hangs, answers("b", 1)])
      const slow = race([answers("a", 3000), hangs])
      const slowly = yield* Effect.fork(slow.run)
      const quickly = yield* Effect.fork(quick.run)

      yield* TestClock.adjust("5 seconds")

      assert.strictEqual(yield* Fiber.join(quickly), "b")
      assert.strictEqual(yield* Fiber.join(slowly), "a")
    })
  )

  it.effect("all fail: the errors of all, in the order of the candidates", () =>
    Effect.gen(function* () {
      const { run } = race([fails("a", 300), fails("b", 10), fails("c", 20)])

      assert.deepStrictEqual(yield* runOut(run), Exit.fail(new Nobody({ who: ["a", "b", "c"] })))
    })
  )

  it.effect("a failure that must not fail over ends the race at once and interrupts the others", () =>
    Effect.gen(function* () {
      const { run, story } = race([hangs, fails("b", 10, true), answers("c", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.fail(new Failed({ who: "b", isFinal: true })))
      assert.deepStrictEqual(story.slice(-3), ["100 ask 1", "110 interrupted 0", "110 end"])
    })
  )

  it.effect("a defect ends the race at once and reaches the caller", () =>
    Effect.gen(function* () {
      const bug = new TypeError("bug")
      const dies: Attempt = () => Effect.delay(Effect.die(bug), 10)
      const { run, story } = race([hangs, dies, answers("c", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.die(bug))
      assert.include(story, "110 interrupted 0")
    })
  )

  it.effect("an attempt that throws instead of giving an effect is a defect too", () =>
    Effect.gen(function* () {
      const bug = new TypeError("bug")
      const throws: Attempt = () => {
        throw bug
      }

      assert.deepStrictEqual(yield* runOut(race([hangs, throws]).run), Exit.die(bug))
      assert.deepStrictEqual(yield* runOut(race([throws, hangs]).run), Exit.die(bug))
    })
  )

  const bug = new TypeError("bug")
  const throws = () => {
    throw bug
  }
  const deciders: Record<string, Partial<Options<Failed, Nobody>>> = {
    delay: { delay: throws },
    mayHedge: { mayHedge: throws },
    "mayHedge as an effect": { mayHedge: () => Effect.die(bug) },
    isAvailable: { isAvailable: throws },
    mayFailOver: { mayFailOver: throws },
    onFailure: { onFailure: throws }
  }
  for (const [name, options] of Object.entries(deciders)) {
    it.effect(`a defect in ${name} ends the race and leaves nobody running`, () =>
      Effect.gen(function* () {
        const { run, story } = race([hangs, fails("b", 10)], options)

        assert.deepStrictEqual(yield* runOut(run), Exit.die(bug))
        assert.isTrue(story.some((line) => line.endsWith("interrupted 0")))
      })
    )
  }

  it.effect("a defect in onExhausted reaches the caller", () =>
    Effect.gen(function* () {
      const { run } = race([fails("a", 10)], { onExhausted: throws })

      assert.deepStrictEqual(yield* runOut(run), Exit.die(bug))
    })
  )

  it.effect("listeners that break harm nothing", () =>
    Effect.gen(function* () {
      const breaks = { onHedge: throws, onHedgeLost: throws, onFailover: () => Effect.die(bug) }
      const { run } = race([hangs, fails("b", 1), answers("c", 1)], breaks)

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("c"))
    })
  )

  it.effect("a listener that never ends holds up its own candidate only", () =>
    Effect.gen(function* () {
      const { run } = race([answers("a", 1000), answers("b", 1)], { onHedge: () => Effect.never })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
    })
  )

  it.effect("a hedge goes past who is not available; failover asks them later, in order", () =>
    Effect.gen(function* () {
      const isAvailable = (position: number) => Effect.succeed(position !== 1)
      const { run, story } = race([fails("a", 300), fails("b", 1), fails("c", 10)], { isAvailable })

      assert.deepStrictEqual(yield* runOut(run), Exit.fail(new Nobody({ who: ["a", "b", "c"] })))
      assert.deepStrictEqual(story, [
        "0 ask 0",
        "100 hedge 0 to 2",
        "100 ask 2",
        "110 failover c 2 to 1",
        "110 ask 1",
        "300 end"
      ])
    })
  )

  it.effect("with nobody available the budget is not touched", () =>
    Effect.gen(function* () {
      const { run, story } = race([answers("a", 300), answers("b", 1)], {
        isAvailable: () => false,
        mayHedge: () => assert.fail("asked")
      })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      noHedgeIn(story)
    })
  )

  it.effect("a failure while a slow check is under way makes no two starts of one candidate", () =>
    Effect.gen(function* () {
      const isAvailable = () => Effect.as(Effect.sleep(100), true)
      const { run, story } = race([fails("a", 150), answers("b", 500), answers("c", 500)], { isAvailable })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("b"))
      assert.deepStrictEqual(
        story.filter((line) => line.includes("ask")),
        ["0 ask 0", "150 ask 1", "350 ask 2"]
      )
    })
  )

  it.effect("an empty list is exhausted from the start", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* runOut(race([]).run), Exit.fail(new Nobody({ who: [] })))
    })
  )

  it.effect("answers without a pause need no timer and no second fiber", () =>
    Effect.gen(function* () {
      let asked = 0
      const delay = () => {
        asked += 1
        return 0
      }
      const failing = atOnce(Effect.fail(new Failed({ who: "a" })))
      const { run } = race([failing, failing, atOnce(Effect.succeed("c")), hangs], { delay, onFailover: undefined })

      assert.strictEqual(yield* run, "c")
      assert.strictEqual(asked, 0)
    })
  )

  it.effect("ten thousand candidates that fail without a pause overflow no stack", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 10_000 }, (_, number) => number)

      const error = yield* Effect.flip(
        hedge(many, (number) => Effect.fail(number), { delay: 1, onExhausted: (errors) => errors })
      )

      assert.deepStrictEqual(error, many)
    })
  )

  it.effect("interruption of the caller ends all in flight and waits until they have cleaned up", () =>
    Effect.gen(function* () {
      const cleaned: Array<string> = []
      const cleaning =
        (who: string, millis: number): Attempt =>
        () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.zipRight(
              Effect.sleep(millis),
              Effect.sync(() => cleaned.push(who))
            )
          )
      const { run, story } = race([cleaning("a", 2000), cleaning("b", 1000), answers("c", 1)])
      const fiber = yield* Effect.fork(run)
      yield* TestClock.adjust("150 millis")

      fiber.unsafeInterruptAsFork(fiber.id())
      yield* TestClock.adjust("1999 millis")
      const early = fiber.unsafePoll()
      yield* TestClock.adjust("1 millis")

      assert.isNull(early)
      assert.isTrue(Exit.isInterrupted(yield* fiber.await))
      assert.deepStrictEqual(cleaned, ["b", "a"])
      assert.isFalse(story.some((line) => line.includes("lost") || line.includes("ask 2")))
    })
  )

  it.effect("interruption of the caller ends the wait for a hedge too", () =>
    Effect.gen(function* () {
      let asked = 0
      const mayHedge = () => {
        asked += 1
        return true
      }
      const fiber = yield* Effect.fork(race([hangs, hangs], { mayHedge }).run)
      yield* TestClock.adjust("50 millis")

      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 minute")

      assert.strictEqual(asked, 0)
    })
  )

  it.effect("an uninterruptible caller still gets its losers interrupted", () =>
    Effect.gen(function* () {
      const { run, story } = race([hangs, answers("b", 1)])

      assert.deepStrictEqual(yield* runOut(Effect.uninterruptible(run)), Exit.succeed("b"))
      assert.include(story, "101 interrupted 0")
    })
  )

  it.effect("attempts have the context of the caller, and their failures are nobody's unhandled errors", () =>
    Effect.gen(function* () {
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => void logged.push(message))
      const reference = FiberRef.unsafeMake("default")
      const { run } = race([fails("a", 10), () => Effect.zipRight(Effect.sleep(10), FiberRef.get(reference))])

      const exit = yield* runOut(Effect.locally(run, reference, "mine")).pipe(
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
        Logger.withMinimumLogLevel(LogLevel.All)
      )

      assert.deepStrictEqual(exit, Exit.succeed("mine"))
      assert.deepStrictEqual(logged, [])
    })
  )
})

describe("a claim", () => {
  /** Claims after a while, tells whether it has won, and then goes on as it likes. */
  const claims =
    (afterMillis: number, then: Effect.Effect<string, Failed>, won: Array<boolean> = []): Attempt =>
    ({ claim }) =>
      Effect.zipRight(
        Effect.delay(
          Effect.sync(() => void won.push(claim())),
          afterMillis
        ),
        then
      )

  it.effect("wins before the attempt has ended: all others are interrupted at once, and no hedge follows", () =>
    Effect.gen(function* () {
      const { run, story } = race([claims(150, Effect.delay(Effect.succeed("a"), 1000)), hangs, answers("c", 1)], {
        maxHedges: 2
      })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      assert.deepStrictEqual(story, [
        "0 ask 0",
        "100 hedge 0 to 1",
        "100 ask 1",
        "150 lost 1",
        "150 interrupted 1",
        "1150 end"
      ])
    })
  )

  it.effect("before the delay is over there is no hedge, and none is asked for, however long the rest takes", () =>
    Effect.gen(function* () {
      const { run, story } = race([claims(50, Effect.delay(Effect.succeed("a"), 1000)), answers("b", 1)], {
        mayHedge: () => assert.fail("asked")
      })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      noHedgeIn(story)
    })
  )

  it.effect("made while a hedge is asked for stops the hedge", () =>
    Effect.gen(function* () {
      let claim = () => false
      const first: Attempt = (race) => {
        claim = race.claim
        return Effect.delay(Effect.succeed("a"), 1000)
      }
      const { run, story } = race([first, answers("b", 1)], { mayHedge: () => claim() })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      noHedgeIn(story)
    })
  )

  it.effect("made while the attempt starts counts as well", () =>
    Effect.gen(function* () {
      const won: Array<boolean> = []
      const first: Attempt = ({ claim }) => {
        won.push(claim(), claim())
        return Effect.delay(Effect.succeed("a"), 1000)
      }
      const { run, story } = race([first, answers("b", 1)], { mayHedge: () => assert.fail("asked") })

      assert.deepStrictEqual(yield* runOut(run), Exit.succeed("a"))
      assert.deepStrictEqual(won, [true, true])
      noHedgeIn(story)
    })
  )

  it.effect("that comes later is refused, be it after a claim, an answer or the attempt's own end", () =>
    Effect.gen(function* () {
      const won: Array<boolean> = []
      const races: Array<Race> = []
      const stubborn: Attempt = (race) => {
        races.push(race)
        return Effect.uninterruptible(claims(150, Effect.succeed("late"), won)(race))
      }
      const keeping =
        (attempt: Attempt): Attempt =>
        (race) => {
          races.push(race)
          return attempt(race)
        }

      yield* runOut(race([stubborn, claims(10, Effect.delay(Effect.succeed("b"), 1000))]).run)
      yield* runOut(race([stubborn, keeping(answers("b", 10))]).run)

      assert.deepStrictEqual(won, [false, false])
      assert.deepStrictEqual(
        races.map(({ claim }) => claim()),
        [false, false, false]
      )
    })
  )

  it.effect("two in the same moment: one wins", () =>
    Effect.gen(function* () {
      const won: Array<boolean> = []
      const gate = yield* Deferred.make<void>()
      const both: Attempt = ({ claim }) =>
        Effect.zipRight(
          Deferred.await(gate),
          Effect.sync(() => `done ${won.push(claim())}`)
        )
      const { run, tell, story } = race([both, both])
      const fiber = yield* Effect.fork(run)
      yield* TestClock.adjust(200)

      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      yield* tell("after")

      assert.strictEqual(won.filter((isWon) => isWon).length, 1)
      assert.strictEqual(story.filter((line) => line.includes("lost")).length, 1)
    })
  )

  it.effect("followed by a failure is failover without others: the next not yet asked, without hedges", () =>
    Effect.gen(function* () {
      const broken = Effect.delay(Effect.fail(new Failed({ who: "a" })), 100)
      const { run, story } = race([claims(150, broken), hangs, fails("c", 1000), fails("d", 1000)])

      assert.deepStrictEqual(yield* runOut(run), Exit.fail(new Nobody({ who: ["a", "c", "d"] })))
      assert.deepStrictEqual(
        story.filter((line) => /ask|lost|end/.test(line)),
        ["0 ask 0", "100 ask 1", "150 lost 1", "250 ask 2", "1250 ask 3", "2250 end"]
      )
    })
  )

  it.effect("followed by a failure that must not fail over ends the race with it", () =>
    Effect.gen(function* () {
      const broken = Effect.delay(Effect.fail(new Failed({ who: "a", isFinal: true })), 100)
      const { run } = race([claims(10, broken), answers("b", 1)])

      assert.deepStrictEqual(yield* runOut(run), Exit.fail(new Failed({ who: "a", isFinal: true })))
    })
  )
})

describe("hedge, interrupted at any operation", () => {
  const shapes: Record<string, ReadonlyArray<"answers" | "fails" | "hangs">> = {
    "while the first answers": ["answers"],
    "while a hedge answers": ["hangs", "answers"],
    "while failing over": ["fails", "fails", "answers"],
    "while all fail": ["fails", "fails"]
  }
  for (const [name, kinds] of Object.entries(shapes)) {
    it(`leaves nobody running and asks nobody afterwards, ${name}`, async () => {
      const interrupted = await interruptAtEveryOperation(() => {
        let running = 0
        let asked = 0
        const ask = (kind: string) =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              running += 1
              asked += 1
            }),
            () =>
              kind === "hangs"
                ? Effect.never
                : Effect.zipRight(Effect.sleep(1), kind === "fails" ? Effect.fail("failed") : Effect.succeed("answer")),
            () =>
              Effect.sync(() => {
                running -= 1
              })
          )
        return {
          run: hedge(kinds, ask, {
            delay: 1,
            maxHedges: 2,
            onExhausted: () => "nobody",
            onHedge: () => Effect.yieldNow(),
            onFailover: () => Effect.yieldNow(),
            mayHedge: () => Effect.as(Effect.yieldNow(), true),
            isAvailable: () => Effect.as(Effect.yieldNow(), true)
          }),
          check: async (_, operation) => {
            assert.strictEqual(running, 0, `running after an interruption at operation ${operation}`)
            const askedThen = asked
            await Effect.runPromise(Effect.sleep(5))
            assert.strictEqual(asked, askedThen, `asked after an interruption at operation ${operation}`)
          }
        }
      })

      assert.isAbove(interrupted, 20)
    })
  }
})
