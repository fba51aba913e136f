/**
 * What a chunk of a streamed answer costs, beside a loop over bare `fetch`: `npm run bench:stream`; with `--check` it
 * fails above the limits. They are about the processor's time: on a shared machine the clock tells of the neighbours.
 */
import assert from "node:assert/strict"
import { interleaved, line, requireFlags, startServer, versions } from "./measure.mjs"
import { candidates, yardstick } from "./streamCandidates.mjs"
import { chunkCount, inStep } from "./streamShape.mjs"

requireFlags()

/** How far above its limit a ratio may be before it is more than noise. */
const slack = 1.1

const server = await startServer("server.mjs")

const oneStream = (read) => async () => {
  let shown = 0
  const text = await read(() => shown++)
  assert.deepEqual([shown, text.length], [chunkCount, chunkCount * 5])
}

const streamsInStep = (read) => async () => {
  let shown = 0
  const show = () => {
    if (++shown % inStep === 0) server.acknowledge()
  }
  const texts = await Promise.all(Array.from({ length: inStep }, () => read(show)))
  assert.deepEqual([shown, texts.join("").length], [chunkCount, chunkCount * 5])
}

const ways = [
  { how: "blocks", what: "writes of 16 KB, about 80 events each", over: oneStream, rounds: 60 },
  { how: "events", what: "a write for each event, many to a packet", over: oneStream, rounds: 60 },
  { how: "packets", what: `one event to a read, ${inStep} streams in step`, over: streamsInStep, rounds: 25 }
]

console.log(`${versions}; medians, an answer of ${chunkCount.toLocaleString("en")} chunks`)
const tooSlow = []

for (const { how, what, over, rounds } of ways) {
  const costs = await interleaved(
    candidates.map(({ make }) => over(make(`${server.url}/${how}`))),
    { rounds, warmUps: Math.ceil(rounds / 3), yardstick: candidates.findIndex(({ name }) => name === yardstick) }
  )

  console.log()
  line(what, "us a chunk", "of fetch", "CPU us", "of fetch", "limit")
  for (const [index, { name, limit }] of candidates.entries()) {
    const { wall, cpu, wallRatio, cpuRatio } = costs[index]
    const perChunk = (micros) => (micros / chunkCount).toFixed(2)
    line(name, perChunk(wall), wallRatio.toFixed(2), perChunk(cpu), cpuRatio.toFixed(2), limit?.toFixed(2) ?? "")
    if (limit !== undefined && cpuRatio > limit * slack) tooSlow.push({ name, what, ratio: cpuRatio.toFixed(2), limit })
  }
}

server.stop()
if (process.argv.includes("--check")) {
  for (const { name, what, ratio, limit } of tooSlow) {
    console.error(`\n${name}, ${what}: ${ratio} of fetch; allowed: ${limit} (and ${slack} times that for noise)`)
  }
  if (tooSlow.length === 0) console.log("\nbench:stream: within the limits")
  process.exit(tooSlow.length === 0 ? 0 : 1)
}
process.exit()
