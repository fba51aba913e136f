/** How the benchmarks over sockets measure: candidates in turn, in one process, the server in another. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { performance } from "node:perf_hooks"
import { setImmediate } from "node:timers/promises"
import { fileURLToPath } from "node:url"

/** Ends a program that was started without the flags that measuring needs. */
export const requireFlags = () => {
  if (globalThis.gc !== undefined) return
  console.error("start with: node --expose-gc --no-flush-bytecode")
  process.exit(2)
}

const versionOf = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")).version

/** What is measured, for the first line of a report. */
export const versions = [
  `node ${process.versions.node}`,
  `llmfuse ${versionOf("../../package.json")}`,
  `effect ${versionOf("../../node_modules/effect/package.json")}`
].join(", ")

/** Starts a server of this folder in a process of its own; it says its port first. */
export const startServer = async (script, execArgv = []) => {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), {
    execArgv,
    stdio: ["ignore", "inherit", "inherit", "ipc", "pipe"]
  })
  const [{ port }] = await once(child, "message")
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    /** Has the streams that go in step take the next one. */
    acknowledge: () => child.stdio[4].write("."),
    ask: async (question) => {
      child.send(question)
      return (await once(child, "message"))[0]
    },
    stop: () => child.kill()
  }
}

/** The middle of some numbers. */
export const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

/** What a run takes of the clock and of the processor, all threads of this process together, in microseconds. */
export const timed = async (run) => {
  await setImmediate()
  globalThis.gc({ type: "minor" })
  const cpu = process.cpuUsage()
  const start = performance.now()
  await run()
  const wall = (performance.now() - start) * 1000
  const { user, system } = process.cpuUsage(cpu)
  return { wall, cpu: user + system }
}

/**
 * Runs all in turn, `rounds` times, after `warmUps` rounds that do not count. Gives the medians of each, and those of
 * its ratios to the yardstick: a ratio is of one round, as a machine is not as fast in the next.
 */
export const interleaved = async (runs, { rounds, warmUps, yardstick }) => {
  const samples = runs.map(() => [])
  for (let round = -warmUps; round < rounds; round++) {
    for (const [index, run] of runs.entries()) {
      const sample = await timed(run)
      if (round >= 0) samples[index].push(sample)
    }
  }
  const medianOf = (each, of) => median(each.map((sample, round) => of(sample, samples[yardstick][round])))
  return samples.map((each) => ({
    wall: medianOf(each, ({ wall }) => wall),
    cpu: medianOf(each, ({ cpu }) => cpu),
    wallRatio: medianOf(each, ({ wall }, least) => wall / least.wall),
    cpuRatio: medianOf(each, ({ cpu }, least) => cpu / least.cpu)
  }))
}

/** Prints a line of a table. */
export const line = (name, ...cells) => console.log(name.padEnd(46) + cells.map((cell) => cell.padStart(13)).join(""))
