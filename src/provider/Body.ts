/** The bytes of a body, gathered up to a limit. */

/** Bytes that are on their way to become a text. */
export interface Body {
  /** Takes bytes in, as far as there is room. Gives back whether there was room for all of them. */
  readonly take: (bytes: Uint8Array) => boolean
  /** Whether there was more than there is room for. */
  readonly isOverfull: () => boolean
  /** What has come, read as UTF-8; what is none becomes U+FFFD. */
  readonly text: () => string
}

/** No bytes yet. The room grows with what comes, however small its pieces are, to at most twice of it. */
export const make = (maxBytes: number): Body => {
  let bytes: Uint8Array = new Uint8Array()
  let size = 0
  let isOverfull = false
  return {
    take: (piece) => {
      const part = piece.subarray(0, maxBytes - size)
      // Most bodies come in one piece, which needs no room of its own.
      if (size === 0) bytes = part
      else bytes = withPart(bytes, size, part, maxBytes)
      size += part.length
      isOverfull ||= part.length < piece.length
      return !isOverfull
    },
    isOverfull: () => isOverfull,
    text: () => new TextDecoder().decode(bytes.subarray(0, size))
  }
}

const withPart = (bytes: Uint8Array, size: number, part: Uint8Array, maxBytes: number): Uint8Array => {
  const needed = size + part.length
  // A first piece is the client's, and only as long as what it holds.
  const room = needed <= bytes.length ? bytes : new Uint8Array(Math.min(maxBytes, needed * 2))
  if (room !== bytes) room.set(bytes.subarray(0, size))
  room.set(part, size)
  return room
}
