import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { repository, runScript, type Tree } from "./scriptRun.ts"

const project = {
  "package.json": `{ "type": "module" }`,
  "tsconfig.json": JSON.stringify({
    extends: join(repository, "tsconfig.json"),
    compilerOptions: { types: [], paths: { llmfuse: ["./src/index.ts"], "llmfuse/testing": ["./src/testing.ts"] } }
  }),
  "src/index.ts": `export const complete = async (question: string) => ({ text: question })`,
  "src/testing.ts": `export const fake: { answer?: string } = {}`
}

const check = (readme: ReadonlyArray<string>, docs: Tree = {}) =>
  runScript("check-readme.mjs", { ...project, "README.md": readme.join("\n"), ...docs })

describe("check-readme", () => {
  it("passes examples that use both entry points, and leaves other languages alone", () => {
    const { code, lines } = check([
      "# Title",
      "```ts",
      `import { complete } from "llmfuse"`,
      `import { fake } from "llmfuse/testing"`,
      `const { text } = await complete(fake.answer ?? "hi")`,
      "```",
      "```bash",
      "npm install",
      "```",
      "```ts",
      "const text = 1 // as in the first example: each is a module of its own",
      "```"
    ])

    assert.deepStrictEqual(lines, ["check-readme: 2 examples compile, of README.md and 0 pages below docs"])
    assert.strictEqual(code, 0)
  })

  it("names the line of README.md for every error", () => {
    const { code, lines } = check([
      "```ts",
      `import { compete } from "llmfuse"`,
      "```",
      "",
      "1. In a list:",
      "   ```ts",
      `   import { complete } from "llmfuse"`,
      "   complete(1)",
      "   ```"
    ])

    assert.deepStrictEqual(lines, [
      `README.md:2: TS2724: '"llmfuse"' has no exported member named 'compete'. Did you mean 'complete'?`,
      "README.md:8: TS2345: Argument of type 'number' is not assignable to parameter of type 'string'."
    ])
    assert.strictEqual(code, 1)
  })

  it("applies the project's strict settings", () => {
    const { lines } = check([
      "```ts",
      `import { fake } from "llmfuse/testing"`,
      "fake.answer = undefined",
      `const first: string = [""][0]`,
      "```"
    ])

    assert.match(lines[0] ?? "", /^README\.md:3: TS2412: .*exactOptionalPropertyTypes/)
    assert.include(lines[1], "README.md:4: TS2322: Type 'string | undefined'")
  })

  it("refuses what is no TypeScript", () => {
    const { code, lines } = check(["```ts", "const = 1", "```"])

    assert.include(lines[0], "README.md:2: TS1134")
    assert.strictEqual(code, 1)
  })

  it("appends a block that continues the one before it", () => {
    const { code, lines } = check([
      "```ts",
      "let text = 1",
      "```",
      "and then",
      "<!-- check: continues -->",
      "```ts",
      "text.toFixed()",
      "text.toFixes()",
      "```"
    ])

    assert.deepStrictEqual(lines, [
      "README.md:8: TS2551: Property 'toFixes' does not exist on type 'number'. Did you mean 'toFixed'?"
    ])
    assert.strictEqual(code, 1)
  })

  it("checks the pages below docs alike", () => {
    const readme = ["```ts", `import { complete } from "llmfuse"`, "```"]
    const page = ["# Page", "", ...readme].join("\n")

    const { code, lines } = check(readme, {
      "docs/first.md": page,
      "docs/deep/er/second.md": page,
      "docs/third.md": "No example.",
      "docs/notes.txt": "```ts\nnot a page\n```"
    })

    assert.deepStrictEqual(lines, ["check-readme: 3 examples compile, of README.md and 3 pages below docs"])
    assert.strictEqual(code, 0)
  })

  it("names the page and the line for every error", () => {
    const { code, lines } = check(["```ts", "const text = 1", "```"], {
      "docs/deep/page.md": ["# Page", "", "```ts", "text", "```", "", "```ts", `const number: number = ""`, "```"].join(
        "\n"
      )
    })

    assert.deepStrictEqual(lines, [
      "docs/deep/page.md:4: TS2304: Cannot find name 'text'.",
      "docs/deep/page.md:8: TS2322: Type 'string' is not assignable to type 'number'."
    ])
    assert.strictEqual(code, 1)
  })

  it("says that README.md does not exist", () => {
    const { code, lines } = runScript("check-readme.mjs", project)

    assert.deepStrictEqual(lines, ["README.md: does not exist"])
    assert.strictEqual(code, 1)
  })

  it("refuses a README.md without an example", () => {
    const { code, lines } = check(["# Title"])

    assert.deepStrictEqual(lines, ["README.md: holds no ts block to check"])
    assert.strictEqual(code, 1)
  })
})
