/** What two requests must have in common to get the same answer. */
import { Either, Encoding } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { Message, Part } from "../model/Message.ts"
import { jsonSchemaOf, type ResponseFormat, type Shape, type Tool } from "../model/Tool.ts"
import { canonicalText } from "./CanonicalText.ts"

/** Who may be asked, as far as it decides about the answer. */
export interface Asked {
  readonly name: string
  readonly model?: string | undefined
}

/**
 * The key of a request to some providers, in order of preference: a text that holds everything that may change the
 * answer, images and files by their content, schemas as JSON schema. It is no hash, so that no two requests ever share
 * one by chance. The `metadata` is left out. `undefined` for a request that has no such text (a circle in `extra`, a
 * schema that has no JSON schema): it is not to be cached. Never throws.
 */
export const cacheKey = (request: ChatRequest, asked: ReadonlyArray<Asked>): string | undefined =>
  Either.getOrUndefined(
    Either.try(() => {
      const { metadata: _, ...decisive } = request
      return canonicalText({
        asked: asked.map(({ name, model }) => ({ name, model })),
        request: {
          ...decisive,
          messages: request.messages.map(withText),
          tools: request.tools?.map(withJsonSchema),
          responseFormat: formatOf(request.responseFormat)
        }
      })
    })
  )

/** Bytes and their base64 are the same content. */
const withText = (message: Message): unknown =>
  typeof message.content === "string" ? message : { ...message, content: message.content.map(partOf) }

const partOf = (part: Part): unknown =>
  part.type !== "text" && part.data instanceof Uint8Array ? { ...part, data: Encoding.encodeBase64(part.data) } : part

/** A function is what no text can be made of. */
const schemaOf = (shape: Shape): unknown => Either.getOrElse(jsonSchemaOf(shape), (problem) => () => problem)

const withJsonSchema = (tool: Tool): unknown =>
  tool.parameters === undefined ? tool : { ...tool, parameters: schemaOf(tool.parameters) }

const formatOf = (format: ResponseFormat | undefined): unknown =>
  typeof format === "object" ? { ...format, schema: schemaOf(format.schema) } : format
