/**
 * What a call costs over each of the HTTP clients that `FuseClient` can be given, beside bare `fetch` and bare
 * `undici.request`: `npm run bench:http`. Words after `--` pick what is measured: `-- whole 50`.
 */
import assert from "node:assert/strict"
import { candidates, yardstick } from "./httpCandidates.mjs"
import { interleaved, line, requireFlags, startServer, versions } from "./measure.mjs"
import { shortChunkCount } from "./streamShape.mjs"

requireFlags()

const server = await startServer("server.mjs")

/** So many calls, so many of them at once. */
const load = (call, calls, concurrency) => async () => {
  let left = calls
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (left-- > 0) await call()
    })
  )
}

/** How many connections a first run makes. */
const connectionsOf = async (run) => {
  const before = await server.ask("connections")
  await run()
  const after = await server.ask("connections")
  return after.connections - before.connections
}

const completing =
  ({ complete }) =>
  async () =>
    assert.equal((await complete()).length, 50)

const streaming =
  ({ stream }) =>
  async () => {
    let shown = 0
    await stream(() => shown++)
    assert.equal(shown, shortChunkCount)
  }

const kinds = [
  { what: "an answer in one piece", path: "whole", callOf: completing, calls: { 1: 100, 50: 500, 500: 1000 } },
  {
    what: `a stream of ${shortChunkCount} chunks`,
    path: "short",
    callOf: streaming,
    calls: { 1: 20, 50: 100, 500: 500 }
  }
]

/** Whether the words on the command line leave something in: they say none of its kind, or it. */
const isPicked = (name, names) => {
  const words = process.argv.slice(2).filter((word) => names.includes(word))
  return words.length === 0 || words.includes(name)
}
const paths = kinds.map(({ path }) => path)
const concurrencies = ["1", "50", "500"]

console.log(`${versions}; medians`)

for (const { what, path, callOf, calls } of kinds.filter(({ path }) => isPicked(path, paths))) {
  for (const concurrency of concurrencies.filter((each) => isPicked(each, concurrencies))) {
    const count = calls[concurrency]
    const runs = candidates.map(({ make }) => load(callOf(make(`${server.url}/${path}`)), count, Number(concurrency)))
    const connections = []
    for (const run of runs) connections.push(await connectionsOf(run))
    const costs = await interleaved(runs, {
      rounds: 9,
      warmUps: 2,
      yardstick: candidates.findIndex(({ name }) => name === yardstick)
    })

    console.log()
    line(`${what}, ${concurrency} at once`, "calls a sec.", "CPU us a call", "of fetch", "connections")
    for (const [index, { name }] of candidates.entries()) {
      const { wall, cpu, cpuRatio } = costs[index]
      const perSecond = ((count * 1e6) / wall).toFixed(0)
      line(name, perSecond, (cpu / count).toFixed(0), cpuRatio.toFixed(2), String(connections[index]))
    }
  }
}

server.stop()
process.exit()
