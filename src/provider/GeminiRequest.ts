/** Gemini's generateContent: what is asked. */
import type { ChatRequest } from "../model/ChatRequest.ts"
import { partsOf, textOf } from "../model/Message.ts"
import type { Reasoning, Tool } from "../model/Tool.ts"
import type * as Endpoint from "./Endpoint.ts"
import * as GeminiContents from "./GeminiContents.ts"
import * as GeminiFormat from "./GeminiFormat.ts"
import * as GeminiVersion from "./GeminiVersion.ts"
import * as Json from "./Json.ts"
import * as ToolNames from "./ToolNames.ts"

/** A body, and what of the request had to be left out or changed for it, one sentence each. */
export interface Written {
  readonly body: object
  readonly changes: ReadonlyArray<string>
  /** How the names of tools are sent, and how they come back. */
  readonly names: ToolNames.ToolNames
}

/** What a provider adds to a request. */
export interface Target extends Pick<Endpoint.VendorOptions, "model" | "maxTokens" | "capabilities"> {
  readonly name: string
}

/** The body of a request. Fields of `extra` win; those of its `generationConfig` win one by one. */
export const write = (request: ChatRequest, target: Target): Written => {
  const { tools = [], extra } = request
  const changes = new Set(leftOut(request))
  const names = ToolNames.make(request, ToolNames.begun, (name, sent) => {
    changes.add(`the tool ${name} was called ${sent}, as the vendor does not take its name`)
  })
  const signs = !GeminiVersion.isBeforeThree(target.model)
  const format = GeminiFormat.make(request, target, changes)
  const config = { ...generationConfigOf(request, target), ...format.fields }
  const body = {
    contents: GeminiContents.make(request.messages, { signs, names, changes }),
    systemInstruction: systemOf(request, format.instruction),
    tools: tools.length === 0 ? undefined : [{ functionDeclarations: tools.map((tool) => declarationOf(tool, names)) }],
    toolConfig: tools.length === 0 ? undefined : toolConfigOf(request, names),
    ...extra,
    generationConfig: filled({ ...config, ...recordOf(extra?.generationConfig) })
  }
  return { body, changes: [...changes].map((change) => `${change}.`), names }
}

const recordOf = (value: unknown): object => (Json.isRecord(value) ? value : {})

/** A record, unless nothing is in it. */
const filled = (record: object): object | undefined =>
  Object.values(record).some((value) => value !== undefined) ? record : undefined

const systemOf = ({ system, messages }: ChatRequest, instruction: string | undefined): object | undefined => {
  const texts = messages.filter(({ role }) => role === "system").map(({ content }) => textOf(content))
  const parts = [system, ...texts, instruction].flatMap((text) => (text ? [{ text }] : []))
  return parts.length === 0 ? undefined : { parts }
}

const declarationOf = ({ name, description, parameters }: Tool, names: ToolNames.ToolNames): object => ({
  name: names.sent(name),
  description,
  parametersJsonSchema: parameters === undefined ? undefined : GeminiFormat.schemaOf(parameters)
})

const toolConfigOf = ({ toolChoice }: ChatRequest, names: ToolNames.ToolNames): object | undefined => {
  if (toolChoice === undefined) return undefined
  return {
    functionCallingConfig:
      typeof toolChoice === "object"
        ? { mode: "ANY", allowedFunctionNames: [names.sent(toolChoice.name)] }
        : { mode: { auto: "AUTO", none: "NONE", required: "ANY" }[toolChoice] }
  }
}

const maxStops = 5

const generationConfigOf = (request: ChatRequest, { model, maxTokens }: Target): object => ({
  maxOutputTokens: request.maxTokens ?? maxTokens,
  temperature: request.temperature,
  topP: request.topP,
  stopSequences: request.stop === undefined || request.stop.length === 0 ? undefined : request.stop.slice(0, maxStops),
  seed: isSeed(request.seed) ? request.seed : undefined,
  thinkingConfig: request.reasoning === undefined ? undefined : thinkingOf(request.reasoning, model)
})

/** A seed has 32 bits on this wire. */
const isSeed = (seed = 0): boolean => seed >= -(2 ** 31) && seed < 2 ** 31

/** Google's own budgets for the efforts, which models before the third version do not know. */
const budgets = { none: 0, minimal: 1024, low: 1024, medium: 8192, high: 24_576 } as const

/** How much is thought. Where it is said, the thoughts are asked for too. */
const thinkingOf = ({ effort, maxTokens }: Reasoning, model: string): object | undefined => {
  if (effort === "none") return { thinkingBudget: 0 }
  if (maxTokens !== undefined) return { thinkingBudget: maxTokens, includeThoughts: true }
  if (effort === undefined) return undefined
  return GeminiVersion.isBeforeThree(model)
    ? { thinkingBudget: budgets[effort], includeThoughts: true }
    : { thinkingLevel: effort.toUpperCase(), includeThoughts: true }
}

/** What Gemini cannot take, or takes otherwise. */
const leftOut = (request: ChatRequest): ReadonlyArray<string> => {
  const { tools = [], reasoning, stop = [], messages } = request
  const systems = messages.filter(({ role }) => role === "system").flatMap(({ content }) => partsOf(content))
  return [
    [request.parallelToolCalls === false, "parallelToolCalls was left out; the model may call several tools at once"],
    [Object.keys(request.metadata ?? {}).length > 0, "metadata was left out"],
    [tools.some(({ strict }) => strict === true), "strict was left out of the tools"],
    [stop.length > maxStops, `the stop texts after the first ${maxStops} were left out`],
    [!isSeed(request.seed), "seed was left out; it has more than 32 bits"],
    [
      reasoning?.maxTokens !== undefined && reasoning.effort !== undefined,
      `reasoning.${reasoning?.effort === "none" ? "maxTokens" : "effort"} was left out; the vendor takes only one of the two`
    ],
    [systems.some(({ type }) => type !== "text"), "images and files were left out of the system messages"]
  ].flatMap(([isSo, change]) => (isSo === true ? [String(change)] : []))
}
