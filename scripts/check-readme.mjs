/** Type-checks every `ts` block of README.md as a module of its own, under the project's settings: `check-readme.mjs [root]`. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
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

/** A module whose code stands on the lines that it has in the README, so that TypeScript reports those. */
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

const errorsOf = (root, modules) => {
  const texts = new Map(modules.map((rows, index) => [join(root, `README.${index}.ts`), textOf(rows)]))
  const host = ts.createCompilerHost(optionsOf(root), true)
  const { fileExists, readFile } = host
  host.fileExists = (path) => texts.has(path) || fileExists(path)
  host.readFile = (path) => texts.get(path) ?? readFile(path)
  const program = ts.createProgram([...texts.keys()], optionsOf(root), host)
  return [...texts.keys()]
    .flatMap((path) => ts.getPreEmitDiagnostics(program, program.getSourceFile(path)))
    .map(({ file, start, messageText, code }) => {
      const line = file === undefined ? "" : `:${ts.getLineAndCharacterOfPosition(file, start).line + 1}`
      return `README.md${line}: TS${code}: ${ts.flattenDiagnosticMessageText(messageText, "\n  ")}`
    })
}

const root = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))
const readme = join(root, "README.md")
const modules = existsSync(readme) ? modulesOf(readFileSync(readme, "utf8")) : undefined

if (modules === undefined) report(["README.md: does not exist"])
else if (modules.length === 0) report(["README.md: holds no ts block to check"])
else report([...new Set(errorsOf(root, modules))], `check-readme: ${modules.length} examples of README.md compile`)
