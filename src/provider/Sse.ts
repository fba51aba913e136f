/** Server-sent events: bytes in, events out, in bounded memory. */
import { createParser, type ParseError } from "eventsource-parser"

/** The longest event that is taken in, in characters: 1 MiB. */
export const maxEventLength = 1_048_576

/** How much is kept of lines that belong to no event, in characters: 16 KiB. */
export const maxLooseLength = 16_384

/** The bytes of one response, on their way to become events. */
export interface Decoder {
  /** Takes bytes in, cut anywhere. Not to be called again once `isOverfull`. */
  readonly feed: (bytes: Uint8Array) => void
  /** Says that no more bytes come: an event that was not closed is taken in as it is. */
  readonly end: () => void
  /** Whether an event was longer than `maxEventLength`; nothing follows it. */
  isOverfull: boolean
  /**
   * The beginning of the lines that are none of an event stream, a line each: a whole body that is no stream, or an
   * error that a server wrote between the events.
   */
  loose: string
}

/** A decoder that hands every event to `onEvent`. */
export const decoder = (onEvent: (data: string, name: string | undefined) => void): Decoder => {
  const text = new TextDecoder()
  let events = 0
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ data, event }) => {
      events++
      // One that came whole within a packet was never in the buffer.
      if (data.length > maxEventLength) self.isOverfull = true
      if (!self.isOverfull) onEvent(data, event)
    },
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") self.isOverfull = true
      // Before the first event the lines may be all of a body that only claims to be a stream.
      else keep(error, events === 0 ? maxEventLength : maxLooseLength)
    }
  })
  const keep = ({ field, value, line }: ParseError, limit: number): void => {
    // Old versions of llama.cpp write `error: {...}` where the wire has `data: {"error": ...}`.
    const kept = field === "error" ? `{"error":${value}}` : line
    if (kept !== undefined) self.loose += `${kept}\n`.slice(0, Math.max(0, limit - self.loose.length))
  }
  const self: Decoder = {
    isOverfull: false,
    loose: "",
    feed: (bytes) => parser.feed(text.decode(bytes, { stream: true })),
    end: () => parser.feed(`${text.decode()}\n\n`)
  }
  return self
}
