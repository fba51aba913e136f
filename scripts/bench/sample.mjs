/** Measures all candidates in turn, in this one process, and prints medians as JSON: `sample.mjs time|bytes`. */
import { performance } from "node:perf_hooks"
import { setImmediate } from "node:timers/promises"
import { candidates } from "./candidates.mjs"

const isBytes = process.argv[2] === "bytes"

// Bytes vary by little, microseconds by a third.
const rounds = isBytes ? 15 : 100
const warmUpMillis = 400
const sampleMillis = 8
const callsPerByteSample = 2000

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

/** Leaves no garbage and no timers of the candidate before. A full gc would throw compiled code away. */
const settle = async () => {
  await setImmediate()
  globalThis.gc({ type: "minor" })
}

/** Runs a candidate until its code is compiled; gives the number of calls that fill a sample. */
const warmUp = async ({ run }) => {
  const start = performance.now()
  let calls = 0
  while (performance.now() - start < warmUpMillis) {
    await run(100)
    calls += 100
    await setImmediate()
  }
  return Math.max(100, Math.round((calls * sampleMillis) / warmUpMillis / 100) * 100)
}

const microsPerCall = async ({ run }, calls) => {
  const start = performance.now()
  await run(calls)
  return ((performance.now() - start) * 1000) / calls
}

/** Sound only where no gc runs within a sample: the young generation must hold all of it (see `bench.mjs`). */
const bytesPerCall = async ({ run }) => {
  const before = process.memoryUsage().heapUsed
  await run(callsPerByteSample)
  return (process.memoryUsage().heapUsed - before) / callsPerByteSample
}

const measure = isBytes ? bytesPerCall : microsPerCall

const calls = []
for (const candidate of candidates) calls.push(await warmUp(candidate))

const samples = candidates.map(() => [])
for (let round = 0; round < rounds; round++) {
  for (const [index, candidate] of candidates.entries()) {
    await settle()
    samples[index].push(await measure(candidate, calls[index]))
  }
}

console.log(JSON.stringify(samples.map(median)))
process.exit()
