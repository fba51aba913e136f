import { setTimeout as sleep } from "node:timers/promises"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { catalogue } from "../scripts/wall/catalogue.ts"
import type { Fault } from "../scripts/wall/fault.ts"
import { llmFuse } from "../scripts/wall/llmfuse.ts"
import type { Result } from "../scripts/wall/report.ts"
import { runWall } from "../scripts/wall/run.ts"
import type { System } from "../scripts/wall/system.ts"
import { textOf } from "./testing/faultClient.ts"

/** Real time takes 80 seconds: `npm run wall`. */
const timeScale = 0.12

const faults = catalogue(timeScale)

const only = (...ids: ReadonlyArray<string>): ReadonlyArray<Fault> => faults.filter(({ id }) => ids.includes(id))

/** Asks once, takes what comes for the answer, knows no fallback and no time limit. */
const naive: System = {
  name: "naive",
  version: "1",
  ask: ({ primary }) => ({
    stream: async (prompt, signal) => {
      const response = await fetch(`${primary.baseUrl}/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ model: primary.model, stream: true, messages: [{ role: "user", content: prompt }] }),
        signal
      })
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
      return { text: textOf(await response.text()), model: primary.model }
    },
    close: () => Promise.resolve()
  })
}

const verdictsOf = (results: ReadonlyArray<Result>) =>
  Object.fromEntries(results.map(({ fault, judgement }) => [fault.id, judgement.verdict]))

const reasonsOf = (results: ReadonlyArray<Result>) =>
  Object.fromEntries(results.map(({ fault, judgement }) => [fault.id, judgement.reasons.join("; ")]))

describe("the wall", () => {
  it("has twenty-six faults, in order", () => {
    const ids = faults.map(({ id }) => id)

    assert.lengthOf(ids, 26)
    assert.deepStrictEqual(ids, [...new Set(ids)].sort())
  })

  describe("in compressed time", () => {
    const results = new Map<string, Result>()

    const run = async (chosen: ReadonlyArray<Fault>): Promise<void> => {
      for (const result of await runWall(chosen, llmFuse)) results.set(result.fault.id, result)
    }

    beforeAll(async () => {
      // The first retry and the first failover of a process are slow, and compressed times are short.
      await run(only("S03", "S16"))
      // S15 counts calls against a clock: it begins when the rush of the others is over.
      await Promise.all([run(faults.filter(({ id }) => id !== "S15")), sleep(1500).then(() => run(only("S15")))])
      // A busy machine is late for compressed times. Who is to blame shows when they stand before the fault alone.
      for (const { fault, judgement } of [...results.values()]) {
        if (judgement.verdict !== "pass") await run(only(fault.id))
      }
    }, 120_000)

    it.each(faults.map(({ id, title, conduct }) => [id, title, conduct]))("%s: %s: %s", (id) => {
      const result = results.get(id)

      assert.deepStrictEqual(result?.judgement, { verdict: "pass", reasons: [] })
    })
  })

  it("stands: a naive client does not pass it", async () => {
    const results = await runWall(only("S03", "S08", "S12", "S13", "X02", "X03", "X05"), naive)

    assert.deepStrictEqual(verdictsOf(results), {
      S03: "safe",
      S08: "safe",
      S12: "safe",
      S13: "pass",
      X02: "fail",
      X03: "fail",
      X05: "fail"
    })
    assert.deepInclude(reasonsOf(results), {
      X02: "presented as success: a cut answer of 40 words",
      X03: "presented as success: an empty answer",
      X05: "presented as success: an empty answer"
    })
  })

  it("does not wait for ever: who hangs has failed", async () => {
    const [result] = await runWall(
      only("S06").map((fault) => ({ ...fault, budgetMillis: 200 })),
      naive
    )

    assert.deepStrictEqual(result?.judgement, { verdict: "fail", reasons: ["no end within 0.2 s"] })
  })

  it("sees that an outage is met with one attempt for each call", async () => {
    const [result] = await runWall(
      only("S15").map((fault) => ({ ...fault, calls: { count: 5, everyMillis: 10 } })),
      naive
    )

    assert.strictEqual(result?.judgement.verdict, "safe")
    assert.lengthOf(result?.observation.primary ?? [], 5)
  })
})
