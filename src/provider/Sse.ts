/** Server-sent events: bytes in, events out, in bounded memory. */
import { Either } from "effect"
import { createParser, type ParseError } from "eventsource-parser"
import * as Json from "./Json.ts"

/** The longest event that is taken in, in characters: 1 MiB. */
export const maxEventLength = 1_048_576

/** How much is kept of lines that belong to no event, in characters: 16 KiB. */
export const maxLooseLength = 16_384

/** The bytes of one response, on their way to become events. */
export interface Decoder {
  /** Takes bytes in, cut anywhere. Not to be called again once `isOverfull`. What `onEvent` throws passes through. */
  readonly feed: (bytes: Uint8Array) => void
  /** Says that no more bytes come: an event that was not closed is taken in as it is. */
  readonly end: () => void
  /** How many events there were. */
  events: number
  /** Whether an event was longer than `maxEventLength`; nothing follows it. */
  isOverfull: boolean
  /**
   * The beginning of the lines that are none of an event stream: an error that a server wrote between the events, or,
   * before the first event, a body that is no stream, which may be as long as an event.
   */
  loose: string
}

/** A decoder that hands every event to `onEvent`. */
export const decoder = (onEvent: (data: string, name: string | undefined) => void): Decoder => {
  const text = textDecoder()
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ data, event }) => {
      self.events++
      // One that came whole within a packet was never in the buffer.
      if (data.length > maxEventLength) self.isOverfull = true
      if (!self.isOverfull) onEvent(data, event)
    },
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") self.isOverfull = true
      else keep(self, error)
    }
  })
  const self: Decoder = {
    events: 0,
    isOverfull: false,
    loose: "",
    feed: (bytes) => parser.feed(text.decode(bytes)),
    end: () => parser.feed(`${text.end()}\n\n`)
  }
  return self
}

/** UTF-8 cut anywhere. Most packets end between characters: those need no state, and are decoded many times faster. */
const textDecoder = () => {
  const whole = new TextDecoder("utf-8", { ignoreBOM: true })
  const pieces = new TextDecoder()
  // The first packet may begin with a byte order mark.
  let isOpen = true
  return {
    decode: (bytes: Uint8Array): string => {
      const wasOpen = isOpen
      const last = bytes.at(-1)
      isOpen = last === undefined ? wasOpen : last >= 0x80
      return wasOpen || isOpen ? pieces.decode(bytes, { stream: true }) : whole.decode(bytes)
    },
    end: (): string => pieces.decode()
  }
}

const keep = (decoder: Decoder, error: ParseError): void => {
  const room = (decoder.events === 0 ? maxEventLength : maxLooseLength) - decoder.loose.length
  if (room > 0) decoder.loose += `${lineOf(error)}\n`.slice(0, room)
}

/** Old versions of llama.cpp write `error: {...}` where the wire has `data: {"error": ...}`. */
const lineOf = ({ field, value = "", line = "" }: ParseError): string => {
  if (field !== "error") return line
  return JSON.stringify({ error: Either.getOrElse(Json.parse(value), () => value) })
}
