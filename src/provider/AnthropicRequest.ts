/** The body of a request in Anthropic's Messages. */
import { Either } from "effect"
import type { Capabilities } from "../model/Capabilities.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import { InvalidRequestError } from "../model/LlmError.ts"
import { partsOf, textOf } from "../model/Message.ts"
import type { Reading } from "./AnthropicAnswer.ts"
import * as AnthropicModel from "./AnthropicModel.ts"
import * as AnthropicThinking from "./AnthropicThinking.ts"
import * as AnthropicTools from "./AnthropicTools.ts"
import * as AnthropicTurns from "./AnthropicTurns.ts"
import * as Notes from "./Notes.ts"

/** Who is asked. */
export interface Target {
  readonly name: string
  readonly model: string
  readonly maxTokens?: number | undefined
  readonly thinking?: AnthropicModel.Traits["thinking"] | undefined
  readonly version?: string | undefined
  readonly capabilities?: Capabilities | undefined
}

/** A request, written. */
export interface Written {
  readonly body: object
  /** What was left out or changed. */
  readonly changes: ReadonlyArray<string>
  /** How its answer is read. */
  readonly reading: Reading
}

/** Writes a request. What the vendor cannot read is an `InvalidRequestError` with the reason `"capability"`. */
export const make = (request: ChatRequest, target: Target): Either.Either<Written, InvalidRequestError> => {
  const { name, model, capabilities = {} } = target
  const notes = Notes.make()
  const traits = AnthropicModel.traitsOf(model)
  const family = AnthropicModel.familyOf(model)
  const turns = AnthropicTurns.make(request, family, notes)
  const way = target.thinking ?? traits.thinking
  const maxTokens = request.maxTokens ?? target.maxTokens
  const given = { way, maxTokens, hindrance: hindranceOf(request, way, turns) }
  const { isOn, thinking, effort, max_tokens } = AnthropicThinking.make(request.reasoning, given, notes)
  const format = capabilities.jsonSchema ?? traits.format
  const form = { thinks: isOn, format, prefersFormat: capabilities.jsonSchema === true }
  const tools = AnthropicTools.make(request, form, notes)
  const system = systemOf(request, tools.instruction, notes)
  const isAlone = system !== undefined && turns.length === 0
  if (isAlone) notes.changes.add("system became a message of the user: the vendor takes no request without one.")
  const body = {
    model,
    system: isAlone ? undefined : system,
    messages: isAlone ? [{ role: "user", content: system }] : AnthropicTurns.written(turns),
    max_tokens,
    ...samplingOf(request, sampling(target, traits), isOn, notes),
    stop_sequences: stopOf(request, notes),
    tools: tools.tools,
    tool_choice: tools.tool_choice,
    thinking,
    output_config: effort === undefined && tools.format === undefined ? undefined : { effort, format: tools.format },
    metadata: metadataOf(request, notes),
    ...request.extra
  }
  if (request.seed !== undefined) notes.changes.add("seed was left out: the vendor does not take it.")
  const { obstacle, changes } = notes
  const reading = { provider: name, family, answerTool: tools.answerTool }
  return obstacle === undefined
    ? Either.right({ body, changes: [...changes], reading })
    : Either.left(new InvalidRequestError({ provider: name, reason: "capability", message: `${name}: ${obstacle}` }))
}

const hindranceOf = (
  { toolChoice, tools = [] }: ChatRequest,
  way: AnthropicModel.Traits["thinking"],
  turns: ReadonlyArray<AnthropicTurns.Turn>
): string | undefined => {
  if (tools.length > 0 && (toolChoice === "required" || typeof toolChoice === "object")) {
    return "a model that thinks cannot be made to call a tool"
  }
  return way === "budget" && !AnthropicTurns.mayThink(turns)
    ? "the answer that is under way began without thoughts of this model"
    : undefined
}

const systemOf = ({ system = "", messages }: ChatRequest, instruction = "", notes: Notes.Notes): string | undefined => {
  const contents = messages.filter(({ role }) => role === "system").map(({ content }) => content)
  if (contents.some((content) => partsOf(content).some(({ type }) => type !== "text"))) {
    notes.changes.add("messages lost the images and files of the system: the vendor takes only text there.")
  }
  const texts = [system, ...contents.map(textOf), instruction].filter((text) => text.trim() !== "")
  return texts.length === 0 ? undefined : texts.join("\n\n")
}

/** Since this version of the wire no model takes `temperature` and `top_p`. */
const versionWithoutSampling = "2026-10-21"

const sampling = ({ version = "" }: Target, traits: AnthropicModel.Traits): AnthropicModel.Traits["sampling"] =>
  version >= versionWithoutSampling ? "none" : traits.sampling

const samplingOf = (
  { temperature, topP }: ChatRequest,
  allowed: AnthropicModel.Traits["sampling"],
  thinks: boolean,
  notes: Notes.Notes
): object => {
  const leaveOut = (field: string, value: number | undefined, why: string): undefined => {
    if (value !== undefined) notes.changes.add(`${field} was left out: the vendor does not take it ${why}.`)
  }
  if (allowed === "none") {
    return {
      temperature: leaveOut("temperature", temperature, "any more"),
      top_p: leaveOut("topP", topP, "any more")
    }
  }
  if (thinks) {
    return {
      temperature: temperature === 1 ? 1 : leaveOut("temperature", temperature, "while the model thinks"),
      top_p: topP !== undefined && topP >= 0.95 ? topP : leaveOut("topP", topP, "below 0.95 while the model thinks")
    }
  }
  if (temperature !== undefined && temperature > 1) notes.changes.add("temperature is 1: the vendor takes no more.")
  return {
    temperature: temperature === undefined ? undefined : Math.min(temperature, 1),
    top_p: allowed === "one" && temperature !== undefined ? leaveOut("topP", topP, "together with temperature") : topP
  }
}

const stopOf = ({ stop = [] }: ChatRequest, notes: Notes.Notes): ReadonlyArray<string> | undefined => {
  const taken = stop.filter((text) => text.trim() !== "")
  if (taken.length < stop.length) notes.changes.add("stop lost its blank texts: the vendor takes none.")
  return taken.length === 0 ? undefined : taken
}

const metadataOf = ({ metadata = {} }: ChatRequest, notes: Notes.Notes): object | undefined => {
  const { user_id, ...others } = metadata
  if (Object.keys(others).length > 0) notes.changes.add("metadata holds only user_id: the vendor takes nothing else.")
  return user_id === undefined ? undefined : { user_id }
}
