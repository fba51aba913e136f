/** The turns of a conversation. */

/** A piece of text within a message. */
export interface TextPart {
  readonly type: "text"
  readonly text: string
}

/** A piece of a message. */
export type Part = TextPart

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
}

/** One turn of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage

/** The text of a content, its parts joined as they are. */
export const textOf = (content: Content): string =>
  typeof content === "string" ? content : content.map((part) => part.text).join("")
