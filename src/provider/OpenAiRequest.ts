/** The body of a request in OpenAI's chat completions. */
import { Either } from "effect"
import type { Capabilities } from "../model/Capabilities.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { InvalidRequestError } from "../model/LlmError.ts"
import * as Notes from "./Notes.ts"
import type { Dialect } from "./OpenAiDialect.ts"
import * as OpenAiFormat from "./OpenAiFormat.ts"
import * as OpenAiMessages from "./OpenAiMessages.ts"
import * as OpenAiReasoning from "./OpenAiReasoning.ts"
import * as OpenAiTools from "./OpenAiTools.ts"
import * as OpenAiTurns from "./OpenAiTurns.ts"

/** Who is asked. */
export interface Target {
  readonly name: string
  readonly model: string
  readonly maxTokens?: number | undefined
  readonly capabilities?: Capabilities | undefined
  readonly dialect: Dialect
}

/** A request, written. */
export interface Written {
  readonly body: object
  /** What was left out or changed. */
  readonly changes: ReadonlyArray<string>
  /** The tool whose arguments are the answer's text. */
  readonly answerTool: string | undefined
}

/** Writes a request. What the vendor can only misunderstand is an `InvalidRequestError` with the reason `"capability"`. */
export const make = (
  request: ChatRequest,
  target: Target,
  isStream: boolean
): Either.Either<Written, InvalidRequestError> => {
  const { name, model } = target
  const dialect = told(target)
  const notes = Notes.make()
  const format = OpenAiFormat.make(request, dialect, notes)
  const messages = OpenAiMessages.make(request, format.instruction, { name, model, dialect }, notes)
  const body = {
    model,
    messages,
    [dialect.maxTokensField ?? "max_tokens"]: request.maxTokens ?? target.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    ...stopOf(request, dialect, notes),
    ...seedOf(request, dialect, notes),
    ...OpenAiTools.make(request, format.answer, dialect, notes),
    response_format: format.response_format,
    ...OpenAiReasoning.make(request.reasoning, dialect, notes),
    ...metadataOf(request, dialect, notes),
    ...prefillOf(messages, dialect),
    ...(isStream ? streamed(dialect) : {}),
    ...request.extra
  }
  const { obstacle, changes } = notes
  return obstacle === undefined
    ? Either.right({ body, changes: [...changes], answerTool: format.answer?.name })
    : Either.left(new InvalidRequestError({ provider: name, reason: "capability", message: `${name}: ${obstacle}` }))
}

/** The dialect, corrected by what is known of the model. */
const told = ({ dialect, capabilities = {} }: Target): Dialect => {
  const { jsonSchema, tools } = capabilities
  const way = dialect.jsonSchema ?? "native"
  const known = jsonSchema === true ? "native" : jsonSchema === false && way === "native" ? "tool" : way
  if (known !== "tool" || tools !== false) return { ...dialect, jsonSchema: known }
  return { ...dialect, jsonSchema: dialect.jsonMode === false ? "instruction" : "mode" }
}

const stopOf = ({ stop = [] }: ChatRequest, { maxStops = stop.length }: Dialect, notes: Notes.Notes): object => {
  if (stop.length > maxStops) notes.changes.add(`stop holds only the first ${maxStops}: the vendor takes no more.`)
  return stop.length === 0 ? {} : { stop: stop.slice(0, maxStops) }
}

const seedOf = ({ seed }: ChatRequest, { seedField = "seed" }: Dialect, notes: Notes.Notes): object => {
  if (seedField !== false) return { [seedField]: seed }
  if (seed !== undefined) notes.changes.add("seed was left out: the vendor does not take it.")
  return {}
}

const metadataOf = ({ metadata }: ChatRequest, dialect: Dialect, notes: Notes.Notes): object => {
  if (dialect.metadata === true) return { metadata }
  if (metadata !== undefined) notes.changes.add("metadata was left out: the vendor does not take it.")
  return {}
}

const prefillOf = (messages: ReadonlyArray<OpenAiTurns.Turn>, { prefill }: Dialect): object => {
  const last = messages.at(-1)
  return prefill === "continue" && last !== undefined && OpenAiTurns.isOpen(last)
    ? { continue_final_message: true, add_generation_prompt: false }
    : {}
}

const streamed = ({ streamOptions = true }: Dialect): object => ({
  stream: true,
  ...(streamOptions ? { stream_options: { include_usage: true } } : {})
})
