/** Packs what was built, and uses the package as its users will, in an empty project: `check-package.mjs [root]`. */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const repository = fileURLToPath(new URL("..", import.meta.url))
const root = process.argv[2] ?? repository
const { name, exports, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

/** The user's project; its settings are the strictest that a user may have. */
const project = mkdtempSync(join(tmpdir(), "llmfuse-package-"))
process.on("exit", () => rmSync(project, { recursive: true }))

const compilerOptions = {
  module: "NodeNext",
  target: "ES2022",
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false
}

const run = (command, ...args) => execFileSync(command, args, { cwd: project, encoding: "utf8", stdio: "pipe" })
const tool = (command, ...args) => run(join(repository, "node_modules/.bin", command), ...args)
const tarball = () => `./${readdirSync(project).find((file) => file.endsWith(".tgz"))}`

/** What is done, in order. The first that fails ends the check. */
const steps = {
  "is built": () => {
    for (const file of Object.values(exports).flatMap((target) => Object.values(target))) {
      if (file.startsWith("./") && !existsSync(join(root, file))) throw new Error(`${file} is missing: npm run build`)
    }
  },
  "is packed": () => run("npm", "pack", root, "--silent"),
  "satisfies publint": () => tool("publint", "run", tarball(), "--strict"),
  "has types that are not wrong": () => tool("attw", tarball(), "--profile", "esm-only"),
  "installs beside its peers, without a conflict": () => {
    writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }))
    const peers = Object.entries(peerDependencies).map(([peer, range]) => `${peer}@${range}`)
    const flags = ["--strict-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"]
    run("npm", "install", ...flags, tarball(), ...peers, `typescript@${ts.version}`)
  },
  "works in plain JavaScript": () => {
    cpSync(join(repository, "scripts/consumer"), project, { recursive: true })
    run("node", "plain.mjs")
  },
  "compiles in strict TypeScript": () => {
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["typed.ts"] }))
    run("node_modules/.bin/tsc")
  },
  "works in TypeScript": () => run("node", "typed.js")
}

for (const [title, step] of Object.entries(steps)) {
  try {
    step()
    console.log(`check-package: ${name} ${title}`)
  } catch (error) {
    console.error(`check-package: failed: ${name} ${title}\n${error.stdout ?? ""}${error.stderr ?? error.message}`)
    process.exit(1)
  }
}
