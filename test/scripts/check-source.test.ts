import { assert, describe, it } from "@effect/vitest"
import { runScript } from "./scriptRun.ts"

/** Runs the check once on one file for each piece of code, and returns the lines printed for each file. */
const check = (codes: ReadonlyArray<string>, header = `/** The header. */\nimport "effect"\n\n`) => {
  const file = (index: number) => `src/model/Case${String(index).padStart(2, "0")}.ts`
  const { code, lines } = runScript(
    "check-source.mjs",
    Object.fromEntries(codes.map((source, index) => [file(index), `${header}${source}\n`]))
  )
  return {
    code,
    lines,
    violations: codes.map((_, index) =>
      lines.filter((line) => line.startsWith(file(index))).map((line) => line.slice(file(index).length + 1))
    )
  }
}

describe("check-source", () => {
  describe("refuses", () => {
    const cases = [
      ["const now = Date.now()", "Date.now: use Clock.currentTimeMillis"],
      ["const now = globalThis.Date.now", "Date.now: use Clock.currentTimeMillis"],
      ["const now = new Date()", "new Date(): use DateTime.now"],
      ["const now = new Date", "new Date(): use DateTime.now"],
      ["const random = Math.random", "Math.random: use Random.next"],
      ["const wait = () => setTimeout(() => {}, 1)", "setTimeout: use Effect.sleep"],
      ["const wait = () => globalThis.setInterval(() => {}, 1)", "setInterval: use Effect.repeat"],
      ["const fail = () => { throw 1 }", "throw: use Effect.fail or Effect.die"],
      ["const fail = () => { try {} catch {} }", "try/catch: use Effect.try"]
    ] as const
    const { code, violations } = check(cases.map(([source]) => source))

    it("with exit code 1", () => assert.strictEqual(code, 1))

    it.each(cases.map((it, index) => [...it, index] as const))("%s", (_, violation, index) => {
      assert.deepStrictEqual(violations[index], [`4: ${violation}`])
    })
  })

  it("passes a given date, and words in comments, in strings and as names of options", () => {
    const { code, lines } = check([
      "const parsed = new Date(5)",
      "// never throw, never Date.now()",
      `const text = "setTimeout"`,
      "const options = { setTimeout: 1 }"
    ])

    assert.deepStrictEqual(lines, [
      "check-source: 4 files leave time, randomness and failure to Effect and document their exports"
    ])
    assert.strictEqual(code, 0)
  })

  it("lets FuseClient, the edge, throw, but not read the clock", () => {
    const { lines } = runScript("check-source.mjs", {
      "src/FuseClient.ts": "/** The header. */\nimport 'effect'\nconst fail = () => { throw Date.now() }"
    })

    assert.deepStrictEqual(lines, ["src/FuseClient.ts:3: Date.now: use Clock.currentTimeMillis"])
  })

  describe("asks for the docstring of", () => {
    const cases = [
      ["export const retry = 1", "retry"],
      ["export function retry() {}", "retry"],
      ["export class Retry {}", "Retry"],
      ["export interface Retry {}", "Retry"],
      ["export type Retry = 1", "Retry"],
      ["export namespace Retry { export const a = 1 }", "Retry"],
      ["export default 1", "default"],
      ["const retry = 1; export { retry }", "retry"],
      ["const retry = 1; export { retry as default }", "default"],
      ["/* not a docstring */ export const retry = 1", "retry"],
      ["/** */ export const retry = 1", "retry"]
    ] as const
    const { code, violations } = check(cases.map(([source]) => source))

    it("and exits with 1", () => assert.strictEqual(code, 1))

    it.each(cases.map((it, index) => [...it, index] as const))("%s", (_, name, index) => {
      assert.deepStrictEqual(violations[index], [`4: ${name} has no docstring`])
    })
  })

  describe("asks for no docstring of", () => {
    const cases = [
      ["a documented declaration", "/** Again. */ export const retry = 1"],
      ["a name documented where it is declared", "/** Again. */ const retry = 1; export { retry }"],
      ["a name documented where it is exported", "const retry = 1; export { /** Again. */ retry as default }"],
      ["a documented overload", "/** Again. */ export function a(): 1; export function a(n: 1): 1"],
      ["a type beside its documented value", "/** A. */ export const A = 1; export type A = typeof A"],
      ["what another file documents", `export { a } from "./A.ts"; export * as A from "./A.ts"`],
      ["what is private", "const retry = 1"]
    ] as const
    const { violations } = check(cases.map(([, source]) => source))

    it.each(cases.map(([title], index) => [title, index] as const))("%s", (_, index) => {
      assert.deepStrictEqual(violations[index], [])
    })
  })

  it("does not take the header for the docstring of the first declaration", () => {
    const { violations } = check(
      ["export const usage = 1", "/** Used. */\nexport const usage = 1"],
      "/** The header. */\n\n"
    )

    assert.deepStrictEqual(violations, [["3: usage has no docstring"], []])
  })

  it("asks for the header of a file", () => {
    const { code, violations } = check(["export {}"], "// Usage\n")

    assert.deepStrictEqual(violations, [["1: no header comment"]])
    assert.strictEqual(code, 1)
  })
})
