/** Puts a system before a fault and watches. */
import { setTimeout as sleep } from "node:timers/promises"
import { inspect } from "node:util"
import { behaviourFor } from "../../src/testing/FaultScript.ts"
import { type FaultRequest, FaultServer } from "../../src/testing.ts"
import type { Call, Observation, Outcome } from "./conduct.ts"
import type { Fault } from "./fault.ts"
import type { Client, System } from "./system.ts"
import { timing } from "./timing.ts"

const prompt = "Explain in sixty words what a resilience layer does."

/** Runs the calls of a fault on a server and a client of its own, and tells what was seen. */
export const observe = async (fault: Fault, system: System): Promise<Observation> => {
  let isHealthy = false
  await using server = await FaultServer.start((request) =>
    isHealthy ? {} : behaviourFor({ primary: fault.primary, fallback: fault.fallback ?? {} }, request)
  )
  const time = timing(fault.timeScale)
  const client = system.ask({
    primary: { baseUrl: server.url, model: "primary" },
    fallback: { baseUrl: server.url, model: "fallback" },
    timeouts: { firstTokenMillis: time.seconds(8), totalMillis: time.seconds(40) },
    timeScale: fault.timeScale
  })
  const { count, everyMillis } = fault.calls ?? { count: 1, everyMillis: 0 }
  const calls = await Promise.all(
    Array.from({ length: count }, (_, index) => sleep(index * everyMillis).then(() => call(client, fault.budgetMillis)))
  )
  const requests = [...server.requests]
  isHealthy = true
  const followUp = fault.followUp ? await call(client, time.limit(15)) : undefined
  await Promise.race([client.close(), sleep(2000)])
  return { calls, followUp, primary: timesOf("primary", requests), fallback: timesOf("fallback", requests) }
}

const timesOf = (model: string, requests: ReadonlyArray<FaultRequest>): ReadonlyArray<number> =>
  requests.filter((request) => request.model === model).map(({ at }) => at)

const call = async (client: Client, budgetMillis: number): Promise<Call> => {
  const start = performance.now()
  const controller = new AbortController()
  const asking = client.stream(prompt, controller.signal).then(
    (answer): Outcome => ({ _tag: "Answered", answer }),
    (error: unknown): Outcome => ({
      _tag: "Failed",
      isError: error instanceof Error,
      message: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      text: inspect(error, { depth: 8 })
    })
  )
  const settled = new AbortController()
  const hanging = sleep(budgetMillis, { _tag: "Hung" } as const, { signal: settled.signal }).catch(() => undefined)
  const outcome = (await Promise.race([asking, hanging])) ?? (await asking)
  settled.abort()
  controller.abort()
  return { millis: performance.now() - start, outcome }
}
