/** The wall of faults: `npm run wall`. */
import { parseArgs } from "node:util"
import { catalogue } from "./catalogue.ts"
import { llmFuse } from "./llmfuse.ts"
import { markdownTable, plainTable, type SystemResults, scoreLine, scoreTable } from "./report.ts"
import { loadRivals, runApart, runAsChild } from "./rivals.ts"
import { runWall } from "./run.ts"

const usage = `Usage: npm run wall -- [options]

Puts LlmFuse before faults that providers have, over real sockets and in real time (about 80 seconds), and judges it.

  --only S08,X02   these faults alone
  --markdown       the table as Markdown
  --rivals         the other systems of scripts/wall/rivals too, one after another, and a table of scores; what they
                   need is installed there: npm ci --prefix scripts/wall/rivals
  --help           this text

Exit code: 0 if every fault was passed by LlmFuse, else 1; 2 for wrong usage.`

const options = {
  only: { type: "string" },
  markdown: { type: "boolean" },
  rivals: { type: "boolean" },
  help: { type: "boolean" },
  /** Internal: run this system alone and report to the parent process. */
  system: { type: "string" }
} as const

const readOptions = () => {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    return process.exit(2)
  }
}

const given = readOptions()

const chosenFaults = () => {
  const faults = catalogue()
  if (given.only === undefined) return faults
  const ids = given.only.split(",").map((id) => id.trim().toUpperCase())
  const unknown = ids.filter((id) => !faults.some((fault) => fault.id === id))
  if (unknown.length > 0) {
    console.error(`There is no fault ${unknown.join(", ")}. There are ${faults.map(({ id }) => id).join(" ")}.`)
    return process.exit(2)
  }
  return faults.filter(({ id }) => ids.includes(id))
}

const print = ({ system, results }: SystemResults): void => {
  console.log(`\n${system.name} ${system.version}: ${scoreLine(results)}\n`)
  console.log((given.markdown ? markdownTable : plainTable)(results))
}

const main = async (): Promise<number> => {
  if (given.help) {
    console.log(usage)
    return 0
  }
  const faults = chosenFaults()
  if (given.system !== undefined) return runAsChild(given.system, faults)

  const own: SystemResults = { system: llmFuse, results: await runWall(faults, llmFuse) }
  print(own)
  if (given.rivals) {
    const all = [own]
    for (const rival of await loadRivals()) {
      const results = await runApart(
        rival,
        faults.map(({ id }) => id)
      )
      if (results === undefined) {
        console.error(`\n${rival.name}: the process ended early`)
        continue
      }
      all.push({ system: rival, results })
      print({ system: rival, results })
    }
    console.log(`\n${scoreTable(all)}`)
  }
  return own.results.every(({ judgement }) => judgement.verdict === "pass") ? 0 : 1
}

process.exit(await main())
