/** The turns of a conversation. */
import type { ToolCall } from "./ChatResponse.ts"
import type { OpaqueReasoning } from "./OpaqueReasoning.ts"

/** A piece of text within a message. */
export interface TextPart {
  readonly type: "text"
  readonly text: string
}

/** Where the bytes of an image or a file are: at an address, or here, as base64 or as they are. */
export type Source =
  | { readonly url: string; readonly data?: undefined; readonly mediaType?: string | undefined }
  | { readonly data: string | Uint8Array; readonly url?: undefined; readonly mediaType: string }

/** An image. */
export type ImagePart = Source & {
  readonly type: "image"
  /** How closely it is looked at, where the vendor can be told. Default: the vendor's. */
  readonly detail?: "low" | "high" | "auto" | undefined
}

/** A file, such as a PDF. */
export type FilePart = Source & {
  readonly type: "file"
  /** Its name, where the vendor wants one. Default: `file` with the ending of the media type. */
  readonly name?: string | undefined
}

/** A piece of a message. */
export type Part = TextPart | ImagePart | FilePart

/** The content of a message: a text, or parts that are read one after the other. */
export type Content = string | ReadonlyArray<Part>

/** What the model is to be. It may stand anywhere; vendors that take it apart from the conversation get it so. */
export interface SystemMessage {
  readonly role: "system"
  readonly content: Content
}

/** What the user said. */
export interface UserMessage {
  readonly role: "user"
  readonly content: Content
}

/** What the model said earlier. */
export interface AssistantMessage {
  readonly role: "assistant"
  readonly content: Content
  /** The tools that it called. */
  readonly toolCalls?: ReadonlyArray<ToolCall> | undefined
  /** What its vendor wants back; see `ChatResponse.opaque`. */
  readonly opaque?: OpaqueReasoning | undefined
}

/** What a tool gave back. */
export interface ToolMessage {
  readonly role: "tool"
  /** The `id` of the tool call that it answers. */
  readonly toolCallId: string
  readonly content: Content
  /** Whether the tool failed, and the content says how. Default: false. */
  readonly isError?: boolean | undefined
}

/** One turn of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** The text of a content, its parts joined as they are; images and files have none. */
export const textOf = (content: Content): string =>
  typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : "")).join("")

/** The parts of a content. */
export const partsOf = (content: Content): ReadonlyArray<Part> =>
  typeof content === "string" ? (content === "" ? [] : [{ type: "text", text: content }]) : content
