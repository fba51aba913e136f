/** Plays a behaviour on an open response. The fiber that plays is interrupted when the connection closes. */
import type { ServerResponse } from "node:http"
import { clearImmediate, setImmediate } from "node:timers"
import { Duration, Effect } from "effect"
import type { FaultBehaviour, FaultCut } from "./FaultBehaviour.ts"
import { bodyKind, type Exchange } from "./FaultFrames.ts"
import type { LogEntry } from "./FaultLog.ts"
import { stepsOf } from "./FaultSteps.ts"

/** As many bytes as are written at once where nothing parts them, and all that is ever held. */
const batchBytes = 64 * 1024

/** Plays a behaviour to its end. */
export const play = Effect.fnUntraced(function* (
  behaviour: FaultBehaviour,
  exchange: Exchange,
  response: ServerResponse,
  { end }: LogEntry
) {
  const { status = 200, headersDelay, cut, chunkBytes } = behaviour
  if (headersDelay !== undefined) yield* pause(Duration.toMillis(headersDelay))
  if (cut !== undefined && cut.after === undefined) return yield* breakOff(response, cut, end)
  response.writeHead(status, headersOf(behaviour, exchange))
  response.flushHeaders()

  let batch: Array<Uint8Array> = []
  let size = 0
  const flush = Effect.suspend(() => {
    if (size === 0) return Effect.void
    const bytes = Buffer.concat(batch, size)
    batch = []
    size = 0
    return chunkBytes === undefined ? write(response, bytes) : writePieces(response, bytes, chunkBytes)
  })
  for (const step of stepsOf(behaviour, exchange)) {
    if (step._tag === "Write") {
      batch.push(step.bytes)
      size += step.bytes.length
      if (size >= batchBytes) yield* flush
      continue
    }
    yield* flush
    if (step._tag === "Wait") yield* pause(step.millis)
    else if (cut !== undefined) return yield* breakOff(response, cut, end)
  }
  yield* flush
  return yield* finish(response, () => end("answered"))
})

const contentTypes = {
  text: "text/plain; charset=utf-8",
  json: "application/json",
  stream: "text/event-stream; charset=utf-8"
}

const headersOf = (behaviour: FaultBehaviour, exchange: Exchange) => {
  const kind = bodyKind(behaviour, exchange)
  const own = Object.entries(behaviour.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const)
  return {
    "content-type": contentTypes[kind],
    ...(kind === "stream" ? { "cache-control": "no-cache" } : {}),
    ...exchange.wire.headers(exchange.id),
    ...Object.fromEntries(own)
  }
}

/** A sleep without end holds no timer. */
const pause = (millis: number): Effect.Effect<void> =>
  millis === Number.POSITIVE_INFINITY ? Effect.never : Effect.sleep(millis)

/** Returns when the bytes have left the process: a client that does not read holds up the answer, not the memory. */
const write = (response: ServerResponse, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.async((resume) => {
    response.write(bytes, (error) => {
      // What cannot be written was closed by the client, and its closing ends the fiber.
      if (!error) resume(Effect.void)
    })
  })

/** A turn of the event loop between two pieces lets each be a packet of its own. */
const writePieces = (response: ServerResponse, bytes: Uint8Array, chunkBytes: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      yield* write(response, bytes.subarray(start, start + chunkBytes))
      yield* nextTurn
    }
  })

const nextTurn: Effect.Effect<void> = Effect.async((resume) => {
  const turn = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(turn))
})

const finish = (response: ServerResponse, onFinish: () => void): Effect.Effect<void> =>
  Effect.async((resume) => {
    response.once("finish", () => {
      onFinish()
      resume(Effect.void)
    })
    response.end()
  })

const breakOff = (response: ServerResponse, cut: FaultCut, end: LogEntry["end"]): Effect.Effect<void> => {
  const close = Effect.sync(() => {
    end("cut")
    response.socket?.destroySoon()
  })
  switch (cut.how) {
    case "end":
      return response.headersSent ? finish(response, () => end("cut")) : close
    case "close":
      return close
    case "reset":
      return Effect.sync(() => {
        end("cut")
        response.socket?.resetAndDestroy()
      })
    case "stall":
      return cut.closeAfter === undefined
        ? Effect.never
        : Effect.zipRight(pause(Duration.toMillis(cut.closeAfter)), close)
  }
}
