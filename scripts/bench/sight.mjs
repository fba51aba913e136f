/** What it costs to be seen: `npm run bench:sight`. Calls without a listener, with each kind of one, and with a tracer. */
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { Context, Effect, Layer, Tracer } from "effect"
import { LlmFuse, OpenAiCompatible, Provider } from "../../dist/index.js"
import { interleaved, requireFlags, versions } from "./measure.mjs"

requireFlags()

const body = JSON.stringify({
  id: "1",
  model: "m",
  choices: [{ message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 5 }
})

/** Answers without a socket: what is left is the adapter's and the HTTP client's own work. */
const http = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) =>
    Effect.succeed(
      HttpClientResponse.fromWeb(request, new Response(body, { headers: { "content-type": "application/json" } }))
    )
  )
)

const providers = {
  "a provider that answers at once": {
    calls: 4000,
    provider: Provider.make({ name: "p", complete: () => Effect.succeed("ok") })
  },
  "an adapter over an HTTP client without a socket": {
    calls: 100,
    provider: OpenAiCompatible.make({ name: "p", baseUrl: "http://localhost", model: "m" })
  }
}

/** Spans that are made and thrown away: what an exporter does is not ours. */
const tracer = Tracer.make({
  span: (name, parent, context, links, startTime, kind) => ({
    _tag: "Span",
    name,
    parent,
    context,
    links,
    kind,
    spanId: "1",
    traceId: "1",
    sampled: true,
    status: { _tag: "Started", startTime },
    attributes: new Map(),
    end: () => undefined,
    attribute: () => undefined,
    addLinks: () => undefined,
    event: () => undefined
  }),
  context: (run) => run()
})

const watchers = [
  { name: "nobody", options: {} },
  { name: "onEvent", options: { onEvent: () => undefined } },
  { name: "metrics", options: { metrics: true } },
  { name: "logs", options: { logs: true } },
  { name: "a tracer", options: {}, surroundings: Layer.setTracer(tracer) }
]

const runOf = async ({ provider, calls }, { options, surroundings = Layer.empty }) => {
  const layer = LlmFuse.layer({ providers: [provider], ...options })
  const runtime = await Effect.runPromise(
    Effect.scoped(Layer.toRuntime(Layer.provideMerge(Layer.provide(layer, http), surroundings)))
  )
  const fuse = Context.get(runtime.context, LlmFuse)
  const loop = Effect.repeatN(fuse.complete("hi"), calls - 1)
  return () => Effect.runPromise(Effect.provide(loop, runtime))
}

console.log(`${versions}; medians of the processor's time, success path\n`)
for (const [name, { provider, calls }] of Object.entries(providers)) {
  const runs = []
  for (const watcher of watchers) runs.push(await runOf({ provider, calls }, watcher))
  const results = await interleaved(runs, { rounds: 60, warmUps: 15, yardstick: 0 })
  console.log(`${name.padEnd(50)}${"us a call".padStart(12)}${"of nobody".padStart(12)}`)
  for (const [index, { cpu, cpuRatio }] of results.entries()) {
    const { name: watcher } = watchers[index]
    console.log(`  ${watcher.padEnd(48)}${(cpu / calls).toFixed(2).padStart(12)}${cpuRatio.toFixed(3).padStart(12)}`)
  }
}
