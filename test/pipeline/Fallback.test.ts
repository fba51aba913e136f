import { assert, describe, it } from "@effect/vitest"
import { Cause, Data, Effect, Exit, Fiber } from "effect"
import { FallbackError, fallback } from "llmfuse"

class Down extends Data.TaggedError("Down")<{ readonly message: string }> {}

const down: Effect.Effect<string, Down> = Effect.fail(new Down({ message: "down" }))
const degraded = (error: Down) => Effect.succeed(`sorry: ${error.message}`)

describe("fallback", () => {
  it.effect("answers instead of an error, which it is told", () =>
    Effect.gen(function* () {
      const answer = yield* fallback(degraded)(down)

      assert.strictEqual(answer, "sorry: down")
    })
  )

  it.effect("is not asked when all is well", () =>
    Effect.gen(function* () {
      let asked = 0
      const counting = () => Effect.sync(() => ++asked)

      const answer = yield* fallback(counting)(Effect.succeed("well"))

      assert.strictEqual(answer, "well")
      assert.strictEqual(asked, 0)
    })
  )

  it.effect("when it fails too, the failure says both: what it failed with, and what had failed before", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(fallback((_: Down) => Effect.fail(new Down({ message: "no template" })))(down))

      assert.instanceOf(error, FallbackError)
      assert.deepStrictEqual(
        [error.cause, error.error],
        [new Down({ message: "down" }), new Down({ message: "no template" })]
      )
      assert.strictEqual(error.message, "fallback: the fallback failed too: no template (after: down)")
    })
  )

  it.effect("an error that it is not for passes through as it is", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(fallback(degraded, { appliesTo: () => false })(down))

      assert.instanceOf(error, Down)
    })
  )

  it.effect("defects and interruption pass through", () =>
    Effect.gen(function* () {
      const defect = yield* Effect.exit(fallback(degraded)(Effect.die("a bug")))
      const fiber = yield* Effect.fork(fallback(degraded)(Effect.never))
      const interrupted = yield* Fiber.interrupt(fiber)

      assert.isTrue(Exit.isFailure(defect) && Cause.isDie(defect.cause))
      assert.isTrue(Exit.isInterrupted(interrupted))
    })
  )

  it.effect("a defect in it is a bug and stays one; one in its listener is lost", () =>
    Effect.gen(function* () {
      const bug = yield* Effect.exit(
        fallback((_: Down): Effect.Effect<string> => {
          throw new TypeError("a bug")
        })(down)
      )
      const answer = yield* fallback(degraded, { onFallback: () => Effect.die("a bug in the listener") })(down)

      assert.isTrue(Exit.isFailure(bug) && Cause.isDie(bug.cause))
      assert.strictEqual(answer, "sorry: down")
    })
  )
})
