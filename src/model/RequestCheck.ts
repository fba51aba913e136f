/** Looks at a request before anybody is asked: each check says what is wrong, with the value and what is allowed. */
import { Either } from "effect"
import type { ChatRequest } from "./ChatRequest.ts"
import { InvalidRequestError } from "./LlmError.ts"
import type { Message } from "./Message.ts"
import { jsonSchemaOf, type Shape } from "./Tool.ts"

const refuse = (message: string) => Either.left(new InvalidRequestError({ provider: "llmfuse", message }))

/**
 * A string becomes one user message; a request is looked at before anybody is asked.
 * The left side names the value and what is allowed.
 */
export const normalize = (input: string | ChatRequest): Either.Either<ChatRequest, InvalidRequestError> => {
  if (typeof input === "string") {
    return input === ""
      ? refuse("the prompt is the empty string; give it some text")
      : Either.right({ messages: [{ role: "user", content: input }] })
  }
  if (typeof input !== "object" || input === null) {
    return refuse(`the request is ${show(input)}; allowed: a string or { messages, ... }`)
  }
  const problem = problemOf(input)
  return problem === undefined ? Either.right(input) : refuse(problem)
}

/** What is wrong with a request; `undefined` if nothing is. */
const problemOf = (request: ChatRequest): string | undefined => {
  for (const check of checks) {
    const problem = check(request)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** A value as a message shows it: short, and without what it holds. */
export const show = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(value.slice(0, 40))
    : Array.isArray(value)
      ? "an array"
      : typeof value === "object" && value !== null
        ? "an object"
        : String(value)

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

const isObject = (value: unknown): boolean =>
  (typeof value === "object" || typeof value === "function") && value !== null && !Array.isArray(value)

const isWholeAbove0 = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0

const roles: ReadonlyArray<unknown> = ["system", "user", "assistant", "tool"]

/** Anything may be a file; an image says so. */
const ofMediaType = (type: "image" | "file", mediaType: unknown, at: string): string | undefined => {
  const isKnown = isText(mediaType) && /^[\w.+-]+\/[\w.+-]+$/.test(mediaType)
  return isKnown && (type === "file" || /^image\//i.test(mediaType))
    ? undefined
    : `${at} is ${show(mediaType)}; allowed: such as "${type === "image" ? "image/png" : "application/pdf"}"`
}

const ofAddress = (type: "image" | "file", url: unknown, mediaType: unknown, at: string): string | undefined => {
  if (!isText(url) || !/^(?:https?:|data:|gs:)/i.test(url)) {
    return `${at}.url is ${show(url)}; allowed: an address that begins with https:, http: or data:`
  }
  if (mediaType !== undefined) return ofMediaType(type, mediaType, `${at}.mediaType`)
  if (!/^data:/i.test(url)) return undefined
  const [, told] = /^data:([^,;]*)[^,]*,./i.exec(url.slice(0, 1000)) ?? []
  if (told === undefined) return `${at}.url is ${show(url)}; allowed: such as "data:image/png;base64,iVBORw0KGgo="`
  return type === "file" && told === "" ? undefined : ofMediaType(type, told, `${at}.url: its media type`)
}

const ofData = (type: "image" | "file", data: unknown, mediaType: unknown, at: string): string | undefined => {
  if (!isText(data) && !(data instanceof Uint8Array && data.length > 0)) {
    return `${at} has no url and no data; allowed: { url } or { data, mediaType } with base64 or bytes`
  }
  return typeof data === "string" && /^data:/i.test(data)
    ? `${at}.data is ${show(data)}; allowed: base64 alone, or the whole as url`
    : ofMediaType(type, mediaType, `${at}.mediaType`)
}

const ofPart = (part: unknown, at: string): string | undefined => {
  const { type, text, url, data, mediaType } = (part ?? {}) as Record<string, unknown>
  switch (type) {
    case "text":
      return typeof text === "string" ? undefined : `${at}.text is ${show(text)}; allowed: a string`
    case "image":
    case "file":
      if (url !== undefined && data !== undefined) return `${at} has both url and data; allowed: one of them`
      return url === undefined ? ofData(type, data, mediaType, at) : ofAddress(type, url, mediaType, at)
    default:
      return `${at} is no part: its type is ${show(type)}; allowed: "text", "image", "file"`
  }
}

const ofMessage = (message: Message, index: number): string | undefined => {
  const at = `messages[${index}]`
  if (typeof message !== "object" || message === null)
    return `${at} is ${show(message)}; a message is { role, content }`
  if (!roles.includes(message.role)) return `${at}.role is ${show(message.role)}; allowed: ${roles.join(", ")}`
  if (typeof message.content !== "string") {
    if (!Array.isArray(message.content)) return `${at}.content is ${show(message.content)}; allowed: a string or parts`
    for (const [nth, part] of message.content.entries()) {
      const problem = ofPart(part, `${at}.content[${nth}]`)
      if (problem !== undefined) return problem
    }
  }
  if (message.role === "tool" && !isText(message.toolCallId)) {
    return `${at}.toolCallId is ${show(message.toolCallId)}; allowed: the id of a tool call`
  }
  if (message.role === "assistant" && message.toolCalls !== undefined) {
    if (!Array.isArray(message.toolCalls)) return `${at}.toolCalls is ${show(message.toolCalls)}; allowed: an array`
    const bad = message.toolCalls.findIndex((call) => !isText(call?.id) || !isText(call?.name))
    if (bad !== -1) return `${at}.toolCalls[${bad}] has no id or no name; a tool call is { id, name, arguments }`
    const unwritable = message.toolCalls.findIndex((call) => !isJson(call.arguments))
    if (unwritable !== -1) return noJson(`${at}.toolCalls[${unwritable}].arguments`)
  }
  return undefined
}

/** Every answer of a tool belongs to a call that stands before it. */
const ofToolMessages = (messages: ReadonlyArray<Message>): string | undefined => {
  const called = new Set<string>()
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") for (const { id } of message.toolCalls ?? []) called.add(id)
    if (message.role === "tool" && !called.has(message.toolCallId)) {
      return `messages[${index}].toolCallId is ${show(message.toolCallId)}; no tool call before it has that id`
    }
  }
  return undefined
}

const ofMessages = ({ messages }: ChatRequest): string | undefined => {
  if (!Array.isArray(messages) || messages.length === 0) {
    return `messages is ${messages === undefined ? "missing" : "empty or no array"}; give at least one message`
  }
  for (const [index, message] of messages.entries()) {
    const problem = ofMessage(message, index)
    if (problem !== undefined) return problem
  }
  return ofToolMessages(messages)
}

const ofNumbers = ({ maxTokens, temperature, topP, seed }: ChatRequest): string | undefined => {
  const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)
  if (maxTokens !== undefined && !isWholeAbove0(maxTokens)) {
    return `maxTokens is ${show(maxTokens)}; allowed: a whole number above 0`
  }
  if (temperature !== undefined && !(isNumber(temperature) && temperature >= 0)) {
    return `temperature is ${show(temperature)}; allowed: a number from 0`
  }
  if (topP !== undefined && !(isNumber(topP) && topP > 0 && topP <= 1)) {
    return `topP is ${show(topP)}; allowed: a number above 0, at most 1`
  }
  return seed !== undefined && !Number.isSafeInteger(seed)
    ? `seed is ${show(seed)}; allowed: a whole number`
    : undefined
}

const ofTexts = ({ system, stop, metadata }: ChatRequest): string | undefined => {
  if (system !== undefined && typeof system !== "string") return "system is no string"
  if (stop !== undefined && !(Array.isArray(stop) && stop.every((text) => typeof text === "string"))) {
    return "stop is no array of strings"
  }
  return metadata !== undefined &&
    !(isObject(metadata) && Object.values(metadata).every((it) => typeof it === "string"))
    ? "metadata is no object from names to strings"
    : undefined
}

const ofShape = (shape: Shape, at: string): string | undefined => {
  if (!isObject(shape)) return `${at} is ${show(shape)}; allowed: a JSON schema or an Effect Schema`
  const schema = jsonSchemaOf(shape)
  if (Either.isLeft(schema)) return `${at} has no JSON schema: ${schema.left}`
  return isJson(schema.right) ? undefined : noJson(at)
}

/** Whether a value can be written as JSON. A circle, a bigint, and what is nested too deep cannot. */
const isJson = (value: unknown): boolean => Either.isRight(Either.try(() => JSON.stringify(value)))

const noJson = (at: string): string =>
  `${at} cannot be written as JSON; allowed: objects, arrays, texts, numbers, true, false and null, no circles`

const ofExtra = ({ extra }: ChatRequest): string | undefined => {
  if (extra === undefined) return undefined
  if (!isObject(extra)) return `extra is ${show(extra)}; allowed: an object`
  return isJson(extra) ? undefined : noJson("extra")
}

const ofTools = ({ tools, toolChoice, parallelToolCalls }: ChatRequest): string | undefined => {
  if (tools !== undefined && !Array.isArray(tools)) return `tools is ${show(tools)}; allowed: an array`
  const names = new Set<string>()
  for (const [index, tool] of (tools ?? []).entries()) {
    const at = `tools[${index}]`
    if (!isText(tool?.name) || !/^[\w-]{1,64}$/.test(tool.name)) {
      return `${at}.name is ${show(tool?.name)}; allowed: letters, digits, _ and -, at most 64`
    }
    if (names.has(tool.name)) return `${at}.name is ${show(tool.name)}; allowed: each name once`
    names.add(tool.name)
    if (tool.parameters === undefined) continue
    const problem = ofShape(tool.parameters, `${at}.parameters`)
    if (problem !== undefined) return problem
  }
  if (parallelToolCalls !== undefined && typeof parallelToolCalls !== "boolean") {
    return `parallelToolCalls is ${show(parallelToolCalls)}; allowed: true, false`
  }
  if (toolChoice === undefined || toolChoice === "auto" || toolChoice === "none") return undefined
  const isKnown = toolChoice === "required" ? names.size > 0 : names.has(toolChoice?.name)
  return isKnown
    ? undefined
    : `toolChoice is ${typeof toolChoice === "object" ? show(toolChoice?.name) : show(toolChoice)}; allowed: "auto", "none", and with tools "required" or the { name } of one`
}

const efforts: ReadonlyArray<unknown> = [undefined, "none", "minimal", "low", "medium", "high"]

const ofForms = ({ responseFormat, reasoning }: ChatRequest): string | undefined => {
  if (reasoning !== undefined && !efforts.includes(reasoning?.effort)) {
    return `reasoning.effort is ${show(reasoning?.effort)}; allowed: "none", "minimal", "low", "medium", "high"`
  }
  if (reasoning?.maxTokens !== undefined && !isWholeAbove0(reasoning.maxTokens)) {
    return `reasoning.maxTokens is ${show(reasoning.maxTokens)}; allowed: a whole number above 0`
  }
  if (responseFormat === undefined || responseFormat === "text" || responseFormat === "json") return undefined
  return isObject(responseFormat)
    ? ofShape(responseFormat.schema, "responseFormat.schema")
    : `responseFormat is ${show(responseFormat)}; allowed: "text", "json" or { schema }`
}

const checks = [ofMessages, ofTexts, ofNumbers, ofTools, ofForms, ofExtra]
