/** The bytes of an image or a file, or where they are, as adapters need them. */
import { Either, Encoding } from "effect"
import type { Source } from "../model/Message.ts"

/** Bytes that are here, as base64, or the address of those that are not. */
export interface Media {
  /** The media type, in lower case; `undefined` where nobody says it. */
  readonly type: string | undefined
  readonly url?: string
  readonly base64?: string
}

/** What a source holds. An address that holds the bytes itself is taken apart. */
export const of = (source: Source): Media => {
  if (source.url === undefined) {
    const { data, mediaType } = source
    const base64 = typeof data === "string" ? withoutBlanks(data) : Encoding.encodeBase64(data)
    return { type: typeOf(mediaType), base64 }
  }
  if (!/^data:/i.test(source.url)) {
    return { type: source.mediaType === undefined ? undefined : typeOf(source.mediaType), url: source.url }
  }
  const inline = inlined(source.url)
  return source.mediaType === undefined ? inline : { ...inline, type: typeOf(source.mediaType) }
}

/** `data:image/png;base64,aGk=`, or without `;base64` the bytes escaped as in an address. */
const inlined = (url: string): Media => {
  const comma = url.indexOf(",")
  const [type = "", ...parameters] = url.slice("data:".length, Math.max(comma, "data:".length)).split(";")
  const written = url.slice(comma + 1)
  const bytes = written.includes("%")
    ? Either.getOrElse(
        Either.try(() => decodeURIComponent(written)),
        () => written
      )
    : written
  const isBase64 = parameters.some((it) => it.trim().toLowerCase() === "base64")
  return { type: typeOf(type), base64: isBase64 ? withoutBlanks(bytes) : Encoding.encodeBase64(bytes) }
}

/** An address of data without a type means a plain text. */
const typeOf = (type: string): string => {
  const plain = type.trim().toLowerCase()
  return plain === "" ? "text/plain" : plain === "image/jpg" ? "image/jpeg" : plain
}

const withoutBlanks = (text: string): string => (/\s/.test(text) ? text.replace(/\s+/g, "") : text)
