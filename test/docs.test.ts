import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath, pathToFileURL } from "node:url"
import { assert, beforeAll, describe, it } from "@effect/vitest"

const repository = fileURLToPath(new URL("..", import.meta.url))

const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href

const folder = join("docs", "stages")

const pages = readdirSync(join(repository, folder)).sort()

const read = (page: string): string => readFileSync(join(repository, page), "utf8")

/** The first block of a page in a language. */
const firstBlock = (page: string, language: string): string => {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(read(join(folder, page)))?.[1]
  assert(block !== undefined, `${page} has no ${language} block`)
  return block
}

/** What the first example of each page prints. All run one after the other in one process, which costs a start less each. */
const runExamples = async (): Promise<ReadonlyMap<string, string>> => {
  const place = mkdtempSync(join(tmpdir(), "llmfuse-docs-"))
  symlinkSync(join(repository, "node_modules"), join(place, "node_modules"))
  const runs = pages.map((page) => {
    writeFileSync(join(place, `${page}.mts`), firstBlock(page, "ts"))
    return `console.log("\\0${page}"); await import("./${page}.mts").catch((error) => console.log(error))`
  })
  writeFileSync(join(place, "all.mts"), runs.join("\n"))
  const child = spawn(process.execPath, ["--import", tsx, join(place, "all.mts")], {
    cwd: place,
    env: { PATH: process.env.PATH, TSX_TSCONFIG_PATH: join(repository, "tsconfig.json") },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const [stdout] = await Promise.all([text(child.stdout), once(child, "close")])
  rmSync(place, { recursive: true })
  return new Map(
    stdout
      .split("\0")
      .slice(1)
      .map((part) => {
        const end = part.indexOf("\n")
        return [part.slice(0, end), part.slice(end + 1)]
      })
  )
}

describe("the pages of the stages", () => {
  let printed: ReadonlyMap<string, string> = new Map()

  beforeAll(async () => {
    printed = await runExamples()
  }, 60_000)

  it.each(pages)("%s begins with an example that prints what the page says", (page) => {
    assert.strictEqual(printed.get(page), firstBlock(page, "text"))
  })

  it.each(pages)("%s has the sections of every page, in their order", (page) => {
    const headings = [...read(join(folder, page)).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)

    assert.deepStrictEqual(headings, [
      "Example",
      "Options",
      "What it promises",
      "What it does not promise",
      "Interruption",
      "Hooks and snapshot",
      "In LlmFuse"
    ])
  })

  it("are all linked in the README", () => {
    const linked = [...read("README.md").matchAll(/\]\(docs\/stages\/([\w-]+\.md)\)/g)].map(([, page]) => page)

    assert.deepStrictEqual([...new Set(linked)].sort(), pages)
  })
})

describe("the links of README.md and the pages", () => {
  /** The anchor that code hosts give a heading. */
  const anchorOf = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-")

  const withoutCode = (page: string): string => read(page).replace(/^\s*```.*?^\s*```$/gms, "")

  const anchorsOf = (page: string): ReadonlyArray<string> =>
    [...withoutCode(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchorOf(heading))

  it.each(["README.md", ...pages.map((page) => join(folder, page))])("of %s lead somewhere", (page) => {
    const targets = [...withoutCode(page).matchAll(/\]\(([^)]+)\)/g)].map(([, target = ""]) => target)

    const broken = targets.filter((target) => {
      if (target.startsWith("https://")) return false
      const [path = "", anchor] = target.split("#")
      const file = path === "" ? page : join(dirname(page), path)
      return !existsSync(join(repository, file)) || (anchor !== undefined && !anchorsOf(file).includes(anchor))
    })

    assert.deepStrictEqual(broken, [])
  })
})
