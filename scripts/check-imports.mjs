/** Checks that the arrows between the layers of `src` run one way and that no circle exists: `check-imports.mjs [root]`. */
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { lineOf, parseSources, report, walk } from "./sources.mjs"

/** Lowest first: a file may import its own layer and lower ones. It belongs to the first layer that matches its path. */
const layers = [
  { name: "model", files: /^model\/\w+\.ts$/ },
  {
    name: "provider core",
    files:
      /^provider\/(Provider|Promised|PromiseStream|HttpFailure|FailureRules|ErrorBody|RetryHint|Redaction|Json|Rejection)\.ts$/
  },
  { name: "pipeline", files: /^pipeline\/\w+\.ts$/ },
  { name: "observability", files: /^observability\/\w+\.ts$/ },
  { name: "provider adapters", files: /^provider\/\w+\.ts$/ },
  { name: "LlmFuse", files: /^(LlmFuse|fuse\/\w+)\.ts$/ },
  { name: "FuseClient", files: /^(FuseClient|client\/\w+)\.ts$/ },
  { name: "index", files: /^index\.ts$/ },
  { name: "testing", files: /^(testing|testing\/\w+)\.ts$/ }
]

/** Arrows that are forbidden although they point down. */
const forbidden = [
  { from: "LlmFuse", to: "provider adapters", why: "LlmFuse knows providers only by their interface" },
  { from: "provider adapters", to: "pipeline", why: "an adapter never imports a stage" },
  { from: "testing", to: "index", why: "the entry points stand beside each other" }
]

/**
 * What may be imported from outside; the first row that matches a specifier decides, and without `why` it is allowed.
 * A row with `files` is for these files only, and one with `isLazy` for dynamic imports and types.
 */
const packages = [
  { specifier: /^effect(\/\w+)?$/ },
  { specifier: /^@effect\/platform\/\w+$/ },
  { specifier: /^eventsource-parser$/ },
  { specifier: /^@pydantic\/genai-prices$/, isLazy: true },
  { specifier: /^@pydantic\/genai-prices$/, why: "the price data is slow to load: import it when it is first needed" },
  { specifier: /^@effect\/platform$/, why: "the barrel is slow to load: import its modules deep" },
  { specifier: /^@effect\/platform-node/, why: "only scripts, tests and entry points that open a port need it" },
  { specifier: /^node:(http|net|timers)$/, files: /^testing\/Fault\w+\.ts$/ },
  { specifier: /^node:/, why: "src runs wherever fetch does" },
  { specifier: /^/, why: "not a dependency" }
]

const rankOf = (path) => layers.findIndex((layer) => layer.files.test(path))

const specifierOf = (node) => {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier
  if (ts.isImportTypeNode(node)) return node.argument.literal
  if (ts.isExternalModuleReference(node)) return node.expression
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return node.arguments[0]
}

/** The imports of a file, type-only ones and re-exports included. */
const importsOf = ({ path, ast }) => {
  const imports = []
  walk(ast, (node) => {
    const specifier = specifierOf(node)
    if (specifier === undefined) return
    const text = ts.isStringLiteralLike(specifier) ? specifier.text : specifier.getText()
    const target = /^\.\.?\//.test(text) ? posix.join(posix.dirname(path), text) : undefined
    const isStatic = ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
    imports.push({ from: path, line: lineOf(node), specifier: text, target, isStatic })
  })
  return imports
}

/** Why an import may not be, or `undefined` if it may. */
const objection = ({ from, specifier, target, isStatic }) => {
  if (target === undefined) {
    const applies = (row) => (row.files?.test(from) ?? true) && !(row.isLazy && isStatic)
    return packages.find((row) => row.specifier.test(specifier) && applies(row)).why
  }
  if (target.startsWith("../")) return "leaves src"
  if (!target.endsWith(".ts")) return "a relative import names a .ts file"
  const [fromRank, toRank] = [rankOf(from), rankOf(target)]
  if (toRank === -1) return "no layer covers what it imports"
  if (fromRank === -1) return undefined
  const [fromLayer, toLayer] = [layers[fromRank].name, layers[toRank].name]
  if (toRank > fromRank) return `${fromLayer} may not import ${toLayer}, which stands above it`
  return forbidden.find((arrow) => arrow.from === fromLayer && arrow.to === toLayer)?.why
}

/** The imports that close a circle, each with the path that it closes. */
const circlesOf = (imports) => {
  const circles = []
  const done = new Set()
  const follow = (path, trail) => {
    if (done.has(path)) return
    for (const edge of imports.filter((edge) => edge.from === path && edge.target !== undefined)) {
      const start = [...trail, path].indexOf(edge.target)
      if (start === -1) follow(edge.target, [...trail, path])
      else circles.push({ ...edge, why: `circle: ${[...trail, path].slice(start).concat(edge.target).join(" -> ")}` })
    }
    done.add(path)
  }
  for (const { from } of imports) follow(from, [])
  return circles
}

const root = process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url))
const sources = parseSources(root)
const imports = sources.flatMap(importsOf)
const refused = imports.map((edge) => ({ ...edge, why: objection(edge) })).filter((edge) => edge.why !== undefined)

report(
  [
    ...sources.filter(({ path }) => rankOf(path) === -1).map(({ path }) => `src/${path}: no layer covers this file`),
    ...[...refused, ...circlesOf(imports)].map(
      ({ from, line, specifier, why }) => `src/${from}:${line}: imports "${specifier}": ${why}`
    )
  ],
  `check-imports: ${imports.length} imports of ${sources.length} files point down, without a circle`
)
