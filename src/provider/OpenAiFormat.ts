/** The form of the answer in OpenAI's chat completions, in the strongest way that a vendor has. */
import type { ChatRequest } from "../model/ChatRequest.ts"
import { textOf } from "../model/Message.ts"
import type { JsonSchema, ResponseFormat } from "../model/Tool.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"
import * as OpenAiSchema from "./OpenAiSchema.ts"
import type { AnswerTool } from "./OpenAiTools.ts"

/** What a form of the answer asks for. */
export interface Format {
  /** The field of the wire. */
  readonly response_format?: object
  /** What the system text says about it. */
  readonly instruction?: string
  /** The tool whose arguments are the answer. */
  readonly answer?: AnswerTool
}

/** What the form of the answer asks for. */
export const make = (request: ChatRequest, dialect: Dialect, notes: Notes): Format => {
  const { responseFormat = "text" } = request
  if (responseFormat === "text") return {}
  return responseFormat === "json"
    ? someJson(request, dialect, notes)
    : ofSchema(request, responseFormat, dialect, notes)
}

const jsonObject = { type: "json_object" }

/** JSON mode writes blanks for ever, or is refused, where nothing in the conversation speaks of JSON. */
const someJson = (request: ChatRequest, dialect: Dialect, notes: Notes): Format => {
  const { jsonMode = true, jsonSchema = "native" } = dialect
  if (!jsonMode && jsonSchema === "native") {
    return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } } }
  }
  const texts = [request.system ?? "", ...request.messages.map(({ content }) => textOf(content))]
  const isSpokenOf = texts.some((text) => /json/i.test(text))
  if (jsonMode && isSpokenOf) return { response_format: jsonObject }
  const instruction = "Answer with JSON, and with nothing else."
  notes.changes.add(
    jsonMode
      ? "responseFormat is named in the system text too: JSON mode wants it there."
      : "responseFormat is only asked for in the system text: the vendor has no JSON mode."
  )
  return { instruction, ...(jsonMode ? { response_format: jsonObject } : {}) }
}

type SchemaFormat = Exclude<ResponseFormat, string>

const ofSchema = (request: ChatRequest, format: SchemaFormat, dialect: Dialect, notes: Notes): Format => {
  const schema = OpenAiSchema.of(format.schema)
  switch (wayOf(request, dialect)) {
    case "native":
      return { response_format: native(format, schema, dialect, notes) }
    case "tool":
      notes.changes.add("responseFormat became a tool that must be called: the vendor keeps to no schema otherwise.")
      return { answer: answerTool(request, format, schema) }
    case "mode":
      notes.changes.add("responseFormat became JSON mode, with the schema in the system text: the vendor has no more.")
      return { response_format: jsonObject, instruction: instructionOf(format, schema) }
    case "instruction":
      notes.changes.add("responseFormat became a part of the system text: the vendor has no other way.")
      return { instruction: instructionOf(format, schema) }
  }
}

/** The dialect's way, or the next one where tools stand in its way. */
const wayOf = ({ toolChoice }: ChatRequest, dialect: Dialect): NonNullable<Dialect["jsonSchema"]> => {
  const { jsonSchema = "native", jsonMode = true } = dialect
  const isForceable = dialect.toolChoice !== false && typeof toolChoice !== "object"
  if (jsonSchema === "tool" && !isForceable) return jsonMode ? "mode" : "instruction"
  return jsonSchema === "mode" && !jsonMode ? "instruction" : jsonSchema
}

const native = (format: SchemaFormat, schema: JsonSchema, dialect: Dialect, notes: Notes): object => {
  const { name = "answer", description, strict = true } = format
  const obstacle = strict && dialect.strictSchemas !== false ? OpenAiSchema.strictObstacle(schema) : undefined
  if (obstacle !== undefined) {
    notes.changes.add(`responseFormat was sent with strict: false, for ${obstacle} in its schema.`)
  }
  const described = description === undefined ? {} : { description }
  return { type: "json_schema", json_schema: { name, ...described, schema, strict: strict && obstacle === undefined } }
}

const answerTool = ({ tools = [] }: ChatRequest, format: SchemaFormat, schema: JsonSchema): AnswerTool => {
  const { name = "answer", description = "Gives the answer. Call it once, with the whole answer." } = format
  const free = (candidate: string): string =>
    tools.some((tool) => tool.name === candidate) ? free(`${candidate}_`) : candidate
  return { name: free(name), description, schema }
}

const instructionOf = ({ description }: SchemaFormat, schema: JsonSchema): string => {
  const what = description === undefined ? "" : ` (${description})`
  return `Answer with JSON${what} that fits this JSON schema, and with nothing else:\n${JSON.stringify(schema)}`
}
