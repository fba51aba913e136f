/** Tools, and the form of the answer, in Anthropic's Messages. */
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { JsonSchema, ResponseFormat, Tool } from "../model/Tool.ts"
import type { AnswerTool } from "./AnthropicAnswer.ts"
import * as AnthropicSchema from "./AnthropicSchema.ts"
import type { Notes } from "./Notes.ts"

/** What a request says about tools and the form of the answer. */
export interface Tools {
  readonly tools?: ReadonlyArray<object>
  readonly tool_choice?: object | undefined
  /** `output_config.format`. */
  readonly format?: object
  /** What the system text says about the form. */
  readonly instruction?: string
  /** The tool whose input is the answer. */
  readonly answerTool?: AnswerTool
}

/** What is known beside what is asked. */
export interface Given {
  /** Whether the model thinks: then no tool may be forced. */
  readonly thinks: boolean
  /** Whether the model can keep to a schema by itself. */
  readonly format: boolean
  /** Whether it is preferred to a forced tool. */
  readonly prefersFormat: boolean
}

/**
 * An answer of a schema is the input of a tool that the model has to call; where it has other tools, or thinks, it is
 * told by `output_config.format` or, where that cannot say it, in the system text.
 */
export const make = (request: ChatRequest, given: Given, notes: Notes): Tools => {
  const { tools = [], responseFormat = "text" } = request
  const own =
    tools.length === 0 ? {} : { tools: tools.map((tool) => toolOf(tool, notes)), tool_choice: choiceOf(request) }
  if (responseFormat === "text") return own
  if (responseFormat === "json") {
    notes.changes.add("responseFormat became a sentence in the system text: the vendor has no mode for JSON alone.")
    return { ...own, instruction: onlyJson }
  }
  const schema = AnthropicSchema.of(responseFormat.schema)
  const mayForce = tools.length === 0 && !given.thinks
  const format = given.format && (given.prefersFormat || !mayForce) ? AnthropicSchema.strict(schema) : undefined
  if (format !== undefined) return { ...own, format: { type: "json_schema", schema: format } }
  if (mayForce) return forced(responseFormat, schema)
  notes.changes.add("responseFormat became a sentence in the system text: the vendor cannot keep to the schema here.")
  return { ...own, instruction: `${onlyJson} It fits this JSON schema: ${JSON.stringify(schema)}` }
}

const onlyJson = "Answer with JSON alone, without words around it and without a fence."

const toolOf = ({ name, description, parameters, strict }: Tool, notes: Notes): object => {
  const input_schema = AnthropicSchema.inputOf(parameters)
  const kept = strict === true ? AnthropicSchema.strict(input_schema) : undefined
  if (strict === true && kept === undefined) {
    notes.changes.add(`tools lost strict of ${name}: the vendor cannot keep to its schema.`)
  }
  return {
    name,
    ...(description === undefined ? {} : { description }),
    input_schema: kept ?? input_schema,
    ...(kept === undefined ? {} : { strict: true })
  }
}

const choiceOf = ({ toolChoice, parallelToolCalls }: ChatRequest): object | undefined => {
  const one = parallelToolCalls === false ? { disable_parallel_tool_use: true } : undefined
  if (toolChoice === undefined) return one && { type: "auto", ...one }
  if (toolChoice === "none") return { type: "none" }
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.name, ...one }
  return { type: toolChoice === "required" ? "any" : "auto", ...one }
}

/** The key under which an answer that is no object stands in the tool's input. */
const answerKey = "answer"

const forced = (form: Exclude<ResponseFormat, string>, schema: JsonSchema): Tools => {
  const name = /^[\w-]{1,64}$/.test(form.name ?? "") ? String(form.name) : "answer"
  const isObject = AnthropicSchema.isObject(schema)
  const description = form.description ?? "Takes the answer."
  const input_schema = isObject ? schema : AnthropicSchema.under(answerKey, schema)
  return {
    tools: [{ name, description, input_schema }],
    tool_choice: { type: "tool", name, disable_parallel_tool_use: true },
    answerTool: { name, key: isObject ? undefined : answerKey }
  }
}
