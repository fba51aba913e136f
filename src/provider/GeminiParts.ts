/** Gemini's parts: texts, images and files of a message. */
import { type Content, type FilePart, type ImagePart, partsOf } from "../model/Message.ts"
import * as Media from "./Media.ts"

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
  const { type, url, base64 } = Media.of(part)
  return url === undefined
    ? { inlineData: { mimeType: type, data: base64 } }
    : { fileData: { mimeType: type ?? byEnding(part.type, url), fileUri: url } }
}

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
