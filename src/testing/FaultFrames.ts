/** A behaviour as the frames of a body: what is sent, in which pieces, without a thought of time. */
import type { FaultBehaviour } from "./FaultBehaviour.ts"
import { wordsOf } from "./FaultText.ts"
import type { FaultWire, Frame, WireAnswer } from "./FaultWire.ts"

/** What the body depends on beside the behaviour. */
export interface Exchange {
  readonly wire: FaultWire
  readonly id: string
  readonly model: string
  /** Whether a stream was asked for, and usage in it. */
  readonly stream: boolean
  readonly includeUsage: boolean
}

/** What kind of body a behaviour has. */
export const bodyKind = (behaviour: FaultBehaviour, { stream }: Exchange): "text" | "json" | "stream" => {
  if (behaviour.body !== undefined) return typeof behaviour.body === "string" ? "text" : "json"
  const isError = behaviour.error !== undefined || (behaviour.status ?? 200) >= 400
  return isError || !stream || behaviour.json === true ? "json" : "stream"
}

/** The frames of the body, made as they are taken. */
export const framesOf = (behaviour: FaultBehaviour, exchange: Exchange): Iterable<Frame> =>
  bodyKind(behaviour, exchange) === "stream" ? streamFrames(behaviour, exchange) : bodyFrames(behaviour, exchange)

/** Whether a frame comes with the headers, before everything that comes before the content. */
export const isWithHeaders = ({ opening }: FaultBehaviour, frame: { readonly kind: string }): boolean =>
  opening !== "late" && frame.kind === "opening"

/** The frames up to a word, or for 0 those before any content. Returns whether the answer goes on from there. */
export const upTo = function* (
  frames: Iterable<Frame>,
  words: number,
  behaviour: FaultBehaviour
): Generator<Frame, boolean> {
  let count = 0
  for (const frame of frames) {
    if (count >= words && !isWithHeaders(behaviour, frame)) return true
    yield frame
    if (frame.kind === "word") count++
  }
  return false
}

const answerOf = (behaviour: FaultBehaviour, { id, model, includeUsage }: Exchange): WireAnswer => ({
  id,
  model: behaviour.model ?? model,
  words: wordsOf(behaviour),
  reasoning: behaviour.reasoning,
  toolCalls: (behaviour.toolCalls ?? []).map(({ id, name, arguments: input = {} }, index) => ({
    id: id ?? `call_${index + 1}`,
    name,
    input,
    json: typeof input === "string" ? input : JSON.stringify(input)
  })),
  finishReason: behaviour.finishReason,
  usage: behaviour.usage,
  includeUsage,
  terminator: behaviour.terminator ?? true
})

const bodyFrames = (behaviour: FaultBehaviour, exchange: Exchange): Iterable<Frame> => {
  const { body, error, status = 200 } = behaviour
  if (body === undefined && error === undefined && status < 400)
    return exchange.wire.json(answerOf(behaviour, exchange))
  const content = body ?? exchange.wire.error(status, error ?? {})
  return [{ kind: "rest", data: typeof content === "string" ? content : JSON.stringify(content) }]
}

const streamFrames = (behaviour: FaultBehaviour, exchange: Exchange): Iterable<Frame> => {
  const { errorEvent, malformedEvent, inject } = behaviour
  const answer = answerOf(behaviour, exchange)
  let frames = exchange.wire.stream(answer)
  if (errorEvent !== undefined) {
    const events = exchange.wire.errorEvents(errorEvent, answer.terminator)
    frames = withError(upTo(frames, errorEvent.afterWords ?? 0, behaviour), events)
  }
  if (malformedEvent !== undefined) frames = withMalformed(frames, malformedEvent)
  return inject === undefined ? frames : withInjected(frames, inject.beforeEvent, inject.raw)
}

const withError = function* (before: Generator<Frame, boolean>, events: ReadonlyArray<string>): Iterable<Frame> {
  if (yield* before) for (const data of events) yield { kind: "rest", data }
}

const withMalformed = function* (frames: Iterable<Frame>, number: number): Iterable<Frame> {
  let count = 0
  for (const frame of frames) yield ++count === number ? { ...frame, data: halved(frame.data) } : frame
}

const halved = (event: string): string => {
  const start = event.indexOf("data: ") + "data: ".length
  return `${event.slice(0, start + Math.floor((event.length - start) / 2)).trimEnd()}\n\n`
}

const withInjected = function* (frames: Iterable<Frame>, number: number, data: string): Iterable<Frame> {
  let count = 0
  for (const frame of frames) {
    if (++count === number) yield { kind: frame.kind === "opening" ? "opening" : "rest", data }
    yield frame
  }
}
