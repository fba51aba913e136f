/** Tools in OpenAI's chat completions, and whether they are called. */
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { JsonSchema, Tool, ToolChoice } from "../model/Tool.ts"
import type { Notes } from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"
import * as OpenAiSchema from "./OpenAiSchema.ts"

/** A tool whose arguments are the answer: what is called instead of writing it. */
export interface AnswerTool {
  readonly name: string
  readonly description: string
  readonly schema: JsonSchema
}

/** The fields that say which tools there are. */
export const make = (request: ChatRequest, answer: AnswerTool | undefined, dialect: Dialect, notes: Notes): object => {
  const { tools = [], toolChoice = "auto", parallelToolCalls } = request
  const choice = answer === undefined ? toolChoice : answerChoice(tools, toolChoice, answer)
  const offered = narrowed(tools, choice, dialect, notes).map((tool) => toolOf(tool, dialect, notes))
  const all = answer === undefined ? offered : [...offered, answerTool(answer)]
  if (all.length === 0) return {}
  const parallel = answer !== undefined && tools.length === 0 ? undefined : parallelToolCalls
  if (parallel !== undefined && dialect.parallelToolCalls === false) {
    notes.changes.add("parallelToolCalls was left out: the vendor does not take it.")
  }
  return {
    tools: all,
    tool_choice: choiceOf(choice, request.toolChoice !== undefined, dialect, notes),
    parallel_tool_calls: dialect.parallelToolCalls === false ? undefined : parallel
  }
}

/** With other tools to call, one must be called, of which the answer is one; without, it must be the answer. */
const answerChoice = (tools: ReadonlyArray<Tool>, choice: ToolChoice, { name }: AnswerTool): ToolChoice =>
  tools.length === 0 || choice === "none" ? { name } : "required"

/** Where the choice cannot be said, the offer says it. */
const narrowed = (
  tools: ReadonlyArray<Tool>,
  choice: ToolChoice,
  { toolChoice = "named" }: Dialect,
  notes: Notes
): ReadonlyArray<Tool> => {
  if (toolChoice === false && choice === "none" && tools.length > 0) {
    notes.changes.add("tools were left out: the vendor cannot be told not to call them.")
    return []
  }
  if (toolChoice === "named" || typeof choice === "string") return tools
  if (tools.length > 1)
    notes.changes.add(`tools hold only ${choice.name}: the vendor cannot be told to call it by name.`)
  return tools.filter(({ name }) => name === choice.name)
}

const choiceOf = (choice: ToolChoice, isSaid: boolean, dialect: Dialect, notes: Notes): unknown => {
  const { toolChoice = "named", requiredWord = "required" } = dialect
  if (toolChoice === false) {
    if (typeof choice === "object" || choice === "required") {
      notes.changes.add("toolChoice was left out: the vendor cannot be made to call a tool.")
    }
    return undefined
  }
  if (typeof choice === "object") {
    return toolChoice === "named" ? { type: "function", function: { name: choice.name } } : requiredWord
  }
  return choice === "required" ? requiredWord : isSaid ? choice : undefined
}

const toolOf = (tool: Tool, dialect: Dialect, notes: Notes): object => {
  const { name, description, strict } = tool
  const parameters = OpenAiSchema.of(tool.parameters)
  const bare = tool.parameters === undefined && strict === true ? { additionalProperties: false, required: [] } : {}
  const schema = { ...parameters, ...bare }
  const obstacle = strict === true && dialect.strictSchemas !== false ? OpenAiSchema.strictObstacle(schema) : undefined
  if (obstacle !== undefined) {
    notes.changes.add(`tools: ${name} was sent with strict: false, for ${obstacle} in its parameters.`)
  }
  return {
    type: "function",
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: schema,
      ...(strict === undefined ? {} : { strict: strict && obstacle === undefined })
    }
  }
}

const answerTool = ({ name, description, schema }: AnswerTool): object => ({
  type: "function",
  function: { name, description, parameters: schema }
})
