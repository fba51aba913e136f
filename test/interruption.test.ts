import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { LlmFuse } from "llmfuse"
import { overloaded } from "./errors.ts"
import { interruptAtEveryOperation } from "./interruptAt.ts"

/** A provider that is down for its first requests, and counts those that are under way. */
const recovering = (failures: number) => {
  const state = { requests: 0, underWay: 0 }
  const complete = () =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        state.requests += 1
        state.underWay += 1
        return state.requests
      }),
      (request) =>
        Effect.zipRight(
          Effect.yieldNow(),
          request <= failures ? Effect.fail(overloaded("groq")) : Effect.succeed("hello")
        ),
      () =>
        Effect.sync(() => {
          state.underWay -= 1
        })
    )
  return { state, provider: { name: "groq", complete } }
}

describe("the whole pipeline, interrupted at every operation", () => {
  it("keeps no probe, leaves no request under way, and answers the next call", async () => {
    const interrupted = await interruptAtEveryOperation(() => {
      const { state, provider } = recovering(1)
      const layer = LlmFuse.layer({
        providers: [provider],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, resetTimeout: 1 },
        limits: { requestsPerMinute: 60_000_000, burst: 100 }
      })
      const fuse = Effect.runSync(Effect.scoped(Effect.provide(LlmFuse, layer)))
      const opening = Effect.exit(fuse.complete("opens the circuit"))
      return {
        run: Effect.zipRight(Effect.zipRight(opening, Effect.sleep(2)), fuse.complete("probe")),
        check: async (_, operation) => {
          assert.strictEqual(state.underWay, 0, `a request is under way after operation ${operation}`)
          await Effect.runPromise(Effect.sleep(2))
          // Interrupted before its first request, the provider still has its outage ahead of it.
          if (state.requests === 0) {
            await Effect.runPromise(Effect.exit(fuse.complete("opens the circuit")))
            await Effect.runPromise(Effect.sleep(2))
          }
          const next = await Effect.runPromiseExit(fuse.complete("next"))
          assert.isTrue(Exit.isSuccess(next), `no answer after operation ${operation}`)
          assert.strictEqual(Effect.runSync(fuse.circuitState("groq")), "Closed")
        }
      }
    })

    assert.isAbove(interrupted, 60)
  })
})
