/** OpenAI's chat completions: an answer in chunks. */
import type * as EventReader from "./EventReader.ts"
import * as Json from "./Json.ts"
import * as OpenAiAnswer from "./OpenAiAnswer.ts"
import * as Reply from "./Reply.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** A chunk as far as it is looked at. Nobody promises the shape: what does not fit throws, and is malformed. */
interface StreamChunk {
  readonly choices?: ReadonlyArray<Choice>
  readonly model?: unknown
  readonly usage?: unknown
  readonly error?: unknown
  readonly x_groq?: { readonly error?: unknown; readonly usage?: unknown } | null
  readonly message?: unknown
  readonly detail?: unknown
}

interface Choice {
  readonly index?: unknown
  readonly delta?: Delta | null
  /** Where a proxy sends a whole answer as the one event of a stream. */
  readonly message?: Delta | null
  readonly finish_reason?: unknown
  readonly error?: unknown
}

interface Delta {
  readonly content?: unknown
  readonly reasoning?: unknown
  readonly reasoning_content?: unknown
  readonly refusal?: unknown
  readonly tool_calls?: ReadonlyArray<CallDelta> | null
  /** What old servers have instead of `tool_calls`. */
  readonly function_call?: CallDelta["function"]
}

interface CallDelta {
  readonly index?: unknown
  readonly id?: unknown
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null
}

const take = (draft: StreamDraft.StreamDraft, event: unknown): void => {
  const chunk = event as StreamChunk
  if (Array.isArray(chunk.choices)) takeChoices(draft, chunk, chunk.choices)
  // Without choices it is an error in a shape of its own, or nothing of ours.
  else if (Reply.holdsError(chunk) || chunk.message !== undefined || chunk.detail !== undefined) draft.error = chunk
}

const takeChoices = (draft: StreamDraft.StreamDraft, chunk: StreamChunk, choices: ReadonlyArray<Choice>): void => {
  const choice = choices.length > 1 ? choices.find(isFirst) : choices[0]
  draft.usage = chunk.usage ?? chunk.x_groq?.usage ?? draft.usage
  // OpenRouter and Groq report what broke after the model had begun beside what it had written.
  if ((chunk.error || chunk.x_groq || choice?.error) && takeError(draft, chunk, choice)) return
  if (draft.model === undefined) draft.model = Json.text(chunk.model)
  if (choice === undefined || !isFirst(choice)) return
  const delta = choice.delta ?? choice.message
  if (delta) takeDelta(draft, delta)
  if (choice.finish_reason) draft.stopped ??= Json.text(choice.finish_reason)
}

const isFirst = ({ index }: Choice): boolean => index === 0 || typeof index !== "number"

const takeError = (draft: StreamDraft.StreamDraft, chunk: StreamChunk, choice: Choice | undefined): boolean => {
  const error = [chunk, choice, chunk.x_groq].find(Reply.holdsError)
  draft.error = error === chunk ? chunk : error && { error: error.error }
  return error !== undefined
}

const takeDelta = (draft: StreamDraft.StreamDraft, delta: Delta): void => {
  const { content } = delta
  if (delta.reasoning) StreamDraft.addReasoning(draft, delta.reasoning)
  else if (delta.reasoning_content) StreamDraft.addReasoning(draft, delta.reasoning_content)
  if (typeof content === "string") StreamDraft.addText(draft, content)
  else if (content) takeParts(draft, content)
  if (delta.refusal) StreamDraft.addRefusal(draft, delta.refusal)
  if (delta.tool_calls) for (const call of delta.tool_calls) takeCall(draft, call)
  else if (delta.function_call) takeCall(draft, { index: 0, function: delta.function_call })
}

/** Mistral switches between a text and parts within one stream. */
const takeParts = (draft: StreamDraft.StreamDraft, content: unknown): void => {
  for (const part of Json.list(content)) {
    const type = Json.at(part, "type")
    if (type === "text") StreamDraft.addText(draft, Json.at(part, "text"))
    if (type === "thinking") StreamDraft.addReasoning(draft, OpenAiAnswer.thought(part))
    if (type === "refusal") StreamDraft.addRefusal(draft, Json.at(part, "refusal"))
  }
}

const takeCall = (draft: StreamDraft.StreamDraft, delta: CallDelta): void => {
  const key = Json.number(delta.index)
  const id = Json.text(delta.id)
  const name = Json.text(delta.function?.name)
  const written = delta.function?.arguments
  const call = begunCall(draft.calls, key, id, name) ?? StreamDraft.addCall(draft, key)
  call.id ??= id
  call.name ??= name
  // Servers that parse the arguments themselves send them as an object.
  StreamDraft.addArguments(draft, call, typeof written === "string" ? written : written ? JSON.stringify(written) : "")
}

/**
 * The call that a piece goes on with. Servers number calls from 0 or 1, leave the number out, or number every call 0
 * and tell them apart by id. What has a name, but neither number nor id, is a call of its own.
 */
const begunCall = (
  calls: ReadonlyArray<StreamDraft.Call>,
  key: number | undefined,
  id: string | undefined,
  name: string | undefined
): StreamDraft.Call | undefined => {
  const same = calls.findLast((call) => call.id === id && (key === undefined || call.key === key))
  if (id !== undefined && same !== undefined) return same
  const last = calls.findLast((call) => (key === undefined ? name === undefined : call.key === key))
  return id === undefined || last?.id === undefined ? last : undefined
}

/** How the chunks of this wire are read. */
export const wire: EventReader.Wire = {
  terminator: "[DONE]",
  take,
  usage: OpenAiAnswer.usageOf,
  answer: OpenAiAnswer.read
}
