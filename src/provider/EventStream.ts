/** The body of a response as the parts of an answer. */
import type { HttpClientError } from "@effect/platform/HttpClientError"
import { Chunk, Clock, Effect, Either, Fiber, Option, type Scope, Stream } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import { InvalidResponseError, type ProviderError, StreamInterruptedError } from "../model/LlmError.ts"
import type { Usage } from "../model/Usage.ts"
import type * as Answer from "./Answer.ts"
import type * as Exchange from "./Exchange.ts"
import * as HttpFailure from "./HttpFailure.ts"
import * as Json from "./Json.ts"
import * as Rejection from "./Rejection.ts"
import * as Reply from "./Reply.ts"
import * as Sse from "./Sse.ts"
import * as StreamDraft from "./StreamDraft.ts"

/** What an adapter says about its wire. */
export interface Wire {
  /** What a stream ends with, in words. */
  readonly terminator: string
  /** Takes an event into the draft. What it throws says that the event is malformed. */
  readonly take: (draft: StreamDraft.StreamDraft, event: unknown) => void
  /** The vendor's usage in our words. */
  readonly usage: (usage: unknown) => Usage | undefined
  /** The answer that a whole body is. */
  readonly answer: (reply: Reply.Reply) => Answer.Read
}

/** The parts of a provider's answer. */
export type Parts = Stream.Stream<StreamPart, ProviderError>

/** How long after the finish reason a stream may still say its usage and its end, in milliseconds. */
export const graceMillis = 2000

/** The parts as the body brings them; a body that is no stream is read as what it is. */
export const parts = (wire: Wire, { head, response }: Exchange.Opened): Parts =>
  /\b(?:json|html)\b/i.test(head.headers["content-type"] ?? "")
    ? Stream.unwrap(
        Effect.map(Effect.flatMap(Reply.read(head, response), wire.answer), (answer) =>
          Stream.fromIterable(StreamDraft.partsOf(answer))
        )
      )
    : Stream.fromPull(Effect.flatMap(Stream.toPull(response.stream), (bytes) => pullOf(wire, head, bytes)))

type Bytes = Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<HttpClientError>>
type Pull = Effect.Effect<Chunk.Chunk<StreamPart>, Option.Option<ProviderError>>

const pullOf = (wire: Wire, head: Reply.Head, bytes: Bytes): Effect.Effect<Pull, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const draft = StreamDraft.make()
    const decoder = Sse.decoder((data, name) => {
      if (draft.isOver || draft.error !== undefined) return
      const text = data.trim()
      if (text === "") return
      if (text === "[DONE]") draft.isOver = true
      else if (name === "error") draft.error = errorOf(text)
      else wire.take(draft, JSON.parse(text))
    })
    let ending: Pull | undefined
    let timer: Fiber.Fiber<void> | undefined

    const settled = (): Either.Either<ReadonlyArray<StreamPart>, ProviderError> =>
      StreamDraft.settle(head, draft, wire.usage(draft.usage))

    const fail = (error: ProviderError): Pull => Effect.fail(Option.some(error))
    const cut = (what: string, cause?: unknown): Either.Either<ReadonlyArray<StreamPart>, ProviderError> =>
      draft.stopped === undefined
        ? Either.left(new StreamInterruptedError({ ...Reply.fieldsOf(head, what), partial: "", cause }))
        : settled()

    /** The parts that have come, then the end. */
    const close = (end: Either.Either<ReadonlyArray<StreamPart>, ProviderError>): Pull => {
      if (Either.isRight(end)) draft.parts.push(...end.right)
      ending = Either.isRight(end) ? Effect.fail(Option.none()) : fail(end.left)
      return handOut()
    }

    const handOut = (): Pull => {
      const parts = draft.parts
      draft.parts = []
      return parts.length > 0 ? Effect.succeed(Chunk.unsafeFromArray(parts)) : (ending ?? next)
    }

    const failed = (error: unknown): Pull =>
      Effect.flatMap(Clock.currentTimeMillis, (nowMillis) =>
        close(Either.left(HttpFailure.inBand({ ...head, nowMillis, error })))
      )

    const looseError = (): unknown => {
      const json = Either.getOrUndefined(Json.parse(decoder.loose))
      return draft.stopped === undefined && Reply.holdsError(json) ? json : undefined
    }

    const after = (fed: Either.Either<void, unknown>, isEnd: boolean): Pull => {
      if (draft.error !== undefined) return failed(draft.error)
      if (decoder.isOverfull && draft.stopped === undefined) {
        const message = `an event of more than ${Sse.maxEventLength} characters`
        return close(Either.left(new InvalidResponseError(Reply.fieldsOf(head, message))))
      }
      if (Either.isLeft(fed)) return close(cut(isEnd ? "the stream was cut within an event" : "a malformed event"))
      if (draft.isOver || decoder.isOverfull) {
        const error = looseError()
        return error === undefined ? close(settled()) : failed(error)
      }
      return isEnd ? atEnd() : draft.stopped !== undefined && timer === undefined ? awaitEnd : handOut()
    }

    const awaitEnd = Effect.suspend(() =>
      Effect.flatMap(Effect.forkIn(Effect.sleep(graceMillis), scope), (fiber) => {
        timer = fiber
        return handOut()
      })
    )

    const atEnd = (): Pull => {
      if (draft.stopped !== undefined || decoder.loose.trim() === "") {
        return close(cut(`the stream ended without a finish reason or ${wire.terminator}`))
      }
      const read = Either.flatMap(Reply.ofText(head, decoder.loose), wire.answer)
      return close(Either.map(read, StreamDraft.partsOf))
    }

    const onBytes = (chunk: Chunk.Chunk<Uint8Array>): Pull =>
      after(
        Either.try(() => {
          for (const part of Chunk.toReadonlyArray(chunk)) if (!decoder.isOverfull) decoder.feed(part)
        }),
        false
      )

    const onFailure = (reason: Option.Option<HttpClientError>): Pull =>
      Option.isSome(reason)
        ? close(cut("the connection broke", Rejection.trace(reason.value.cause, head.redact)))
        : after(Either.try(decoder.end), true)

    const pulled: Pull = Effect.matchEffect(bytes, { onFailure, onSuccess: onBytes })
    const timed: Bytes = Effect.suspend(() =>
      timer === undefined
        ? bytes
        : Effect.raceFirst(bytes, Effect.zipRight(Fiber.join(timer), Effect.fail(Option.none())))
    )
    const next: Pull = Effect.suspend(
      () => ending ?? (timer === undefined ? pulled : Effect.matchEffect(timed, { onFailure, onSuccess: onBytes }))
    )
    return next
  })

/** What an event named `error` holds need not be JSON. */
const errorOf = (text: string): unknown => Either.getOrElse(Json.parse(text), () => text)
