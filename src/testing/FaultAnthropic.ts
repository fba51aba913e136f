/** Anthropic's Messages as a fault server speaks them. */
import { anthropicError } from "./FaultErrors.ts"
import { type FaultWire, type Frame, jsonFrames, usageOf, type WireAnswer } from "./FaultWire.ts"

const eventOf = (type: string, data: unknown): string => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`

const event = (type: string, fields: object = {}): string => eventOf(type, { type, ...fields })

const rest = (type: string, fields: object = {}): Frame => ({ kind: "rest", data: event(type, fields) })

const ping = event("ping")

const signature = "ZmF1bHQ="

const stopReason = ({ finishReason, toolCalls }: WireAnswer): string | null =>
  finishReason === undefined ? (toolCalls.length > 0 ? "tool_use" : "end_turn") : finishReason

const message = (answer: WireAnswer, content: ReadonlyArray<unknown>, stopReason: string | null, written: number) => {
  const usage = usageOf(answer, written)
  return {
    id: answer.id,
    type: "message",
    role: "assistant",
    model: answer.model,
    content,
    stop_reason: stopReason,
    stop_sequence: null,
    ...(usage === null ? {} : { usage: usageBody(usage.inputTokens, usage.outputTokens) })
  }
}

const usageBody = (input_tokens: number, output_tokens: number) => ({
  input_tokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens
})

const opening = function* (answer: WireAnswer): Iterable<Frame> {
  const { usage = { inputTokens: 12 } } = answer
  // What has been written is told at the end; here it is the first token.
  const begun = { ...answer, usage: usage === null ? null : { inputTokens: usage.inputTokens, outputTokens: 1 } }
  yield { kind: "opening", data: event("message_start", { message: message(begun, [], null, 1) }) }
  yield { kind: "opening", data: ping }
}

const stream = function* (answer: WireAnswer): Iterable<Frame> {
  yield* opening(answer)
  let index = 0
  const start = (block: unknown) => rest("content_block_start", { index, content_block: block })
  const delta = (kind: Frame["kind"], delta: unknown): Frame => ({
    kind,
    data: event("content_block_delta", { index, delta })
  })
  const stop = () => rest("content_block_stop", { index: index++ })

  if (answer.reasoning !== undefined) {
    yield start({ type: "thinking", thinking: "", signature: "" })
    yield delta("rest", { type: "thinking_delta", thinking: answer.reasoning })
    yield delta("rest", { type: "signature_delta", signature })
    yield stop()
  }
  let words = 0
  for (const text of answer.words) {
    if (words++ === 0) yield start({ type: "text", text: "" })
    yield delta("word", { type: "text_delta", text })
  }
  if (words > 0) yield stop()
  for (const { id, name, json } of answer.toolCalls) {
    yield start({ type: "tool_use", id, name, input: {} })
    yield delta("rest", { type: "input_json_delta", partial_json: json })
    yield stop()
  }
  yield* ending(answer, words)
}

const ending = function* (answer: WireAnswer, words: number): Iterable<Frame> {
  const usage = usageOf(answer, words)
  const stop_reason = stopReason(answer)
  if (stop_reason !== null || usage !== null) {
    yield rest("message_delta", {
      delta: { stop_reason, stop_sequence: null },
      ...(usage === null ? {} : { usage: { output_tokens: usage.outputTokens } })
    })
  }
  if (answer.terminator) yield rest("message_stop")
}

const json = (answer: WireAnswer): Iterable<Frame> =>
  jsonFrames(answer.words, (text, words) => {
    const content = [
      ...(answer.reasoning === undefined ? [] : [{ type: "thinking", thinking: answer.reasoning, signature }]),
      ...(text === undefined ? [] : [{ type: "text", text }]),
      ...answer.toolCalls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input }))
    ]
    return message(answer, content, stopReason(answer), words)
  })

/** Messages: named events around blocks of content, cumulative usage in `message_delta`, then `message_stop`. */
export const anthropicWire: FaultWire = {
  name: "anthropic-messages",
  path: "/messages",
  headers: (id) => ({ "request-id": `req_${id}` }),
  stream,
  json,
  error: anthropicError,
  errorEvents: (error) => [eventOf("error", anthropicError(500, error))],
  keepAlive: ping
}
