import { assert, describe, it } from "@effect/vitest"
import { runScript, type Tree } from "./scriptRun.ts"

const clean: Tree = {
  "src/model/Usage.ts": `export interface Usage {}`,
  "src/provider/Provider.ts": `import type { Usage } from "../model/Usage.ts"\nexport type Provider = Usage`,
  "src/pipeline/Retry.ts": `import { Effect } from "effect"\nexport const retry = Effect.retry`,
  "src/observability/Metrics.ts": `export { retry } from "../pipeline/Retry.ts"`,
  "src/provider/Sse.ts": `import * as HttpClient from "@effect/platform/HttpClient"\nexport { HttpClient }`,
  "src/provider/vendors.ts": `export * from "./Sse.ts"`,
  "src/LlmFuse.ts": `export { retry } from "./pipeline/Retry.ts"\nexport * from "./observability/Metrics.ts"`,
  "src/FuseClient.ts": `export * from "./LlmFuse.ts"`,
  "src/testing.ts": `export * from "./FuseClient.ts"`,
  "src/index.ts": `export * from "./FuseClient.ts"\nexport * from "./provider/vendors.ts"`
}

const run = (changes: Tree) => runScript("check-imports.mjs", { ...clean, ...changes })

/** What is refused: file, its only line, what is printed after the file and the line. */
const refused = [
  [
    "an arrow that points up",
    "src/pipeline/Up.ts",
    `export * from "../observability/Metrics.ts"`,
    `imports "../observability/Metrics.ts": pipeline may not import observability, which stands above it`
  ],
  [
    "an arrow that points up, although it is type-only",
    "src/model/Up.ts",
    `import type { Provider } from "../provider/Provider.ts"`,
    `imports "../provider/Provider.ts": model may not import provider core, which stands above it`
  ],
  [
    "an arrow that points up within a type",
    "src/pipeline/UpInType.ts",
    `export type Fuse = typeof import("../LlmFuse.ts")`,
    `imports "../LlmFuse.ts": pipeline may not import LlmFuse, which stands above it`
  ],
  [
    "an arrow that points up in a dynamic import",
    "src/observability/Up.ts",
    `export const load = () => import("../provider/vendors.ts")`,
    `imports "../provider/vendors.ts": observability may not import provider adapters, which stands above it`
  ],
  [
    "an adapter that imports a stage",
    "src/provider/Groq.ts",
    `export * from "../pipeline/Retry.ts"`,
    `imports "../pipeline/Retry.ts": an adapter never imports a stage`
  ],
  [
    "LlmFuse importing an adapter",
    "src/LlmFuse.ts",
    `export * from "./provider/vendors.ts"`,
    `imports "./provider/vendors.ts": LlmFuse knows providers only by their interface`
  ],
  [
    "an import of testing.ts",
    "src/index.ts",
    `export * from "./testing.ts"`,
    `imports "./testing.ts": index may not import testing, which stands above it`
  ],
  [
    "the barrel of @effect/platform",
    "src/provider/Sse.ts",
    `import { HttpClient } from "@effect/platform"`,
    `imports "@effect/platform": the barrel is slow to load: import its modules deep`
  ],
  [
    "@effect/platform-node",
    "src/provider/Node.ts",
    `export * from "@effect/platform-node/NodeHttpClient"`,
    `imports "@effect/platform-node/NodeHttpClient": only scripts, tests and entry points that open a port need it`
  ],
  [
    "a static import of the price data",
    "src/observability/Prices.ts",
    `import { calcPrice } from "@pydantic/genai-prices"`,
    `imports "@pydantic/genai-prices": the price data is slow to load: import it when it is first needed`
  ],
  ["a module of Node", "src/model/File.ts", `import "node:fs"`, `imports "node:fs": src runs wherever fetch does`],
  [
    "a server outside the fault server",
    "src/testing/FakeHttp.ts",
    `import "node:http"`,
    `imports "node:http": src runs wherever fetch does`
  ],
  [
    "what a fault server does not need of Node",
    "src/testing/FaultDisk.ts",
    `import "node:fs"`,
    `imports "node:fs": src runs wherever fetch does`
  ],
  [
    "a package that users do not have",
    "src/model/Id.ts",
    `export { nanoid } from "nanoid"`,
    `imports "nanoid": not a dependency`
  ],
  [
    "a relative import that names no .ts file",
    "src/provider/NoFile.ts",
    `export * from "./Sse"`,
    `imports "./Sse": a relative import names a .ts file`
  ],
  [
    "an import from outside src",
    "src/model/Outside.ts",
    `export * from "../../test/rig.ts"`,
    `imports "../../test/rig.ts": leaves src`
  ],
  [
    "an import of a file that no layer covers",
    "src/model/Common.ts",
    `export * from "../common/text.ts"`,
    `imports "../common/text.ts": no layer covers what it imports`
  ]
] as const

describe("check-imports", () => {
  it("passes a tree whose arrows all point down, with one line", () => {
    const { code, lines } = run({})

    assert.deepStrictEqual(lines, ["check-imports: 11 imports of 10 files point down, without a circle"])
    assert.strictEqual(code, 0)
  })

  describe("refuses", () => {
    const { code, lines } = run(Object.fromEntries(refused.map(([, path, content]) => [path, content])))

    it("with exit code 1 and one line for each violation", () => {
      assert.strictEqual(lines.length, refused.length)
      assert.strictEqual(code, 1)
    })

    it.each(refused)("%s", (_, path, __, violation) => {
      assert.include(lines, `${path}:1: ${violation}`)
    })
  })

  it("lets the fault server open a port", () => {
    const { code, lines } = run({
      "src/testing/FaultServer.ts": `import "node:http"\nimport type { Socket } from "node:net"\nimport "node:timers"`
    })

    assert.deepStrictEqual(lines, ["check-imports: 14 imports of 11 files point down, without a circle"])
    assert.strictEqual(code, 0)
  })

  it("lets the price data be imported when it is needed", () => {
    const { code } = run({
      "src/observability/Prices.ts": `export const load = (): Promise<typeof import("@pydantic/genai-prices")> => import("@pydantic/genai-prices")`
    })

    assert.strictEqual(code, 0)
  })

  it("refuses a circle within a layer and shows its path", () => {
    const { code, lines } = run({
      "src/pipeline/A.ts": `import type { B } from "./B.ts"\nexport type A = B`,
      "src/pipeline/B.ts": `export * from "./C.ts"`,
      "src/pipeline/C.ts": `import type { A } from "./A.ts"\nexport type B = A`
    })

    const circle = "circle: pipeline/A.ts -> pipeline/B.ts -> pipeline/C.ts -> pipeline/A.ts"
    assert.deepStrictEqual(lines, [`src/pipeline/C.ts:1: imports "./A.ts": ${circle}`])
    assert.strictEqual(code, 1)
  })

  it("refuses a file and a folder that no layer covers", () => {
    const paths = ["src/cache/Cache.ts", "src/gateway.ts", "src/pipeline/inner/Retry.ts"]

    const { code, lines } = run(Object.fromEntries(paths.map((path) => [path, "export {}"])))

    assert.deepStrictEqual(
      lines,
      paths.map((path) => `${path}: no layer covers this file`)
    )
    assert.strictEqual(code, 1)
  })
})
