/** Checks that `src` leaves time, randomness and failure to Effect, and that every export is documented: `check-source.mjs [root]`. */
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { lineOf, parseSources, report, walk } from "./sources.mjs"

/** Where a construct is right after all. */
const allowed = [
  {
    file: "FuseClient.ts",
    construct: "throw",
    reason: "The edge: `make` throws at once what is wrong with its options."
  }
]

/** What each construct is replaced with. */
const insteadOf = {
  "Date.now": "Clock.currentTimeMillis",
  "new Date()": "DateTime.now",
  "Math.random": "Random.next",
  setTimeout: "Effect.sleep",
  setInterval: "Effect.repeat",
  throw: "Effect.fail or Effect.die",
  "try/catch": "Effect.try"
}

const isTimer = (node) =>
  ts.isIdentifier(node) &&
  (node.text === "setTimeout" || node.text === "setInterval") &&
  !(ts.isPropertyAssignment(node.parent) && node.parent.name === node)

/** The name of the construct that a node is, if it is one. */
const constructOf = (node) => {
  if (ts.isThrowStatement(node)) return "throw"
  if (ts.isTryStatement(node)) return "try/catch"
  if (isTimer(node)) return node.text
  if (ts.isPropertyAccessExpression(node)) {
    const name = `${node.expression.getText().replace(/^globalThis\./, "")}.${node.name.text}`
    return name === "Date.now" || name === "Math.random" ? name : undefined
  }
  const isDate = (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === "Date"
  return isDate && (node.arguments ?? []).length === 0 ? "new Date()" : undefined
}

const forbiddenIn = ({ path, ast }) => {
  const violations = []
  walk(ast, (node) => {
    const construct = constructOf(node)
    if (construct === undefined || allowed.some((row) => row.file === path && row.construct === construct)) return
    violations.push(`src/${path}:${lineOf(node)}: ${construct}: use ${insteadOf[construct]}`)
  })
  return violations
}

const docsOf = (node) =>
  (node.jsDoc ?? []).filter((doc) => ts.getTextOfJSDocComment(doc.comment)?.trim() || doc.tags !== undefined)

/** The exported names that a statement declares, each with whether it is documented there. */
const exportsOf = (statement, isFirst) => {
  // A file's first comment is its header: it documents no declaration.
  const documented = docsOf(statement).length > (isFirst ? 1 : 0)
  if (ts.isExportDeclaration(statement) && statement.moduleSpecifier === undefined) {
    return statement.exportClause.elements.map((node) => ({
      node,
      name: node.name.text,
      local: (node.propertyName ?? node.name).text,
      documented: docsOf(node).length > 0
    }))
  }
  if (ts.isExportAssignment(statement)) return [{ node: statement, name: "default", documented }]
  const isExported = statement.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword)
  return declaredNames(statement).map((name) => ({ node: statement, name, documented, isLocal: !isExported }))
}

const isDeclaration = (statement) =>
  ts.isFunctionDeclaration(statement) ||
  ts.isClassDeclaration(statement) ||
  ts.isInterfaceDeclaration(statement) ||
  ts.isTypeAliasDeclaration(statement) ||
  ts.isEnumDeclaration(statement) ||
  ts.isModuleDeclaration(statement)

const declaredNames = (statement) => {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(nameOf)
  return isDeclaration(statement) ? [nameOf(statement)] : []
}

const nameOf = (declaration) => declaration.name?.getText() ?? "default"

/** A name is documented by any of its declarations, so overloads and a type beside its value need one comment. */
const undocumentedIn = ({ path, ast }) => {
  const declarations = ast.statements.flatMap((statement, index) => exportsOf(statement, index === 0))
  const documented = new Set(declarations.filter((it) => it.documented).map((it) => it.name))
  const missing = declarations.filter((it) => !it.isLocal && !documented.has(it.name) && !documented.has(it.local))
  const first = new Map(missing.map((it) => [it.name, it]).reverse())
  return [...first.values()].map(({ node, name }) => `src/${path}:${lineOf(node)}: ${name} has no docstring`)
}

const headerMissingIn = ({ path, ast }) => {
  const header = ts.getLeadingCommentRanges(ast.text, 0)?.[0]
  return header !== undefined && ast.text.startsWith("/**", header.pos) ? [] : [`src/${path}:1: no header comment`]
}

const root = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))
const sources = parseSources(root)

report(
  sources.flatMap((source) => [...headerMissingIn(source), ...forbiddenIn(source), ...undocumentedIn(source)]),
  `check-source: ${sources.length} files leave time, randomness and failure to Effect and document their exports`
)
