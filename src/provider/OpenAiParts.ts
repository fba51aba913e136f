/** The content of a message in OpenAI's chat completions. */
import { type Content, type FilePart, type ImagePart, type Part, type Source, textOf } from "../model/Message.ts"
import * as Media from "./Media.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"

/** A part as the wire has it. */
export type WirePart = Readonly<Record<string, unknown>> & { readonly type: string }

/** A plain text where there is nothing else, which every vendor takes; else parts. */
export const make = (content: Content, dialect: Dialect, notes: Notes): string | ReadonlyArray<WirePart> => {
  if (typeof content === "string" || content.every(({ type }) => type === "text")) return textOf(content)
  return content.flatMap((part) => partOf(part, dialect, notes))
}

/** The parts of a content that are no text. */
export const withoutText = (content: Content): ReadonlyArray<Part> =>
  typeof content === "string" ? [] : content.filter(({ type }) => type !== "text")

const partOf = (part: Part, dialect: Dialect, notes: Notes): ReadonlyArray<WirePart> => {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ type: "text", text: part.text }]
    case "image":
      return imageOf(part, dialect, notes)
    case "file":
      return fileOf(part, dialect, notes)
  }
}

const imageOf = (image: ImagePart, { images = "any" }: Dialect, notes: Notes): ReadonlyArray<WirePart> => {
  const url = addressOf(image)
  if (images === false) return refuse(notes, "cannot read images")
  if (images === "data" && !isData(url)) return refuse(notes, "cannot fetch images; their bytes must be sent along")
  if (isOfGoogle(url)) return refuse(notes, "cannot read gs: addresses")
  const { detail } = image
  return [{ type: "image_url", image_url: { url, ...(detail === undefined ? {} : { detail }) } }]
}

const fileOf = (file: FilePart, { files = "file" }: Dialect, notes: Notes): ReadonlyArray<WirePart> => {
  const url = addressOf(file)
  if (files === false) return refuse(notes, "cannot read files")
  if (isOfGoogle(url)) return refuse(notes, "cannot read gs: addresses")
  if (files === "document_url") {
    return [{ type: files, document_url: url, ...(file.name === undefined ? {} : { document_name: file.name }) }]
  }
  if (files === "file" && !isData(url)) return refuse(notes, "cannot fetch files; their bytes must be sent along")
  return [{ type: "file", file: { filename: nameOf(file, url), file_data: url } }]
}

const refuse = (notes: Notes, obstacle: string): ReadonlyArray<WirePart> => {
  notes.obstacle ??= obstacle
  return []
}

/** Bytes become an address that holds them. */
const addressOf = (source: Source): string => {
  const { url, type, base64 = "" } = Media.of(source)
  return url ?? `data:${type};base64,${base64}`
}

const isData = (url: string): boolean => /^data:/i.test(url)

const isOfGoogle = (url: string): boolean => /^gs:/i.test(url)

const nameOf = ({ name, mediaType }: FilePart, url: string): string => {
  const type = mediaType ?? /^data:[\w.+-]+\/([\w.+-]+)/i.exec(url)?.[1] ?? ""
  const ending = type.split("/").at(-1)?.toLowerCase()
  if (name !== undefined) return name
  if (!isData(url)) return /([^/?#]+)(?:[?#].*)?$/.exec(url)?.[1] ?? "file"
  return ending === "" ? "file" : `file.${ending === "plain" ? "txt" : ending}`
}
