/** Runs a script of `scripts/` on a small tree of files. */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The files of a tree: path to content. */
export type Tree = Readonly<Record<string, string>>

/** The root of this repository. */
export const repository = fileURLToPath(new URL("../..", import.meta.url))

/**
 * Writes the tree to a temporary directory, runs the script on it (or on the path within it), and returns the exit code
 * and the lines printed.
 */
export const runScript = (script: string, tree: Tree, path = "") => {
  const root = mkdtempSync(join(tmpdir(), "llmfuse-"))
  for (const [file, content] of Object.entries(tree)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), content)
  }
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(repository, "scripts", script), join(root, path)],
    {
      encoding: "utf8"
    }
  )
  rmSync(root, { recursive: true })
  return { code: status, lines: (stdout + stderr).trim().split("\n") }
}
