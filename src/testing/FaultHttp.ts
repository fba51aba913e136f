/** Reads requests as they come in. */
import type { IncomingMessage } from "node:http"
import { Effect, Either } from "effect"
import { anthropicWire } from "./FaultAnthropic.ts"
import { openAiWire } from "./FaultOpenAi.ts"
import type { FaultRequest } from "./FaultScript.ts"
import type { FaultWire } from "./FaultWire.ts"

/** A request that has come whole. */
export interface Incoming {
  readonly wire: FaultWire
  /** Whether usage is asked for in a stream. */
  readonly includeUsage: boolean
  readonly request: Omit<FaultRequest, "at" | "number" | "ended">
}

/** Waits for the whole request. Returns `undefined` where its path speaks no known wire. */
export const receive = (message: IncomingMessage): Effect.Effect<Incoming | undefined> =>
  Effect.map(bodyOf(message), (text) => {
    const [path = ""] = (message.url ?? "").split("?")
    const wire = [openAiWire, anthropicWire].find((wire) => message.method === "POST" && path.endsWith(wire.path))
    if (wire === undefined) return undefined
    const body = Either.getOrElse(
      Either.try((): unknown => JSON.parse(text)),
      () => text
    )
    const { model, stream, stream_options } = Object(body)
    return {
      wire,
      includeUsage: Object(stream_options).include_usage === true,
      request: {
        model: typeof model === "string" ? model : "",
        wire: wire.name,
        path,
        stream: stream === true,
        headers: headersOf(message),
        body
      }
    }
  })

/** A client that goes away before its request is whole ends the waiting fiber. */
const bodyOf = (message: IncomingMessage): Effect.Effect<string> =>
  Effect.async((resume) => {
    const chunks: Array<Buffer> = []
    message.on("data", (chunk: Buffer) => chunks.push(chunk))
    message.once("end", () => resume(Effect.succeed(Buffer.concat(chunks).toString())))
  })

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
