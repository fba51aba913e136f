/** Parses the TypeScript files below `src`, for the checks that read them. */
import { readdirSync, readFileSync } from "node:fs"
import { join, sep } from "node:path"
import ts from "typescript"

/** Every file of `<root>/src` as `{ path, ast }`, in order of its path, which is relative to `src`. */
export const parseSources = (root) =>
  readdirSync(join(root, "src"), { recursive: true })
    .filter((path) => /\.[cm]?[jt]sx?$/.test(path))
    .sort()
    .map((path) => ({
      path: path.split(sep).join("/"),
      ast: ts.createSourceFile(path, readFileSync(join(root, "src", path), "utf8"), ts.ScriptTarget.Latest, true)
    }))

/** Calls `visit` on a node and on everything below it. */
export const walk = (node, visit) => {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

/** The line of a node, from 1. */
export const lineOf = (node) => ts.getLineAndCharacterOfPosition(node.getSourceFile(), node.getStart()).line + 1

/** Prints one line per violation and ends with 1, or prints the summary and ends with 0. */
export const report = (violations, summary) => {
  for (const violation of violations) console.error(violation)
  if (violations.length === 0) console.log(summary)
  process.exitCode = violations.length === 0 ? 0 : 1
}
