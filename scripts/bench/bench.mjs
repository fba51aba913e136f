/** What a successful call costs, beside cockatiel: `npm run bench`; with `--check` it fails above the limits. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { installRivals } from "./rivals.mjs"

/** How far above its limit a ratio may be before it is more than noise. */
const slack = 1.25

/** Room for every byte of a sample, so that no gc runs within it. */
const noGc = ["--min-semi-space-size=256", "--max-semi-space-size=256"]

/** Without warnings: 100 calls at once are more listeners on cockatiel's one signal than Node likes to see. */
const nodeFlags = ["--expose-gc", "--no-flush-bytecode", "--no-warnings"]

const sample = (what, flags = []) => {
  const script = fileURLToPath(new URL("sample.mjs", import.meta.url))
  return JSON.parse(execFileSync(process.execPath, [...nodeFlags, ...flags, script, what], { encoding: "utf8" }))
}

const versionOf = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")).version

installRivals()
const { candidates, concurrentYardstick, yardstick } = await import("./candidates.mjs")

const versions = [
  `node ${process.versions.node}`,
  `llmfuse ${versionOf("../../package.json")}`,
  `effect ${versionOf("../../node_modules/effect/package.json")}`,
  `cockatiel ${versionOf("rivals/node_modules/cockatiel/package.json")}`
]
console.log(`${versions.join(", ")}; medians, success path, a provider that answers at once\n`)

const micros = sample("time")
const bytes = sample("bytes", noGc)

const microsOf = (name) => micros[candidates.findIndex((candidate) => candidate.name === name)]
const rows = candidates.map(({ name, limit, isConcurrent }, index) => ({
  name,
  limit,
  micros: micros[index],
  bytes: bytes[index],
  ratio: micros[index] / microsOf(isConcurrent ? concurrentYardstick : yardstick)
}))

const line = (name, ...cells) => console.log(name.padEnd(44) + cells.map((cell) => cell.padStart(14)).join(""))
line("", "us a call", "of cockatiel", "limit", "bytes a call")
for (const { name, limit, micros, bytes, ratio } of rows) {
  line(name, micros.toFixed(2), ratio.toFixed(3), limit?.toFixed(2) ?? "", Math.round(bytes).toLocaleString("en"))
}

if (process.argv.includes("--check")) {
  const slow = rows.filter(({ limit, ratio }) => limit !== undefined && ratio > limit * slack)
  for (const { name, limit, ratio } of slow) {
    console.error(`\n${name}: ${ratio.toFixed(3)} of cockatiel; allowed: ${limit} (and ${slack} times that for noise)`)
  }
  if (slow.length === 0) console.log("\nbench: within the limits")
  process.exit(slow.length === 0 ? 0 : 1)
}
process.exit()
