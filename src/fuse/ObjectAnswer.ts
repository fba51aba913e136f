/** An object of a schema as a job for a provider. */
import { Effect, Either, ParseResult, Schema } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse, ProviderAnswer } from "../model/ChatResponse.ts"
import { InvalidResponseError, type ProviderError } from "../model/LlmError.ts"
import { usageOf } from "./AnswerCheck.ts"
import * as Chat from "./Chat.ts"
import type { Job } from "./Stages.ts"

/** A response with the object that its text is. */
export interface ObjectResponse<A> extends ChatResponse {
  readonly object: A
}

/** What came instead of the object. */
interface Misfit {
  readonly text: string
  readonly problem: string
}

/** Reads the object that a text is; the left side says why it is none. */
export const reader = <A, I>(schema: Schema.Schema<A, I>): ((text: string) => Either.Either<A, string>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (text) =>
    Either.flatMap(parse(text), (json) =>
      Either.mapLeft(decode(json), (error) => ParseResult.TreeFormatter.formatErrorSync(error))
    )
}

/**
 * The job to answer a request with an object. What does not fit is an `InvalidResponseError` with the reason `"schema"`;
 * with `repair` the same provider is shown once what is wrong. What was cut off at the token limit has the reason
 * `"length"`.
 */
export const make = <A>(
  read: (text: string) => Either.Either<A, string>,
  request: ChatRequest,
  repair: boolean
): Job<ObjectResponse<A>> => {
  /** By provider, for several may be asked at once. */
  const objects = new Map<string, A>()
  const misfits = new Map<string, Misfit>()

  const accept = (provider: string, answer: ProviderAnswer): Either.Either<ProviderAnswer, ProviderError> => {
    const object = read(answer.text)
    if (Either.isRight(object)) {
      objects.set(provider, object.right)
      return Either.right(answer)
    }
    misfits.set(provider, { text: answer.text, problem: object.left })
    const isCut = answer.finishReason === "length"
    return Either.left(
      new InvalidResponseError({
        provider,
        reason: isCut ? "length" : "schema",
        message: `${provider}: ${isCut ? "the object was cut off at the token limit" : "the answer does not fit the schema"}: ${object.left}`,
        requestId: answer.requestId,
        usage: usageOf(answer)
      })
    )
  }

  return {
    obstacle: Chat.obstacleTo(request),
    hasToolResults: () => Chat.hasToolResults(request),
    tokens: Chat.make(request).tokens,
    expected: Chat.make(request).expected,
    mayRetry: (error) => repair || !(error._tag === "InvalidResponseError" && error.reason === "schema"),
    send: (stages, call, begun, time) => {
      const { name } = stages.provider
      const toRepair = misfits.get(name)
      const asked = toRepair === undefined ? request : withRepair(request, toRepair)
      return Effect.map(Chat.send(asked, accept, stages, call, begun, time), (response) => ({
        ...response,
        object: objects.get(name) as A
      }))
    }
  }
}

/** The JSON of a text. */
const parse = (text: string): Either.Either<unknown, string> =>
  Either.mapLeft(
    Either.try((): unknown => JSON.parse(unfenced(text))),
    () => `it is no JSON: ${JSON.stringify(text.slice(0, 80))}`
  )

/** Models like to put JSON in a fence. Cut, not matched: a regular expression would take very long where blanks go on and on. */
const unfenced = (text: string): string => {
  const trimmed = text.trim()
  const lineEnd = trimmed.indexOf("\n")
  if (lineEnd === -1 || !trimmed.endsWith(fence)) return text
  const opening = trimmed.slice(0, lineEnd).trimEnd().toLowerCase()
  return opening === fence || opening === `${fence}json` ? trimmed.slice(lineEnd, -fence.length).trim() : text
}

const fence = "```"

const withRepair = (request: ChatRequest, { text, problem }: Misfit): ChatRequest => ({
  ...request,
  messages: [
    ...request.messages,
    { role: "assistant", content: text },
    {
      role: "user",
      content: `That does not fit the schema: ${problem}\nAnswer again with JSON that fits it, and nothing else.`
    }
  ]
})
