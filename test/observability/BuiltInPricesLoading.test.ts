import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"

const imports = vi.hoisted(() => ({ count: 0 }))

// The data themselves; only that they are imported is noted.
vi.mock("@pydantic/genai-prices", (importOriginal) => {
  imports.count++
  return importOriginal()
})

describe("the price data", () => {
  it.effect("are imported when they are first asked for, and not with the package", () =>
    Effect.gen(function* () {
      yield* Effect.promise(() => import("../../src/index.ts"))
      const { shared } = yield* Effect.promise(() => import("../../src/observability/BuiltInPrices.ts"))
      assert.strictEqual(imports.count, 0)

      yield* shared.load

      assert.strictEqual(imports.count, 1)
      assert.isDefined(shared.costOf({ inputTokens: 1, outputTokens: 1 }, { provider: "openai", model: "gpt-4o" }))
    })
  )
})
