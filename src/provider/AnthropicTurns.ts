/** A conversation as Anthropic's Messages have it: turns of user and assistant, every call answered in the next turn. */
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ToolCall } from "../model/ChatResponse.ts"
import { type AssistantMessage, partsOf, type ToolMessage, textOf } from "../model/Message.ts"
import * as AnthropicContent from "./AnthropicContent.ts"
import * as AnthropicThoughts from "./AnthropicThoughts.ts"
import * as Json from "./Json.ts"
import type { Notes } from "./Notes.ts"
import * as ToolNames from "./ToolNames.ts"

type Block = AnthropicContent.Block

/** What one side says until the other does. */
export interface Turn {
  readonly role: "user" | "assistant"
  /** Results of tools, which stand first. */
  readonly results: Array<Block>
  readonly blocks: Array<Block>
}

/** A call that has no result yet. */
interface Awaited {
  readonly id: string
  readonly sentId: string
}

/** A conversation on its way. */
interface Draft {
  readonly turns: Array<Turn>
  readonly usedIds: Set<string>
  awaited: ReadonlyArray<Awaited>
}

/** The turns of a conversation, without its system messages. `family` says whose thoughts may be in it. */
export const make = ({ messages }: ChatRequest, family: string, notes: Notes): ReadonlyArray<Turn> => {
  const draft: Draft = { turns: [], usedIds: new Set(), awaited: [] }
  for (const message of messages) {
    if (message.role === "user") add(draft, "user", AnthropicContent.make(message.content, notes))
    else if (message.role === "assistant") addAnswer(draft, message, family, notes)
    else if (message.role === "tool") addResult(draft, message, notes)
  }
  settle(draft, notes)
  trimEnd(draft.turns)
  return draft.turns
}

/** The turns as they are sent. */
export const written = (turns: ReadonlyArray<Turn>): ReadonlyArray<object> =>
  turns.map(({ role, results, blocks }) => ({ role, content: AnthropicContent.shortened([...results, ...blocks]) }))

/** Whether the model may think: an answer that it goes on from, or whose calls it gets the results of, begins with a thought. */
export const mayThink = (turns: ReadonlyArray<Turn>): boolean => {
  const answer = turns.findLast(({ role }) => role === "assistant")
  const isUnderWay = turns.at(-1)?.role === "assistant" || (turns.at(-1)?.results.length ?? 0) > 0
  return !isUnderWay || AnthropicThoughts.isThought(answer?.blocks[0])
}

const turnOf = (draft: Draft, role: Turn["role"]): Turn => {
  const last = draft.turns.at(-1)
  if (last?.role === role) return last
  const turn: Turn = { role, results: [], blocks: [] }
  draft.turns.push(turn)
  return turn
}

const add = (draft: Draft, role: Turn["role"], blocks: ReadonlyArray<Block>): void => {
  if (blocks.length > 0) turnOf(draft, role).blocks.push(...blocks)
}

const addAnswer = (draft: Draft, message: AssistantMessage, family: string, notes: Notes): void => {
  const { content, toolCalls = [], opaque } = message
  const thoughts = opaque === undefined ? [] : AnthropicThoughts.sentBack(opaque, family)
  if (thoughts === undefined) notes.changes.add("messages lost the reasoning that only another model can read.")
  if (partsOf(content).some(({ type }) => type !== "text")) {
    notes.changes.add("messages lost the images and files of the assistant: the vendor takes none there.")
  }
  const calls = toolCalls.map((call) => callOf(draft, call, notes))
  const blocks = AnthropicThoughts.arrange(thoughts ?? [], textOf(content), calls)
  if (blocks.length > 0 && draft.turns.at(-1)?.role === "user") settle(draft, notes)
  add(draft, "assistant", blocks)
  draft.awaited = [...draft.awaited, ...calls.map(({ id, block }) => ({ id, sentId: String(block.id) }))]
}

const callOf = (draft: Draft, call: ToolCall, notes: Notes): AnthropicThoughts.Call => {
  const block = { type: "tool_use", id: freeId(draft, call.id), name: nameOf(call, notes), input: inputOf(call, notes) }
  return { id: call.id, block }
}

/** Models call tools by names that no vendor takes back, such as `functions.search`. */
const nameOf = ({ name }: ToolCall, notes: Notes): string => {
  const sent = ToolNames.plain(name)
  if (sent !== name) notes.changes.add(`messages call the tool ${name} ${sent}: the vendor takes no such name.`)
  return sent
}

const inputOf = ({ name, arguments: given, rawArguments }: ToolCall, notes: Notes): object => {
  if (Json.isRecord(given)) return given
  if (given === undefined && rawArguments === undefined) return {}
  notes.changes.add(`messages lost the arguments of a call of ${name}: they are no JSON object.`)
  return {}
}

/** Letters, digits, `_` and `-` are all that the wire takes in an id. */
const plain = (text: string): string => text.replace(/[^\w-]/g, "_")

/** An id that no call before has: vendors number the calls of every answer anew. */
const freeId = ({ usedIds }: Draft, id: string): string => {
  const wanted = plain(id)
  let free = wanted
  for (let count = 2; usedIds.has(free); count++) free = `${wanted}_${count}`
  usedIds.add(free)
  return free
}

const addResult = (draft: Draft, message: ToolMessage, notes: Notes): void => {
  const { toolCallId, content, isError = false } = message
  const call = draft.awaited.find(({ id }) => id === toolCallId)
  const blocks = AnthropicContent.make(content, notes)
  if (call === undefined) {
    notes.changes.add("messages have late results as words of the user: the vendor takes them only next to their call.")
    add(draft, "user", [...AnthropicContent.textBlocks(`Result of the tool call ${toolCallId}:`), ...blocks])
  } else {
    draft.awaited = draft.awaited.filter((it) => it !== call)
    const { results, blocks: beside } = turnOf(draft, "user")
    // Beside the text of an error nothing is taken.
    const isWithin = ({ type }: Block) => !isError || type === "text"
    results.push(resultOf(call.sentId, blocks.filter(isWithin), isError))
    beside.push(...blocks.filter((block) => !isWithin(block)))
  }
}

const resultOf = (id: string, blocks: ReadonlyArray<Block>, isError: boolean): Block => {
  // An error that says nothing is refused.
  const said = blocks.length > 0 || !isError ? blocks : AnthropicContent.textBlocks("The tool failed.")
  return {
    type: "tool_result",
    tool_use_id: id,
    ...(said.length === 0 ? {} : { content: AnthropicContent.shortened(said) }),
    ...(isError ? { is_error: true } : {})
  }
}

/** Calls that have no result in the next turn get one that says so. */
const settle = (draft: Draft, notes: Notes): void => {
  if (draft.awaited.length === 0) return
  notes.changes.add("messages have stand-ins for results of tools: the vendor takes no call without one.")
  const { results } = turnOf(draft, "user")
  for (const { sentId } of draft.awaited) {
    results.push(resultOf(sentId, AnthropicContent.textBlocks("There is no result."), true))
  }
  draft.awaited = []
}

/** The wire refuses blanks at the end of an answer that is to be gone on from. */
const trimEnd = (turns: ReadonlyArray<Turn>): void => {
  const last = turns.at(-1)
  const block = last?.blocks.at(-1)
  if (last?.role !== "assistant" || block?.type !== "text") return
  last.blocks[last.blocks.length - 1] = { ...block, text: String(block.text).trimEnd() }
}
