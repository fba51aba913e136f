/** Gemini's parts: texts, images and files of a message. */
import { Either, Encoding } from "effect"
import { type Content, type FilePart, type ImagePart, partsOf } from "../model/Message.ts"

/** The parts of a content as they are sent; what cannot be sent as it is goes into `changes`. */
export const make = (content: Content, changes: Set<string>): ReadonlyArray<object> =>
  partsOf(content).flatMap((part): ReadonlyArray<object> => {
    if (part.type === "text") return part.text === "" ? [] : [{ text: part.text }]
    if (part.type === "image" && (part.detail === "low" || part.detail === "high")) {
      changes.add("the detail of images was left out")
    }
    return [mediaPart(part)]
  })

const mediaPart = (part: ImagePart | FilePart): object => {
  if (part.url === undefined) {
    const { data, mediaType } = part
    return inline(mediaType, typeof data === "string" ? data : Encoding.encodeBase64(data))
  }
  return /^data:/i.test(part.url)
    ? ofDataUrl(part.url, part.mediaType)
    : { fileData: { mimeType: part.mediaType ?? byEnding(part.type, part.url), fileUri: part.url } }
}

const ofDataUrl = (url: string, mediaType: string | undefined): object => {
  const comma = url.indexOf(",")
  const head = url.slice("data:".length, Math.max(0, comma))
  const data = unescaped(url.slice(comma + 1))
  const [type = ""] = head.split(";")
  const isBase64 = /;\s*base64\s*$/i.test(head)
  return inline(mediaType ?? (type === "" ? "text/plain" : type), isBase64 ? data : Encoding.encodeBase64(data))
}

const inline = (mimeType: string, data: string): object => ({ inlineData: { mimeType, data } })

const unescaped = (text: string): string =>
  Either.getOrElse(
    Either.try(() => decodeURIComponent(text)),
    () => text
  )

const endings: Readonly<Record<string, string>> = {
  png: "image/png",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  gif: "image/gif",
  pdf: "application/pdf",
  txt: "text/plain",
  csv: "text/csv",
  html: "text/html"
}

/** The wire wants a media type with an address; where neither says one, it is the commonest. */
const byEnding = (type: "image" | "file", url: string): string => {
  const ending = /\.(\w+)(?:[?#]|$)/.exec(url)?.[1]?.toLowerCase() ?? ""
  return endings[ending] ?? (type === "image" ? "image/jpeg" : "application/pdf")
}
