/** Other systems before the wall, each in a process of its own, so that none disturbs the others. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import type { Fault } from "./fault.ts"
import type { Result } from "./report.ts"
import { runWall } from "./run.ts"
import type { System } from "./system.ts"

/** The rivals, from a folder that installs its own packages. */
export const loadRivals = async (): Promise<ReadonlyArray<System>> => {
  const file = new URL("rivals/systems.mjs", import.meta.url).href
  const { systems }: { readonly systems: ReadonlyArray<System> } = await import(file)
  return systems
}

/** Runs the wall on a rival in a process of its own; `undefined` where that process ended early. */
export const runApart = async (
  { name }: System,
  ids: ReadonlyArray<string>
): Promise<ReadonlyArray<Result> | undefined> => {
  const script = fileURLToPath(new URL("wall.ts", import.meta.url))
  const child = fork(script, ["--system", name, "--only", ids.join(",")], {
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  let results: ReadonlyArray<Result> | undefined
  child.on("message", (message) => {
    results = message as ReadonlyArray<Result>
  })
  await once(child, "exit")
  return results
}

/** What that process does: it runs the wall, sends the results to its parent, and returns the exit code. */
export const runAsChild = async (name: string, faults: ReadonlyArray<Fault>): Promise<number> => {
  // What a system leaves unhandled is its own affair, as long as the wall can go on.
  process.on("unhandledRejection", () => undefined)
  const system = (await loadRivals()).find((rival) => rival.name === name)
  if (system === undefined) throw new Error(`there is no system ${name}`)
  const results = await runWall(faults, system)
  await new Promise((resolve) => process.send?.(results, resolve))
  return 0
}
