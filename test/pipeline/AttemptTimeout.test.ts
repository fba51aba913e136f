import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, TestClock } from "effect"
import { attemptTimeout } from "llmfuse"
import { interruptAtEveryOperation } from "../interruptAt.ts"

const within = attemptTimeout("1 second", () => "too late" as const)

describe("attemptTimeout", () => {
  it.effect("lets what ends in time pass, failures and defects too", () =>
    Effect.gen(function* () {
      const bug = new TypeError("bug")
      const effects = [
        Effect.succeed("hello"),
        Effect.delay(Effect.succeed("hello"), "999 millis"),
        Effect.fail("failed"),
        Effect.delay(Effect.fail("failed"), "10 millis"),
        Effect.die(bug)
      ]

      const fibers = yield* Effect.forEach(effects, (effect) => Effect.fork(Effect.exit(within(effect))))
      yield* TestClock.adjust("2 seconds")
      const exits = yield* Effect.forEach(fibers, Fiber.join)

      assert.deepStrictEqual(exits, [
        Exit.succeed("hello"),
        Exit.succeed("hello"),
        Exit.fail("failed"),
        Exit.fail("failed"),
        Exit.die(bug)
      ])
    })
  )

  it.effect("fails at the very moment, and interrupts the effect", () =>
    Effect.gen(function* () {
      let isStopped = false
      const hanging = Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          isStopped = true
        })
      )
      const fiber = yield* Effect.fork(Effect.exit(within(hanging)))

      yield* TestClock.adjust("999 millis")
      const early = fiber.unsafePoll()
      yield* TestClock.adjust("1 millis")
      const exit = yield* Fiber.join(fiber)

      assert.isNull(early)
      assert.deepStrictEqual(exit, Exit.fail("too late"))
      assert.isTrue(isStopped)
    })
  )

  it.effect("does not wait for an effect that does not let itself be interrupted", () =>
    Effect.gen(function* () {
      const stubborn = Effect.uninterruptible(Effect.sleep("1 hour"))
      const fiber = yield* Effect.fork(Effect.flip(within(stubborn)))

      yield* TestClock.adjust("1 second")

      assert.strictEqual(yield* Fiber.join(fiber), "too late")
    })
  )

  it.effect("gives the effect the context of its caller", () =>
    Effect.gen(function* () {
      class Name extends Context.Tag("Name")<Name, string>() {}

      const answer = yield* within(Name).pipe(Effect.provideService(Name, "groq"))

      assert.strictEqual(answer, "groq")
    })
  )

  it("interrupted at any operation, it leaves the effect stopped and its cleaning done", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      let running = 0
      const effect = Effect.acquireUseRelease(
        Effect.sync(() => {
          running += 1
        }),
        () => Effect.sleep(1),
        () =>
          Effect.sync(() => {
            running -= 1
          })
      )
      return {
        run: within(effect),
        check: (_, operation) => assert.strictEqual(running, 0, `interrupted at operation ${operation}`)
      }
    })

    assert.isAbove(interrupted, 20)
  })
})
