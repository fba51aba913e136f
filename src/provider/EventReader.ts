/** What the body of a stream says so far, and how it ends: the decisions, without time and effects. */
import type { HttpClientError } from "@effect/platform/HttpClientError"
import { type Chunk, Either } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import {
  EmptyResponseError,
  InvalidResponseError,
  type ProviderError,
  StreamInterruptedError
} from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import * as Answer from "./Answer.ts"
import * as Body from "./Body.ts"
import * as HttpFailure from "./HttpFailure.ts"
import * as Json from "./Json.ts"
import * as Rejection from "./Rejection.ts"
import * as Reply from "./Reply.ts"
import * as Sse from "./Sse.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** What an adapter says about its wire. */
export interface Wire {
  /** What a stream ends with, in words. Default: nothing but its finish reason. */
  readonly terminator?: string | undefined
  /** Takes an event into the draft. What it throws says that the event is malformed. */
  readonly take: (draft: StreamDraft.StreamDraft, event: unknown) => void
  /** The vendor's usage in our words. */
  readonly usage: (usage: unknown) => Usage | undefined
  /** The answer that a whole body is. */
  readonly answer: (reply: Reply.Reply) => Answer.Read
  /** What had to be changed of the request, one sentence each. Default: nothing. */
  readonly changes?: ReadonlyArray<string> | undefined
}

/** How a stream ended: with its last parts, or with what it failed of. */
export type End = Either.Either<ReadonlyArray<StreamPart>, ProviderError>

/** Reads one body. Once the end is known there is nothing more to read. */
export interface EventReader {
  /** The next bytes, cut anywhere. Gives back the end if they bring it. */
  readonly bytes: (chunk: Chunk.Chunk<Uint8Array>) => End | undefined
  /** No more bytes come: the body ended, or it took too long after the finish reason. */
  readonly ended: () => End
  /** The connection broke. */
  readonly broken: (error: HttpClientError) => End
  /** The parts that have come since the last call. */
  readonly takeParts: () => ReadonlyArray<StreamPart>
  /** Whether the model has said why it stopped: only usage and the terminator may follow. */
  readonly isFinished: () => boolean
  /** Whether the terminator has come: nothing may follow. */
  readonly isOver: () => boolean
}

/** A reader for the body that follows a head. */
export const make = (wire: Wire, head: Reply.Head): EventReader => {
  const draft = StreamDraft.make()
  const decoder = Sse.decoder((data, name) => {
    const isOpen = !draft.isOver && draft.error === undefined && draft.broken === undefined
    if (isOpen) takeEvent(wire, draft, data, name)
  })
  const isFinished = (): boolean => draft.stopped !== undefined
  /** The body, if it is known to be no stream by how it begins. */
  let whole: Body.Body | undefined
  let isBegun = false
  const take = (bytes: Uint8Array): void => {
    if (!isBegun && !isStream(head)) {
      const first = bytes.find((byte) => byte > 0x20)
      isBegun = first !== undefined
      if (first !== undefined && wholeBegins.includes(first)) whole = Body.make(head.maxBytes)
    }
    if (whole !== undefined) whole.take(bytes)
    else if (!decoder.isOverfull) decoder.feed(bytes)
  }
  const loose = (): string => whole?.text() ?? decoder.loose
  /** The head, with the last word on usage. */
  const told = (): Reply.Head => Reply.billed(head, wire.usage(draft.usage))

  /** Once the model has said why it stopped, the answer is whole, whatever becomes of the stream. */
  const end = (failure?: ProviderError): End => {
    const error = isFinished() ? undefined : (looseError(told(), draft, loose()) ?? failure)
    return error === undefined ? StreamDraft.settle(told(), draft, wire.changes) : Either.left(error)
  }
  const fed = (feeding: Either.Either<void, unknown>, malformed: string): End | undefined => {
    if (draft.error !== undefined) return Either.left(errorIn(told(), draft, draft.error))
    if (draft.broken !== undefined) return Either.left(interrupted(told(), draft.broken))
    if (whole?.isOverfull()) return Either.left(Reply.tooLarge(head))
    if (draft.kept > head.maxBytes) return Either.left(Reply.tooLarge(told()))
    if (decoder.isOverfull) return end(tooLong(told()))
    if (Either.isLeft(feeding)) return end(interrupted(told(), malformed))
    return draft.isOver ? end() : undefined
  }
  /** The body is no stream, whatever it was called. */
  const asWhole = (): End =>
    Either.map(
      Answer.withChanges(Either.flatMap(Reply.ofText(head, loose()), wire.answer), wire.changes),
      StreamDraft.partsOf
    )

  return {
    bytes: (chunk) =>
      fed(
        Either.try(() => {
          for (const bytes of chunk) take(bytes)
        }),
        "an event is malformed"
      ),
    ended: () =>
      fed(Either.try(decoder.end), "the stream was cut within an event") ??
      (decoder.events === 0 && (loose() !== "" || !isStream(head))
        ? asWhole()
        : end(interrupted(told(), unfinished(wire)))),
    broken: (error) => end(brokenOff(told(), error)),
    takeParts: () => {
      const { parts } = draft
      draft.parts = []
      return parts
    },
    isFinished,
    isOver: () => draft.isOver
  }
}

const unfinished = ({ terminator }: Wire): string =>
  `the stream ended without a finish reason${terminator === undefined ? "" : ` or ${terminator}`}`

const takeEvent = (wire: Wire, draft: StreamDraft.StreamDraft, data: string, name: string | undefined): void => {
  if (name === "error") draft.error = Either.getOrElse(Json.parse(data), () => data)
  else if (data === "[DONE]") draft.isOver = true
  else if (data.trim() !== "") wire.take(draft, JSON.parse(data))
}

const isStream = ({ headers }: Reply.Head): boolean => /event-stream/i.test(headers["content-type"] ?? "")

/** `{`, `[` and `<`, with which no line of a stream begins, but JSON and pages do. */
const wholeBegins: ReadonlyArray<number> = [0x7b, 0x5b, 0x3c]

/** The error that a server wrote between the events, or instead of them. */
const looseError = (head: Reply.Head, draft: StreamDraft.StreamDraft, loose: string): ProviderError | undefined => {
  const json = Either.getOrUndefined(Json.parse(loose))
  return Reply.holdsError(json) ? errorIn(head, draft, json) : undefined
}

/** What it says of usage itself is the last word. */
const errorIn = (head: Reply.Head, { isBegun }: StreamDraft.StreamDraft, error: unknown): ProviderError =>
  HttpFailure.inBand({ ...Reply.billed(head, head.usageIn?.(error)), error, isBegun })

const tooLong = (head: Reply.Head): ProviderError =>
  new InvalidResponseError(Reply.fieldsOf(head, `an event is longer than ${Sse.maxEventLength} characters`))

/** The partial text is known where it is gathered, a layer above. */
const interrupted = (head: Reply.Head, what: string, cause?: Rejection.Trace): ProviderError =>
  new StreamInterruptedError({ ...Reply.fieldsOf(head, what), partial: "", cause })

const brokenOff = (head: Reply.Head, error: HttpClientError): ProviderError => {
  if (error.reason === "EmptyBody") {
    return new EmptyResponseError(Reply.fieldsOf(head, `HTTP ${head.status} with an empty body`))
  }
  const { trace, words } = Rejection.breakOf(error.cause, head.redact)
  return interrupted(head, `the connection broke: ${words}`, trace)
}
