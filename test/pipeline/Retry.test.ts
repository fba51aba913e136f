import { assert, describe, it } from "@effect/vitest"
import { Clock, Data, Duration, Effect, Exit, Fiber, Random, TestClock } from "effect"
import { RateLimitError, type Retrying, RetryPolicy, retry } from "llmfuse"
import { interruptAtEveryOperation } from "../interruptAt.ts"

class Failed extends Data.TaggedError("Failed")<{ readonly number: number; readonly retryAfter?: Duration.Duration }> {}

/** An effect that fails so many times before it succeeds, and the times at which it was run. */
const failing = (failures: number, retryAfter?: Duration.DurationInput) => {
  const ranAt: Array<number> = []
  const effect = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    ranAt.push(now)
    return ranAt.length > failures
      ? Effect.succeed("done")
      : Effect.fail(
          new Failed({
            number: ranAt.length,
            ...(retryAfter === undefined ? {} : { retryAfter: Duration.decode(retryAfter) })
          })
        )
  })
  return { effect, ranAt }
}

const exact = RetryPolicy.make({
  maxAttempts: 4,
  baseDelay: "1 second",
  multiplier: 2,
  maxDelay: "10 seconds",
  jitter: "none"
})

/** Runs an effect to its end, moving the clock as far as it takes. */
const runOut = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    yield* TestClock.adjust("1 hour")
    return yield* fiber.await
  })

describe("retry", () => {
  it.effect("does not touch a success", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(0)

      const answer = yield* retry(effect)

      assert.strictEqual(answer, "done")
      assert.deepStrictEqual(ranAt, [0])
    })
  )

  it.effect("tries again after waits that are exact under TestClock", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(3)

      const exit = yield* runOut(retry(effect, yield* exact))

      assert.deepStrictEqual(exit, Exit.succeed("done"))
      assert.deepStrictEqual(ranAt, [0, 1000, 3000, 7000])
    })
  )

  it.effect("fails with the last error itself when the attempts are used up, and does not wait after the last", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(100)

      const fiber = yield* Effect.fork(Effect.flip(retry(effect, yield* exact)))
      yield* TestClock.adjust("7 seconds")
      const error = yield* Fiber.join(fiber)

      assert.instanceOf(error, Failed)
      assert.strictEqual(error.number, 4)
      assert.strictEqual(ranAt.length, 4)
    })
  )

  it.effect("works in a pipe", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(1)

      const exit = yield* runOut(effect.pipe(retry(yield* exact)))

      assert.deepStrictEqual(exit, Exit.succeed("done"))
      assert.strictEqual(ranAt.length, 2)
    })
  )

  it.effect("a hint wins over a shorter backoff", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(1, "7 seconds")

      yield* runOut(retry(effect, yield* exact))

      assert.deepStrictEqual(ranAt, [0, 7000])
    })
  )

  it.effect("a hint does not shorten a longer backoff", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(1, 10)

      yield* runOut(retry(effect, yield* exact))

      assert.deepStrictEqual(ranAt, [0, 1000])
    })
  )

  it.effect("jitter only adds to a hint, so that callers with the same hint do not come back together", () =>
    Effect.gen(function* () {
      const policy = yield* RetryPolicy.make({ maxAttempts: 2, baseDelay: 500 })
      const calls = Array.from({ length: 50 }, () => failing(1, "3 seconds"))

      yield* runOut(
        Effect.all(
          calls.map(({ effect }) => retry(effect, policy)),
          { concurrency: "unbounded" }
        )
      )

      const secondRuns = calls.map(({ ranAt }) => ranAt[1] ?? 0)
      assert.isTrue(secondRuns.every((at) => at >= 3000 && at <= 3501))
      assert.isAbove(new Set(secondRuns.map(Math.round)).size, 25)
    })
  )

  it.effect("the same seed gives the same waits", () =>
    Effect.gen(function* () {
      const waitsWith = (seed: number) =>
        Effect.gen(function* () {
          const delays: Array<number> = []
          const onRetry = ({ delay }: Retrying<Failed>) => Effect.sync(() => void delays.push(Duration.toMillis(delay)))
          yield* runOut(retry(failing(2).effect, RetryPolicy.default, { onRetry }))
          return delays
        }).pipe(Effect.withRandom(Random.make(seed)))

      const first = yield* waitsWith(42)
      const second = yield* waitsWith(42)
      const other = yield* waitsWith(43)

      assert.strictEqual(first.length, 2)
      assert.deepStrictEqual(second, first)
      assert.notDeepEqual(other, first)
    })
  )

  it.effect("a hint longer than maxDelay ends the attempts at once", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(1, "11 seconds")

      const error = yield* Effect.flip(retry(effect, yield* exact))

      assert.strictEqual(error.number, 1)
      assert.strictEqual(ranAt.length, 1)
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    })
  )

  it.effect("a wait that does not fit is not begun", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(3)
      const fits = (delay: Duration.Duration) => Effect.succeed(Duration.lessThan(delay, "1500 millis"))

      const exit = yield* runOut(retry(effect, yield* exact, { fits }))

      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(ranAt, [0, 1000])
    })
  )

  it.effect("an attempt that is no longer wanted after its wait is not made", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(3)

      const exit = yield* runOut(retry(effect, yield* exact, { isStillWanted: Effect.succeed(false) }))

      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(ranAt.length, 1)
    })
  )

  it.effect("asks shouldRetry with the error and the number of the attempt", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(9)
      const asked: Array<readonly [number, number]> = []
      const shouldRetry = (error: Failed, attempt: number) => {
        asked.push([error.number, attempt])
        return attempt < 2
      }

      yield* runOut(retry(effect, yield* exact, { shouldRetry }))

      assert.deepStrictEqual(asked, [
        [1, 1],
        [2, 2]
      ])
      assert.strictEqual(ranAt.length, 2)
    })
  )

  it.effect("by default does not retry what says that it is not retryable", () =>
    Effect.gen(function* () {
      let runs = 0
      const effect = Effect.suspend(() => {
        runs += 1
        return Effect.fail({ isRetryable: false })
      })

      yield* Effect.flip(retry(effect))

      assert.strictEqual(runs, 1)
    })
  )

  it.effect("tells onRetry before each wait", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const onRetry = ({ attempt, error, delay }: Retrying<Failed>) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          told.push(`at ${now}: attempt ${attempt} failed (${error.number}), waiting ${Duration.toMillis(delay)}`)
        })

      yield* runOut(retry(failing(2).effect, yield* exact, { onRetry }))

      assert.deepStrictEqual(told, [
        "at 0: attempt 1 failed (1), waiting 1000",
        "at 1000: attempt 2 failed (2), waiting 2000"
      ])
    })
  )

  it.effect("a defect in onRetry harms nothing", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(1)

      const exit = yield* runOut(retry(effect, yield* exact, { onRetry: () => Effect.die("listener broke") }))

      assert.isTrue(Exit.isSuccess(exit))
      assert.strictEqual(ranAt.length, 2)
    })
  )

  it.effect("lets defects through at once", () =>
    Effect.gen(function* () {
      let runs = 0
      const broken = Effect.suspend(() => {
        runs += 1
        return Effect.die(new TypeError("bug"))
      })

      const exit = yield* Effect.exit(retry(broken))

      assert.deepStrictEqual(exit, Exit.die(new TypeError("bug")))
      assert.strictEqual(runs, 1)
    })
  )

  it.effect("interruption ends the wait at once and nothing more is run (Polly#2375, openai-node#2580)", () =>
    Effect.gen(function* () {
      const { effect, ranAt } = failing(3)
      const fiber = yield* Effect.fork(retry(effect, yield* exact))
      yield* TestClock.adjust("500 millis")

      const exit = yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 hour")

      assert.isTrue(Exit.isInterrupted(exit))
      assert.strictEqual(ranAt.length, 1)
    })
  )

  it.effect("a hint from the far future is no endless sleep", () =>
    Effect.gen(function* () {
      const limited = new RateLimitError({ provider: "groq", retryAfter: Duration.infinity })

      const error = yield* Effect.flip(retry(Effect.fail(limited)))

      assert.strictEqual(error, limited)
    })
  )

  it("interrupted at any operation, it leaves no attempt running and makes no other", async () => {
    const policy = Effect.runSync(RetryPolicy.make({ maxAttempts: 3, baseDelay: 1 }))
    const interrupted = await interruptAtEveryOperation(() => {
      let running = 0
      const attempt = Effect.acquireUseRelease(
        Effect.sync(() => {
          running += 1
        }),
        () => Effect.fail(new Failed({ number: 1 })),
        () =>
          Effect.sync(() => {
            running -= 1
          })
      )
      return {
        run: retry(attempt, policy),
        check: (_, operation) => assert.strictEqual(running, 0, `interrupted at operation ${operation}`)
      }
    })

    assert.isAbove(interrupted, 30)
  })
})
