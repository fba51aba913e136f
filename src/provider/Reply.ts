/** What came back from a vendor: the head of a response, and its body read as JSON. */
import type { HttpClientError } from "@effect/platform/HttpClientError"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { Effect, Either, Stream } from "effect"
import { EmptyResponseError, InvalidResponseError, type ProviderError } from "../model/LlmError.ts"
import * as ErrorBody from "./ErrorBody.ts"
import * as HttpFailure from "./HttpFailure.ts"
import * as Json from "./Json.ts"
import * as Redaction from "./Redaction.ts"
import * as Rejection from "./Rejection.ts"

/** What is known of a response before its body is read. */
export interface Head extends HttpFailure.Context {
  /** The HTTP status. */
  readonly status: number
  /** The vendor's id of the exchange. */
  readonly requestId: string | undefined
}

/** A success: a body that is JSON and no error. */
export interface Reply extends Head {
  readonly json: unknown
}

/** How much of a failed response is read, in bytes: 16 KiB. */
export const maxErrorBytes = 16_384

/** The head of a response; `origin` says whom it is from. */
export const headOf = (
  origin: Pick<HttpFailure.Context, "provider" | "redact" | "nowMillis">,
  response: HttpClientResponse
): Head => {
  const { headers, status } = response
  const requestId = HttpFailure.requestIdOf(headers)
  return { ...origin, headers, status, requestId: requestId && origin.redact(requestId) }
}

/** The head with the id of the exchange that the body says, where no header does. */
export const named = <A extends Head>(head: A, requestId: string | undefined): A =>
  requestId === undefined || head.requestId !== undefined ? head : { ...head, requestId: head.redact(requestId) }

/** Whether the status is a 2xx. */
export const isSuccess = ({ status }: Pick<Head, "status">): boolean => status >= 200 && status < 300

/** Reads the body of a success. */
export const read = (head: Head, response: HttpClientResponse): Effect.Effect<Reply, ProviderError> =>
  Effect.matchEffect(response.text, {
    onFailure: (error) => Effect.fail(unreadable(head, error)),
    onSuccess: (text) => ofText(head, text)
  })

/** The error that a response with another status is, by what its body says. */
export const failure = (head: Head, response: HttpClientResponse): Effect.Effect<never, ProviderError> =>
  Effect.flatMap(capped(response), (body) => Effect.fail(HttpFailure.fromResponse({ ...head, body })))

/** The fields of an error that a response is; `what`, redacted and on one line, follows the provider's name. */
export const fieldsOf = (head: Head, what: string) => ({
  provider: head.provider,
  message: `${head.provider}: ${Redaction.oneLine(head.redact(what))}`,
  statusCode: head.status,
  requestId: head.requestId
})

/** The reply that a body is, or the error that it describes. */
export const ofText = (head: Head, text: string): Either.Either<Reply, ProviderError> => {
  const { status } = head
  if (text.trim() === "") {
    return Either.left(new EmptyResponseError(fieldsOf(head, `HTTP ${status} with an empty body`)))
  }
  return Either.match(Json.parse(text), {
    onLeft: () => {
      const page = /^\s*</.test(text) ? `: ${ErrorBody.parse(text).message}` : ""
      return Either.left(new InvalidResponseError(fieldsOf(head, `HTTP ${status} with a body that is no JSON${page}`)))
    },
    onRight: (json) =>
      holdsError(json) ? Either.left(HttpFailure.inBand({ ...head, error: json })) : Either.right({ ...head, json })
  })
}

/** OpenRouter, xAI and Gemini report errors under status 200, as an object, a text, or an array with the object. */
export const holdsError = (json: unknown): boolean => {
  const root = Array.isArray(json) ? json[0] : json
  const error = Json.at(root, "error")
  const isSet = Json.isRecord(error) ? Object.keys(error).length > 0 : Json.text(error) !== undefined
  return isSet || Json.at(root, "type") === "error" || Json.at(root, "object") === "error"
}

/**
 * The first 16 KiB of a failed response. Where the body breaks off or does not come within 5 seconds, the status and
 * what came decide: they say more than the break.
 */
const capped = (response: HttpClientResponse): Effect.Effect<string> =>
  Effect.suspend(() => {
    const bytes = new Uint8Array(maxErrorBytes)
    let size = 0
    const isFull = (chunk: Uint8Array): boolean => {
      const part = chunk.subarray(0, maxErrorBytes - size)
      bytes.set(part, size)
      size += part.length
      return size === maxErrorBytes
    }
    return response.stream.pipe(
      Stream.takeUntil(isFull),
      Stream.runDrain,
      Effect.timeout("5 seconds"),
      Effect.ignore,
      Effect.map(() => new TextDecoder().decode(bytes.subarray(0, size)))
    )
  })

const unreadable = (head: Head, error: HttpClientError): ProviderError => {
  const broken = Rejection.fromTransport(head.provider, error.cause, head.redact)
  if (broken !== undefined) return broken
  const { provider, message, statusCode } = fieldsOf(head, `HTTP ${head.status} with a body that cannot be read`)
  return new InvalidResponseError({ provider, message, statusCode, cause: Rejection.trace(error.cause, head.redact) })
}
