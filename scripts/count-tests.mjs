/** Prints `N passed, N failed, N skipped` from vitest's JSON report, and ends with 1 if no test ran: `count-tests.mjs <report>`. */
import { existsSync, readFileSync } from "node:fs"

const [path] = process.argv.slice(2)
const files = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).testResults : []

// A file that could not be loaded has no tests, but it failed.
const statuses = files.flatMap(({ status, assertionResults }) =>
  assertionResults.length === 0 && status === "failed" ? ["failed"] : assertionResults.map((test) => test.status)
)
const passed = statuses.filter((status) => status === "passed").length
const failed = statuses.filter((status) => status === "failed").length

console.log(`${passed} passed, ${failed} failed, ${statuses.length - passed - failed} skipped`)
process.exitCode = passed + failed === 0 ? 1 : 0
