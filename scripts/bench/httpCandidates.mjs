/** What is measured: each candidate answers a request, in one piece or as a stream, and counts what it was shown. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { FuseClient, OpenAiCompatible } from "../../dist/index.js"
import { jsonOf, readStream, request } from "./bareStream.mjs"

// Where undici is loaded before the platform's `fetch` is first used, that `fetch` goes through the package's agent.
await fetch("data:,")
const NodeHttpClient = await import("@effect/platform-node/NodeHttpClient")
const Undici = await import("@effect/platform-node/Undici")

const ofFetch = (baseUrl) => {
  const send = (isStream) => fetch(`${baseUrl}/chat/completions`, { method: "POST", ...request(isStream) })
  return {
    complete: async () => jsonOf(await (await send(false)).text()),
    stream: async (show) => readStream((await send(true)).body, show)
  }
}

const ofUndici = (baseUrl) => {
  const dispatcher = new Undici.Agent()
  const send = (isStream) =>
    Undici.request(`${baseUrl}/chat/completions`, { method: "POST", dispatcher, ...request(isStream) })
  return {
    complete: async () => jsonOf(await (await send(false)).body.text()),
    stream: async (show) => readStream((await send(true)).body, show)
  }
}

const ofClient = (httpClient) => (baseUrl) => {
  const provider = OpenAiCompatible.make({ name: "bench", model: "gpt-4.1-mini-2025-04-14", baseUrl, apiKey: "none" })
  const client = FuseClient.make({ providers: [provider], httpClient })
  return {
    complete: async () => (await client.complete("hello")).text,
    stream: async (show) => {
      for await (const event of client.stream("hello")) if (event._tag === "TextDelta") show(event.text)
    }
  }
}

/** Ratios are to the yardstick. */
export const yardstick = "fetch"

/** The candidates by their names. */
export const candidates = [
  { name: yardstick, make: ofFetch },
  { name: "undici.request", make: ofUndici },
  { name: "FuseClient, its default", make: ofClient(undefined) },
  { name: "FuseClient, FetchHttpClient.layer", make: ofClient(FetchHttpClient.layer) },
  { name: "FuseClient, NodeHttpClient.layerUndici", make: ofClient(NodeHttpClient.layerUndici) },
  { name: "FuseClient, NodeHttpClient.layer", make: ofClient(NodeHttpClient.layer) }
]
