/** What came back from a vendor: the head of a response, and its body read as JSON. */
import type { HttpClientError } from "@effect/platform/HttpClientError"
import type { HttpClientResponse } from "@effect/platform/HttpClientResponse"
import { Effect, Either, Stream } from "effect"
import { EmptyResponseError, InvalidResponseError, type ProviderError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import * as Body from "./Body.ts"
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
  /** How much is read of the body of a success, in bytes. */
  readonly maxBytes: number
  /** What a body of the vendor's wire says of usage. Default: nothing. */
  readonly usageIn?: UsageIn | undefined
}

/** Finds the usage in a body, whatever the body is. */
export type UsageIn = (json: unknown) => Usage | undefined

/** A success: a body that is JSON and no error. */
export interface Reply extends Head {
  readonly json: unknown
}

/** How much of a failed response is read, in bytes: 16 KiB. */
export const maxErrorBytes = 16_384

/** How much of a success is read unless it is said, in bytes: 64 MiB. */
export const maxSuccessBytes = 67_108_864

/** Whom a response is from, and what is known of it before it comes. */
export type Origin = Pick<Head, "provider" | "redact" | "nowMillis" | "maxBytes" | "usageIn">

/** The head of a response. */
export const headOf = (origin: Origin, response: HttpClientResponse): Head => {
  const { headers, status } = response
  return { ...origin, headers, status, requestId: HttpFailure.requestIdOf(headers, origin.redact) }
}

/** The head with the id of the exchange that the body says, where no header does. */
export const named = <A extends Head>(head: A, requestId: string | undefined): A =>
  head.requestId !== undefined ? head : { ...head, requestId: HttpFailure.shownId(requestId, head.redact) }

/** The head with what the vendor says that it used, for the answer or its error to tell; as it was if it says nothing. */
export const billed = <A extends Head>(head: A, usage: Usage | undefined): A =>
  usage === undefined ? head : { ...head, usage }

/** Whether the status is a 2xx. */
export const isSuccess = ({ status }: Pick<Head, "status">): boolean => status >= 200 && status < 300

/** Reads the body of a success. One that is longer than the head allows is left, and its request aborted. */
export const read = (head: Head, response: HttpClientResponse): Effect.Effect<Reply, ProviderError> =>
  Effect.suspend(() => {
    const body = Body.make(head.maxBytes)
    return Effect.matchEffect(gathered(body, response), {
      onFailure: (error) => (error.reason === "EmptyBody" ? ofText(head, "") : Effect.fail(unreadable(head, error))),
      onSuccess: () => ofBody(head, body)
    })
  })

/** The reply that a gathered body is, or the error that it describes. */
export const ofBody = (head: Head, body: Body.Body): Either.Either<Reply, ProviderError> =>
  body.isOverfull() ? Either.left(tooLarge(head)) : ofText(head, body.text())

/** The error that a response with another status is, by what its body says. */
export const failure = (head: Head, response: HttpClientResponse): Effect.Effect<never, ProviderError> =>
  Effect.flatMap(capped(response), (body) => Effect.fail(HttpFailure.fromResponse({ ...head, body })))

/** The fields of an error that a response is; `what`, redacted and on one line, follows the provider's name. */
export const fieldsOf = (head: Head, what: string) => ({
  provider: head.provider,
  message: `${head.provider}: ${Redaction.oneLine(head.redact(what))}`,
  statusCode: head.status,
  requestId: head.requestId,
  usage: head.usage
})

/** The reply that a body is, or the error that it describes. */
export const ofText = (head: Head, text: string): Either.Either<Reply, ProviderError> => {
  const { status } = head
  if (text.trim() === "") {
    return Either.left(new EmptyResponseError(fieldsOf(head, `HTTP ${status} with an empty body`)))
  }
  return Either.match(Json.parse(text), {
    onLeft: () => {
      const beginning = text.slice(0, maxErrorBytes)
      const page = /^\s*</.test(beginning) ? `: ${ErrorBody.parse(beginning).message}` : ""
      return Either.left(new InvalidResponseError(fieldsOf(head, `HTTP ${status} with a body that is no JSON${page}`)))
    },
    onRight: (json) => {
      const told = billed(head, head.usageIn?.(json))
      return holdsError(json)
        ? Either.left(HttpFailure.inBand({ ...told, error: json }))
        : Either.right({ ...told, json })
    }
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
    const body = Body.make(maxErrorBytes)
    return gathered(body, response).pipe(
      Effect.timeout("5 seconds"),
      Effect.ignore,
      Effect.map(() => body.text())
    )
  })

/** What is left of a body that is too long is not read: to leave its stream ends the request. */
const gathered = (body: Body.Body, response: HttpClientResponse): Effect.Effect<void, HttpClientError> =>
  Stream.runForEachWhile(response.stream, (bytes) => Effect.succeed(body.take(bytes)))

/** The error that a success is whose body is longer than the head allows. */
export const tooLarge = (head: Head): ProviderError =>
  new InvalidResponseError(
    fieldsOf(head, `HTTP ${head.status} with a body of more than ${head.maxBytes} bytes (maxResponseBytes)`)
  )

const unreadable = (head: Head, error: HttpClientError): ProviderError => {
  const broken = Rejection.fromTransport(head.provider, error.cause, head.redact)
  if (broken !== undefined) return broken
  const { provider, message, statusCode } = fieldsOf(head, `HTTP ${head.status} with a body that cannot be read`)
  return new InvalidResponseError({ provider, message, statusCode, cause: Rejection.trace(error.cause, head.redact) })
}
