/** OpenAI's chat completions as a fault server speaks them. */
import { openAiError } from "./FaultErrors.ts"
import { type FaultWire, type Frame, jsonFrames, usageOf, type WireAnswer } from "./FaultWire.ts"

const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`

const done = "data: [DONE]\n\n"

const created = 1_795_996_800

const usageBody = (answer: WireAnswer, words: number) => {
  const usage = usageOf(answer, words)
  return usage === null
    ? undefined
    : {
        prompt_tokens: usage.inputTokens,
        completion_tokens: usage.outputTokens,
        total_tokens: usage.inputTokens + usage.outputTokens
      }
}

const finishReason = ({ finishReason, toolCalls }: WireAnswer): string | null =>
  finishReason === undefined ? (toolCalls.length > 0 ? "tool_calls" : "stop") : finishReason

const stream = function* (answer: WireAnswer): Iterable<Frame> {
  const chunk = (choices: ReadonlyArray<unknown>, usage: unknown = null): string =>
    event({
      id: answer.id,
      object: "chat.completion.chunk",
      created,
      model: answer.model,
      choices,
      ...(answer.includeUsage ? { usage } : {})
    })
  const frame = (kind: Frame["kind"], delta: unknown, finish_reason: string | null = null): Frame => ({
    kind,
    data: chunk([{ index: 0, delta, finish_reason }])
  })

  yield frame("opening", { role: "assistant", content: "", refusal: null })
  if (answer.reasoning !== undefined) yield frame("rest", { reasoning_content: answer.reasoning })
  let words = 0
  for (const content of answer.words) {
    words++
    yield frame("word", { content })
  }
  for (const [index, { id, name, json }] of answer.toolCalls.entries()) {
    yield frame("rest", { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] })
    yield frame("rest", { tool_calls: [{ index, function: { arguments: json } }] })
  }
  const finish = finishReason(answer)
  if (finish !== null) yield frame("rest", {}, finish)
  const usage = usageBody(answer, words)
  if (answer.includeUsage && usage !== undefined) yield { kind: "rest", data: chunk([], usage) }
  if (answer.terminator) yield { kind: "rest", data: done }
}

const message = (answer: WireAnswer, content: string) => ({
  role: "assistant",
  ...(answer.reasoning === undefined ? {} : { reasoning_content: answer.reasoning }),
  content,
  refusal: null,
  ...(answer.toolCalls.length === 0
    ? {}
    : {
        tool_calls: answer.toolCalls.map(({ id, name, json }) => ({
          id,
          type: "function",
          function: { name, arguments: json }
        }))
      })
})

const json = (answer: WireAnswer): Iterable<Frame> =>
  jsonFrames(answer.words, (text = "", words) => ({
    id: answer.id,
    object: "chat.completion",
    created,
    model: answer.model,
    choices: [{ index: 0, message: message(answer, text), logprobs: null, finish_reason: finishReason(answer) }],
    usage: usageBody(answer, words)
  }))

/** Chat completions: a chunk of `choices` for each event, usage in a chunk of its own if asked for, then `[DONE]`. */
export const openAiWire: FaultWire = {
  name: "openai-chat",
  path: "/chat/completions",
  headers: (id) => ({ "x-request-id": `req_${id}` }),
  stream,
  json,
  error: openAiError,
  errorEvents: (error, terminator) => [event(openAiError(500, error)), ...(terminator ? [done] : [])],
  keepAlive: ": keep-alive\n\n"
}
