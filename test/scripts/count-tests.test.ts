import { assert, describe, it } from "@effect/vitest"
import { runScript, type Tree } from "./scriptRun.ts"

const count = (tree: Tree) => runScript("count-tests.mjs", tree, "tests.json")

const reportOf = (...files: ReadonlyArray<{ status: string; tests: ReadonlyArray<string> }>): Tree => {
  const testResults = files.map(({ status, tests }) => ({
    status,
    assertionResults: tests.map((test) => ({ status: test }))
  }))
  return { "tests.json": JSON.stringify({ testResults }) }
}

describe("count-tests", () => {
  it("counts what passed, what failed and what was left out", () => {
    const { code, lines } = count(
      reportOf(
        { status: "passed", tests: ["passed", "passed", "skipped"] },
        { status: "failed", tests: ["failed", "pending", "todo"] }
      )
    )

    assert.deepStrictEqual(lines, ["2 passed, 1 failed, 3 skipped"])
    assert.strictEqual(code, 0)
  })

  it("counts a file that could not be loaded as a failure", () => {
    const { lines } = count(reportOf({ status: "passed", tests: ["passed"] }, { status: "failed", tests: [] }))

    assert.deepStrictEqual(lines, ["1 passed, 1 failed, 0 skipped"])
  })

  it("fails if every test was skipped", () => {
    const { code, lines } = count(reportOf({ status: "passed", tests: ["skipped"] }))

    assert.deepStrictEqual(lines, ["0 passed, 0 failed, 1 skipped"])
    assert.strictEqual(code, 1)
  })

  it("fails without a report", () => {
    const { code, lines } = count({})

    assert.deepStrictEqual(lines, ["0 passed, 0 failed, 0 skipped"])
    assert.strictEqual(code, 1)
  })
})
