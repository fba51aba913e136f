/**
 * Type-checks every `ts` block of README.md, and of the pages below docs, as a module of its own, under the project's
 * settings: `check-readme.mjs [root]`.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, sep } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { report } from "./sources.mjs"

/** Right before a block, it appends the block to the one before it. */
const continues = "<!-- check: continues -->"

/** The blocks as `[line number, text]` rows per module. An unclosed block ends with the file. */
const modulesOf = (markdown) => {
  const modules = []
  let language
  let previous = ""
  for (const [index, line] of markdown.split(/\r?\n/).entries()) {
    const fence = /^\s*```(\w*)/.exec(line)
    if (language === undefined && fence !== null) {
      language = fence[1]
      if (language === "ts" && (previous !== continues || modules.length === 0)) modules.push([])
    } else if (fence !== null) {
      language = undefined
    } else if (language === "ts") {
      modules.at(-1).push([index + 1, line])
    }
    if (line.trim() !== "") previous = line.trim()
  }
  return modules
}

/** A module whose code stands on the lines that it has in its page, so that TypeScript reports those. */
const textOf = (rows) => {
  const lines = Array(rows.at(-1)?.[0] ?? 0).fill("")
  for (const [number, line] of rows) lines[number - 1] = line
  return lines.join("\n")
}

/** The project's settings; an example may name what it does not go on to use. */
const optionsOf = (root) => {
  const path = join(root, "tsconfig.json")
  const { options } = ts.parseJsonConfigFileContent(ts.readConfigFile(path, ts.sys.readFile).config, ts.sys, root)
  return { ...options, noUnusedLocals: false, noUnusedParameters: false }
}

/** The paths of the pages, README.md first. */
const pagesOf = (root) => {
  const docs = join(root, "docs")
  const paths = existsSync(docs) ? readdirSync(docs, { recursive: true }) : []
  const below = paths.filter((path) => path.endsWith(".md")).map((path) => `docs/${path.split(sep).join("/")}`)
  return ["README.md", ...below.sort()]
}

/** `modules` are those of all pages, as `{ page, rows }`. */
const errorsOf = (root, modules) => {
  const pages = new Map(modules.map(({ page }, index) => [join(root, `example.${index}.ts`), page]))
  const texts = new Map([...pages.keys()].map((path, index) => [path, textOf(modules[index].rows)]))
  const host = ts.createCompilerHost(optionsOf(root), true)
  const { fileExists, readFile } = host
  host.fileExists = (path) => texts.has(path) || fileExists(path)
  host.readFile = (path) => texts.get(path) ?? readFile(path)
  const program = ts.createProgram([...texts.keys()], optionsOf(root), host)
  return [...pages].flatMap(([path, page]) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path)).map(({ file, start, messageText, code }) => {
      const line = file === undefined ? "" : `:${ts.getLineAndCharacterOfPosition(file, start).line + 1}`
      return `${page}${line}: TS${code}: ${ts.flattenDiagnosticMessageText(messageText, "\n  ")}`
    })
  )
}

const root = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))

if (!existsSync(join(root, "README.md"))) report(["README.md: does not exist"])
else {
  const pages = pagesOf(root)
  const modules = pages.flatMap((page) =>
    modulesOf(readFileSync(join(root, page), "utf8")).map((rows) => ({ page, rows }))
  )
  const summary = `check-readme: ${modules.length} examples compile, of README.md and ${pages.length - 1} pages below docs`
  if (!modules.some(({ page }) => page === "README.md")) report(["README.md: holds no ts block to check"])
  else report([...new Set(errorsOf(root, modules))], summary)
}
