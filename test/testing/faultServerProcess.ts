/** A process that starts a server, leaves requests of every kind unfinished, stops the server, and has nothing else to do. */
import { FaultServer } from "../../src/testing.ts"
import { ask, post } from "./faultClient.ts"

const server = await FaultServer.start({
  silent: { cut: { how: "stall" } },
  stalled: { cut: { how: "stall", after: { words: 3 }, closeAfter: "1 hour" } },
  slow: { gap: "1 hour" },
  late: { headersDelay: "1 hour" },
  alive: { keepAlive: { every: "20 millis" } },
  endless: { words: 1e9 },
  healthy: {}
})

const silent = ["silent", "late"].map((model) => ask(server, { model }).catch(() => undefined))
for (const model of ["stalled", "slow", "alive", "endless"]) void post(server, { model })
await ask(server, { model: "healthy" })
while (server.requests.length < 7) await new Promise((resolve) => setTimeout(resolve, 5))
await server.stop()
await Promise.all(silent)
console.log("stopped")
