import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Exit, Fiber, TestClock } from "effect"
import { failover } from "llmfuse"
import { interruptAtEveryOperation } from "../interruptAt.ts"

class Failed extends Data.TaggedError("Failed")<{ readonly who: string; readonly isFinal?: boolean }> {}
class Nobody extends Data.TaggedError("Nobody")<{ readonly errors: ReadonlyArray<Failed> }> {}

const onExhausted = (errors: ReadonlyArray<Failed>) => new Nobody({ errors })
const asIs = (effect: Effect.Effect<string, Failed>) => effect
const mayFailOver = (error: Failed) => error.isFinal !== true

/** Candidates from what they do, and a list of who was asked. */
const candidates = (does: Record<string, Effect.Effect<string, Failed>>) => {
  const asked: Array<string> = []
  const effects = Object.entries(does).map(([who, effect]) =>
    Effect.suspend(() => {
      asked.push(who)
      return effect
    })
  )
  return { asked, effects }
}

const fails = (who: string) => Effect.fail(new Failed({ who }))

describe("failover", () => {
  it.effect("asks nobody after the first that answers", () =>
    Effect.gen(function* () {
      const { asked, effects } = candidates({ a: fails("a"), b: Effect.succeed("from b"), c: Effect.succeed("from c") })

      const answer = yield* failover(effects, asIs, { onExhausted })

      assert.strictEqual(answer, "from b")
      assert.deepStrictEqual(asked, ["a", "b"])
    })
  )

  it.effect("keeps the errors of all, in order", () =>
    Effect.gen(function* () {
      const { asked, effects } = candidates({ a: fails("a"), b: fails("b"), c: fails("c") })

      const error = yield* Effect.flip(failover(effects, asIs, { onExhausted }))

      assert.instanceOf(error, Nobody)
      assert.deepStrictEqual(
        error.errors.map(({ who }) => who),
        ["a", "b", "c"]
      )
      assert.deepStrictEqual(asked, ["a", "b", "c"])
    })
  )

  for (const position of [0, 1]) {
    it.effect(`a failure that must not fail over ends the search, as candidate ${position + 1}`, () =>
      Effect.gen(function* () {
        const final = Effect.fail(new Failed({ who: "final", isFinal: true }))
        const { asked, effects } = candidates(
          position === 0
            ? { final, next: Effect.succeed("next") }
            : { a: fails("a"), final, next: Effect.succeed("next") }
        )

        const error = yield* Effect.flip(failover(effects, asIs, { onExhausted, mayFailOver }))

        assert.instanceOf(error, Failed)
        assert.strictEqual(error.who, "final")
        assert.notInclude(asked, "next")
      })
    )
  }

  it.effect("a failure of the last candidate that must not fail over is itself, not exhaustion", () =>
    Effect.gen(function* () {
      const { effects } = candidates({ a: fails("a"), final: Effect.fail(new Failed({ who: "z", isFinal: true })) })

      const error = yield* Effect.flip(failover(effects, asIs, { onExhausted, mayFailOver }))

      assert.instanceOf(error, Failed)
    })
  )

  it.effect("an empty list is exhausted from the start", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        failover([] as ReadonlyArray<Effect.Effect<string, Failed>>, asIs, { onExhausted })
      )

      assert.instanceOf(error, Nobody)
      assert.deepStrictEqual(error.errors, [])
    })
  )

  it.effect("a defect ends the search and reaches the caller", () =>
    Effect.gen(function* () {
      const bug = new TypeError("bug")
      const { asked, effects } = candidates({ a: fails("a"), b: Effect.die(bug), c: Effect.succeed("from c") })

      const exit = yield* Effect.exit(failover(effects, asIs, { onExhausted }))

      assert.deepStrictEqual(exit, Exit.die(bug))
      assert.deepStrictEqual(asked, ["a", "b"])
    })
  )

  it.effect("tells of each step to the next candidate, and a listener that breaks harms nothing", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const { effects } = candidates({ a: fails("a"), b: fails("b"), c: Effect.succeed("from c") })
      const onFailover = (error: Failed, from: number, to: number) =>
        Effect.zipRight(
          Effect.sync(() => told.push(`${error.who}: ${from} to ${to}`)),
          Effect.die("listener broke")
        )

      const answer = yield* failover(effects, asIs, { onExhausted, onFailover })

      assert.strictEqual(answer, "from c")
      assert.deepStrictEqual(told, ["a: 0 to 1", "b: 1 to 2"])
    })
  )

  it.effect("interruption ends the candidate that is asked, and asks nobody else", () =>
    Effect.gen(function* () {
      let isStopped = false
      const hanging = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          isStopped = true
        })
      )
      const { asked, effects } = candidates({ a: fails("a"), b: hanging, c: Effect.succeed("from c") })
      const fiber = yield* Effect.fork(failover(effects, asIs, { onExhausted }))
      yield* TestClock.adjust("1 second")

      yield* Fiber.interrupt(fiber)

      assert.isTrue(isStopped)
      assert.deepStrictEqual(asked, ["a", "b"])
    })
  )

  it("interrupted at any operation, it asks nobody afterwards and leaves no candidate running", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      let running = 0
      const candidate = (effect: Effect.Effect<string, Failed>) =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            running += 1
          }),
          () => Effect.zipRight(Effect.yieldNow(), effect),
          () =>
            Effect.sync(() => {
              running -= 1
            })
        )
      return {
        run: failover([candidate(fails("a")), candidate(fails("b")), candidate(Effect.succeed("c"))], asIs, {
          onExhausted
        }),
        check: (_, operation) => assert.strictEqual(running, 0, `interrupted at operation ${operation}`)
      }
    })

    assert.isAbove(interrupted, 30)
  })
})
