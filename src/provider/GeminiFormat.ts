/** The form of the answer on Gemini's wire, in the strongest way that the model has. */
import { Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { jsonSchemaOf, type Shape } from "../model/Tool.ts"
import type * as Endpoint from "./Endpoint.ts"
import * as GeminiVersion from "./GeminiVersion.ts"
import * as Json from "./Json.ts"

/** What a form of the answer asks for. */
export interface Format {
  /** The fields of the wire. */
  readonly fields: object
  /** What the system text says about it. */
  readonly instruction?: string | undefined
}

const jsonMode = { responseMimeType: "application/json" }

/** What a form of the answer asks for; where that is less than the request says, it goes into `changes`. */
export const make = (
  request: ChatRequest,
  { model, capabilities }: Pick<Endpoint.VendorOptions, "model" | "capabilities">,
  changes: Set<string>
): Format => {
  const { responseFormat = "text", tools = [] } = request
  if (responseFormat === "text") return { fields: {} }
  const schema = typeof responseFormat === "object" ? described(responseFormat) : undefined
  // These refuse a form of the answer beside tools.
  if (GeminiVersion.isBeforeThree(model) && tools.length > 0) {
    changes.add("responseFormat became a part of the system text, as the model takes no other beside tools")
    return { fields: {}, instruction: instructionOf(schema) }
  }
  if (schema === undefined) return { fields: jsonMode }
  if (capabilities?.jsonSchema !== false) return { fields: { ...jsonMode, responseJsonSchema: schema } }
  changes.add("responseFormat became JSON mode, with the schema in the system text")
  return { fields: jsonMode, instruction: instructionOf(schema) }
}

const described = ({ schema, description }: { readonly schema: Shape; readonly description?: string | undefined }) => ({
  ...(description === undefined ? {} : { description }),
  ...schemaOf(schema)
})

/** The JSON schema of a shape. Shapes are looked at before anybody is asked: one that has none says nothing here. */
export const schemaOf = (shape: Shape): object => {
  const schema = Either.getOrUndefined(jsonSchemaOf(shape))
  return Json.isRecord(schema) ? schema : {}
}

const instructionOf = (schema: object | undefined): string =>
  schema === undefined
    ? "Answer with JSON, and with nothing else."
    : `Answer with JSON that fits this JSON schema, and with nothing else:\n${JSON.stringify(schema)}`
