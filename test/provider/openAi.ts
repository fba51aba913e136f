/** What a provider of OpenAI's wire sends for a request, and what it makes of the answer. */
import type * as HttpClient from "@effect/platform/HttpClient"
import { type ConfigError, Effect } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import type { Made } from "../../src/provider/VendorTag.ts"
import { answering, completion } from "./fakeClient.ts"
import { drained, event } from "./streaming.ts"

/** A way to make a provider. */
export interface Maker {
  readonly make: (options: {
    readonly model: string
    readonly apiKey: string
  }) => Effect.Effect<Made, ConfigError.ConfigError, HttpClient.HttpClient>
}

/** A server of one's own, with a dialect. */
export const host = (own: Partial<OpenAiCompatible.Options> = {}): Maker => ({
  make: (options) => OpenAiCompatible.make({ name: "host", baseUrl: "https://llm.example.test/v1", ...options, ...own })
})

/** Asks for a whole answer. */
export const ask = Effect.fn(function* (maker: Maker, request: ChatRequest, body: string = completion()) {
  const { layer, sent } = answering({ body })
  const provider = yield* maker.make({ model: "m", apiKey: "fx-key" }).pipe(Effect.provide(layer))
  const answer = (yield* provider.complete(request)) as ProviderAnswer
  return { answer, sent: sent[0]?.body, changes: answer.changes }
})

/** Asks for a stream. */
export const stream = Effect.fn(function* (maker: Maker, request: ChatRequest, chunks: ReadonlyArray<unknown>) {
  const body = [...chunks, "[DONE]"].map((chunk) => event(chunk)).join("")
  const { layer, sent } = answering({ body, headers: { "content-type": "text/event-stream" } })
  const provider = yield* maker.make({ model: "m", apiKey: "fx-key" }).pipe(Effect.provide(layer))
  return { ...(yield* drained(provider, request)), sent: sent[0]?.body }
})

/** A chunk of a stream. */
export const chunk = (delta: object, finish_reason: string | null = null) => ({
  model: "m-1",
  choices: [{ index: 0, delta, finish_reason }]
})

/** A message of a whole answer. */
export const message = (fields: object, finish_reason = "stop") =>
  JSON.stringify({ model: "m-1", choices: [{ index: 0, message: { role: "assistant", ...fields }, finish_reason }] })

/** A request of one user message. */
export const hello = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: "user", content: "hello" }],
  ...more
})
