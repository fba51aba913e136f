/** The content of a message in Anthropic's Messages. */
import { Either, Encoding } from "effect"
import { type Content, type FilePart, type ImagePart, partsOf } from "../model/Message.ts"
import * as Media from "./Media.ts"
import type { Notes } from "./Notes.ts"

/** A block as the wire has it. */
export type Block = Readonly<Record<string, unknown>> & { readonly type: string }

/** The blocks of a content. Texts that stand beside each other are one; blank texts are refused, so they are left out. */
export const make = (content: Content, notes: Notes): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let text = ""
  const endText = (): void => {
    blocks.push(...textBlocks(text))
    text = ""
  }
  for (const part of partsOf(content)) {
    if (part.type === "text") text += part.text
    else {
      endText()
      blocks.push(...(part.type === "image" ? imageBlocks(part, notes) : fileBlocks(part, notes)))
    }
  }
  endText()
  return blocks
}

/** A text as a block; none if it is blank. */
export const textBlocks = (text: string): ReadonlyArray<Block> => (text.trim() === "" ? [] : [{ type: "text", text }])

/** A plain text where there is nothing else. */
export const shortened = (blocks: ReadonlyArray<Block>): unknown => {
  const [first] = blocks
  return blocks.length === 1 && first?.type === "text" ? first.text : blocks
}

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"]

const imageBlocks = (part: ImagePart, notes: Notes): ReadonlyArray<Block> => imageOf(Media.of(part), notes)

const imageOf = (media: Media.Media, notes: Notes): ReadonlyArray<Block> => {
  if (media.url !== undefined) return addressed("image", media.url, notes)
  const { type } = media
  if (!imageTypes.includes(type ?? "")) return refuse(notes, `cannot read images of the type ${type}`)
  return [{ type: "image", source: { type: "base64", media_type: type, data: media.base64 } }]
}

const fileBlocks = (part: FilePart, notes: Notes): ReadonlyArray<Block> => {
  const media = Media.of(part)
  const { type = "application/pdf" } = media
  if (type.startsWith("image/")) return imageOf(media, notes)
  return documentBlocks(media, type, notes).map((block) =>
    part.name === undefined ? block : { ...block, title: part.name }
  )
}

const documentBlocks = (media: Media.Media, type: string, notes: Notes): ReadonlyArray<Block> => {
  const { url, base64 = "" } = media
  if (type === "application/pdf") {
    if (url !== undefined) return addressed("document", url, notes)
    return [{ type: "document", source: { type: "base64", media_type: type, data: base64 } }]
  }
  if (!isText(type)) return refuse(notes, `cannot read files of the type ${type}`)
  if (url !== undefined) return refuse(notes, "cannot fetch texts; their bytes must be sent along")
  return Either.match(Encoding.decodeBase64String(base64), {
    onLeft: () => refuse(notes, "was given a file that is no base64"),
    onRight: (data) => [{ type: "document", source: { type: "text", media_type: "text/plain", data } }]
  })
}

const isText = (type: string): boolean => /^text\/|[/+](?:json|xml|yaml|javascript|typescript)$/.test(type)

const addressed = (type: string, url: string, notes: Notes): ReadonlyArray<Block> =>
  /^https?:/i.test(url)
    ? [{ type, source: { type: "url", url } }]
    : refuse(notes, `cannot read ${/^\w+:/.exec(url)?.[0] ?? "such"} addresses`)

const refuse = (notes: Notes, obstacle: string): ReadonlyArray<Block> => {
  notes.obstacle ??= obstacle
  return []
}
