/** A chat as a job for a provider: in one piece or streamed, free text or an object. */
import { Effect, Either } from "effect"
import * as Capabilities from "../model/Capabilities.ts"
import type { ChatEvent } from "../model/ChatEvent.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse, ProviderAnswer } from "../model/ChatResponse.ts"
import { ContextLengthError, InvalidRequestError, inOwnWords, type ProviderError } from "../model/LlmError.ts"
import type { Provider } from "../provider/Provider.ts"
import { checkAnswer } from "./AnswerCheck.ts"
import * as Attempt from "./Attempt.ts"
import * as AttemptEnd from "./AttemptEnd.ts"
import * as Call from "./Call.ts"
import * as CallEnd from "./CallEnd.ts"
import * as CallStream from "./CallStream.ts"
import * as Cost from "./Cost.ts"
import type { AttemptTime, Job, Stages } from "./Stages.ts"
import * as Story from "./Story.ts"

/** Looks at an answer once more before it counts. */
export type Accept = (provider: string, answer: ProviderAnswer) => Either.Either<ProviderAnswer, ProviderError>

/** The job that a request is. */
export const make = (request: ChatRequest): Job<ChatResponse> => ({
  obstacle: obstacleTo(request),
  hasToolResults: () => hasToolResults(request),
  tokens: (estimate) => (estimate ?? Capabilities.estimateTokens)(request),
  expected: () => Cost.expected(request),
  mayRetry: () => true,
  send: (stages, call, begun, time) => send(request, undefined, stages, call, begun, time)
})

/** Whether a request goes on from what tools have done. */
export const hasToolResults = ({ messages }: ChatRequest): boolean => messages.some(({ role }) => role === "tool")

/** Why a provider cannot take a request; `undefined` if it can. */
export const obstacleTo =
  (request: ChatRequest) =>
  ({ name, capabilities }: Provider): ProviderError | undefined =>
    capabilities === undefined ? undefined : obstacleError(name, Capabilities.obstacle(capabilities, request))

const obstacleError = (name: string, obstacle: Capabilities.Obstacle | undefined): ProviderError | undefined => {
  if (obstacle === undefined) return undefined
  const fields = { provider: name, message: `${name}: ${obstacle.what}` }
  return inOwnWords(
    obstacle.isTooLong ? new ContextLengthError(fields) : new InvalidRequestError({ ...fields, reason: "capability" })
  )
}

/** One request to the provider. Runs within a `suspend`, so that what is thrown is a defect. */
export const send = (
  request: ChatRequest,
  accept: Accept | undefined,
  stages: Stages,
  call: Call.Call,
  begun: Call.Begun,
  time: AttemptTime
): Effect.Effect<ChatResponse, ProviderError> => {
  const { provider } = stages
  const { name } = provider
  // A repair asks more than the job does.
  if (accept !== undefined) begun.expected = () => Cost.expected(request)
  const isStreamed = canStream(provider) && (call.stream !== undefined || time.limits.areOfStreams)
  const reading = isStreamed || call.stream !== undefined ? Attempt.newReading(begun) : undefined

  const failed = (failure: ProviderError) => {
    const reason = CallEnd.ownError(call, name, failure)
    const error = reading === undefined ? reason : withText(call, name, reading, reason)
    return AttemptEnd.failed(stages, call, begun, error)
  }

  const answered = (handedOver: ProviderAnswer | string) => {
    const checked = checkAnswer(name, handedOver)
    const answer = accept === undefined ? checked : Either.flatMap(checked, (it) => accept(name, it))
    if (Either.isLeft(answer)) return failed(answer.left)
    if (!Story.wins(begun)) return Effect.interrupt
    const nowMillis = Call.nowOf(call)
    const start =
      call.stream === undefined || reading === undefined
        ? []
        : Attempt.withStart(call, call.stream, provider, reading, [])
    AttemptEnd.succeeded(stages, call, begun, answer.right, nowMillis)
    const response = CallEnd.respond(call, provider, answer.right, nowMillis)
    if (call.stream === undefined) return Effect.succeed(response)
    return Effect.as(Attempt.handOut(call.stream, [...start, ...restOf(response, isStreamed)]), response)
  }

  return reading !== undefined && isStreamed
    ? Effect.matchEffect(Attempt.streamed(stages, request, call, time, reading), {
        onFailure: failed,
        onSuccess: () => answered(reading.transcript.answer)
      })
    : Effect.matchEffect(Attempt.inOnePiece(stages, request, call, time), {
        onFailure: failed,
        onSuccess: answered
      })
}

const canStream = ({ stream, capabilities }: Provider): boolean =>
  stream !== undefined && capabilities?.streaming !== false

/** The failure of an attempt, with the text that had come: what the caller has been handed makes it a broken stream. */
const withText = (
  call: Call.Call,
  provider: string,
  reading: Attempt.Reading,
  reason: ProviderError
): ProviderError => {
  const { text } = reading.transcript
  if (call.stream !== undefined && reading.isCommitted) return CallStream.breakOff(call.stream, provider, reason, text)
  return reason._tag === "StreamInterruptedError" && text !== "" ? CallStream.interrupted(reason, text) : reason
}

/** Hands a whole answer out that comes from no provider: kept from an earlier call, or a fallback. */
export const present = (call: Call.Call, response: ChatResponse): Effect.Effect<ChatResponse> => {
  if (call.stream === undefined) return Effect.succeed(response)
  const started = Attempt.commit(call, call.stream, response.provider, response.model)
  return Effect.as(Attempt.handOut(call.stream, [...started, ...restOf(response, false)]), response)
}

/** What of a whole answer the caller has not been handed yet. */
const restOf = (response: ChatResponse, wasStreamed: boolean): ReadonlyArray<ChatEvent> => {
  const { text, reasoning, toolCalls } = response
  const calls = toolCalls.map((toolCall): ChatEvent => ({ _tag: "ToolCall", ...toolCall }))
  if (wasStreamed) return calls
  return [
    ...(reasoning === undefined || reasoning === "" ? [] : [{ _tag: "ReasoningDelta", text: reasoning } as const]),
    ...(text === "" ? [] : [{ _tag: "TextDelta", text } as const]),
    ...calls
  ]
}
