/** What is measured: each candidate reads one stream to its end, shows every delta, and gives back the whole text. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { Chunk, Effect, Layer, ManagedRuntime, Stream } from "effect"
import { FuseClient, LlmFuse, OpenAiCompatible } from "../../dist/index.js"
import { reader, readStream, request } from "./bareStream.mjs"

const prompt = "Explain retrieval-augmented generation in one sentence."

const post = (baseUrl) => fetch(`${baseUrl}/chat/completions`, { method: "POST", ...request(true) })

async function* deltasOf(baseUrl) {
  let ready = []
  const { answer, feed } = reader((delta) => ready.push(delta))
  const { body } = await post(baseUrl)
  for await (const bytes of body) {
    feed(bytes)
    for (const delta of ready) yield delta
    ready = []
  }
  return answer
}

const byCallback = (baseUrl) => async (show) => {
  const { body } = await post(baseUrl)
  const { text } = await readStream(body, show)
  return text
}

const byIterator = (baseUrl) => async (show) => {
  let text = ""
  for await (const delta of deltasOf(baseUrl)) {
    text += delta
    show(delta)
  }
  return text
}

const provider = (baseUrl) =>
  OpenAiCompatible.make({ name: "bench", model: "gpt-4.1-mini-2025-04-14", baseUrl, apiKey: "none" })

const ofClient = (baseUrl) => {
  const client = FuseClient.make({ providers: [provider(baseUrl)] })
  return async (show) => {
    let text = ""
    for await (const event of client.stream(prompt)) {
      if (event._tag === "TextDelta") show(event.text)
      else if (event._tag === "Finished") text = event.response.text
    }
    return text
  }
}

const textOfClient = (baseUrl) => {
  const client = FuseClient.make({ providers: [provider(baseUrl)] })
  return async (show) => {
    let text = ""
    for await (const delta of client.text(prompt)) {
      text += delta
      show(delta)
    }
    return text
  }
}

const ofService = (baseUrl) => {
  const layer = LlmFuse.layer({ providers: [provider(baseUrl)] })
  const runtime = ManagedRuntime.make(Layer.provide(layer, FetchHttpClient.layer))
  return (show) => {
    let text = ""
    const reading = Effect.flatMap(LlmFuse, (fuse) =>
      Stream.runForEachChunk(fuse.stream(prompt), (events) =>
        Effect.sync(() => {
          for (const event of Chunk.toReadonlyArray(events)) {
            if (event._tag === "TextDelta") show(event.text)
            else if (event._tag === "Finished") text = event.response.text
          }
        })
      )
    )
    return runtime.runPromise(reading).then(() => text)
  }
}

/** Ratios are to the yardstick. */
export const yardstick = "fetch + eventsource-parser, for await"

/** `limit` is the most that a candidate may cost of the yardstick. */
export const candidates = [
  { name: "fetch + eventsource-parser, callback", make: byCallback },
  { name: yardstick, make: byIterator },
  { name: "FuseClient.stream, for await", make: ofClient, limit: 1.3 },
  { name: "FuseClient.text, for await", make: textOfClient, limit: 1.3 },
  { name: "LlmFuse.stream, Stream.runForEachChunk", make: ofService }
]
