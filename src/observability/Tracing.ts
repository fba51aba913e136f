/**
 * The spans of a call and its attempts. None are made where no tracer is provided, and nothing of prompts and answers is
 * in them unless it is asked for.
 */
import { Cause, Context, DefaultServices, Effect, Exit, type Fiber, Option, Tracer } from "effect"
import type { ChatResponse } from "../model/ChatResponse.ts"
import { type Attempt, isLlmFuseError } from "../model/LlmError.ts"
import * as Discreet from "./Discreet.ts"
import type { Operation } from "./FuseEvent.ts"
import * as SpanContent from "./SpanContent.ts"
import * as SpanFacts from "./SpanFacts.ts"

const noTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Whether a tracer of somebody's is there, other than the one that Effect always has. */
export const isOn = (fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean => fiber.currentTracer !== noTracer

/** What is known of a call when it begins. */
export interface CallSpan {
  readonly callId: string
  readonly operation: Operation
  /** The first provider that will be asked, and its model. */
  readonly provider: string | undefined
  readonly model: string | undefined
  /** What is asked; undefined where it was refused. */
  readonly request: SpanFacts.Asked | undefined
  /** Whether the span may quote prompts and answers. */
  readonly capturesContent: boolean
  /** Called with the span when it begins. */
  readonly onStart: (span: Tracer.Span) => void
  /** The attempts so far, and what they cost, in US dollars. */
  readonly story: () => { readonly attempts: number; readonly cost: number | undefined }
}

type Told = Pick<ChatResponse, "provider" | "model" | "attempts" | "usage"> &
  Partial<SpanContent.Said & Pick<ChatResponse, "cached" | "stale" | "fallback" | "requestId" | "cost">>

const operationName = (operation: Operation): string => (operation === "embed" ? "embeddings" : "chat")

const nameOf = (operation: Operation, model: string | undefined): string =>
  model === undefined || model === "" ? operationName(operation) : `${operationName(operation)} ${model}`

/** One span for the whole call. */
export const aroundCall = <A extends Told, E, R>(
  { callId, operation, provider, model, request, capturesContent, onStart, story }: CallSpan,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  spanned(
    {
      name: nameOf(operation, model),
      attributes: {
        "gen_ai.operation.name": operationName(operation),
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.request.stream": operation === "stream" ? true : undefined,
        ...(request && SpanFacts.ofRequest(request)),
        "llmfuse.call.id": callId,
        "llmfuse.operation": operation
      },
      capturesContent,
      onStart: (span) => {
        onStart(span)
        if (capturesContent && request !== undefined && "messages" in request) {
          annotate(span, SpanContent.ofRequest(request))
        }
      },
      onSuccess: (response) => ({
        "gen_ai.provider.name": response.provider,
        ...SpanFacts.ofResponse(response),
        ...SpanFacts.ofUsage(response.usage),
        ...(capturesContent && isSaid(response) ? SpanContent.ofResponse(response) : {}),
        "llmfuse.attempts": response.attempts.length,
        "llmfuse.cached": response.cached === true ? true : undefined,
        "llmfuse.stale": response.stale,
        "llmfuse.fallback": response.fallback,
        "llmfuse.cost": response.cost
      }),
      onFailure: () => {
        const { attempts, cost } = story()
        return { "llmfuse.attempts": attempts, "llmfuse.cost": cost }
      }
    },
    call
  )

const isSaid = (response: Told): response is Told & SpanContent.Said => response.text !== undefined

/** What is known of an attempt when it begins. */
export interface AttemptSpan {
  readonly provider: string
  readonly model: string | undefined
  readonly operation: Operation
  readonly number: number
  readonly waitedMillis: number
  readonly capturesContent: boolean
  /** What the story of the call tells of it, asked when it has ended; undefined where it ended with a defect. */
  readonly end: (isInterrupted: boolean) => Attempt | undefined
}

/** One span for one attempt, a child of its call's. */
export const aroundAttempt = <A extends Pick<Told, "usage"> & SpanFacts.Answered, E, R>(
  { provider, model, operation, number, waitedMillis, capturesContent, end }: AttemptSpan,
  attempt: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const ofEnd = (isInterrupted: boolean) => {
    const ended = end(isInterrupted)
    return ended && SpanFacts.ofAttempt(ended)
  }
  return spanned(
    {
      name: `attempt ${provider}`,
      attributes: {
        "gen_ai.operation.name": operationName(operation),
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "llmfuse.attempt.number": number,
        "llmfuse.attempt.waited_ms": waitedMillis === 0 ? undefined : waitedMillis
      },
      capturesContent,
      onSuccess: (response) => ({ ...SpanFacts.ofResponse(response), ...ofEnd(false) }),
      onFailure: (cause) => ({
        "http.response.status_code": statusOf(cause),
        "llmfuse.attempt.outcome": "failure",
        ...ofEnd(Cause.isInterruptedOnly(cause))
      })
    },
    attempt
  )
}

interface Spanned<A, E> {
  readonly name: string
  readonly attributes: SpanFacts.Attributes
  readonly capturesContent: boolean
  readonly onStart?: (span: Tracer.Span) => void
  readonly onSuccess: (value: A) => SpanFacts.Attributes
  readonly onFailure: (cause: Cause.Cause<E>) => SpanFacts.Attributes
}

const spanned = <A, E, R>(
  { name, attributes, capturesContent, onStart, onSuccess, onFailure }: Spanned<A, E>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let failed: Cause.Cause<E> | undefined
    const options = { kind: "client", attributes: defined(attributes), captureStackTrace: false } as const
    const traced = Effect.useSpan(name, options, (span) => {
      onStart?.(span)
      const annotated = Effect.onExit(Effect.withParentSpan(effect, span), (exit) =>
        Effect.sync(() =>
          annotate(
            span,
            Exit.isSuccess(exit)
              ? onSuccess(exit.value)
              : { "error.type": errorTypeOf(exit.cause), ...onFailure(exit.cause) }
          )
        )
      )
      // The tracer is told of a failure by its end: by another error, which quotes nobody.
      return Effect.catchAllCause(annotated, (cause) => {
        failed = cause
        return Effect.failCause(capturesContent ? cause : Cause.map(cause, Discreet.ofUnknown))
      })
    })
    return Effect.catchAllCause(traced, (cause) => Effect.failCause(failed ?? (cause as Cause.Cause<never>)))
  })

const defined = (attributes: SpanFacts.Attributes): SpanFacts.Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

const annotate = (span: Tracer.Span, attributes: SpanFacts.Attributes): void => {
  for (const [key, value] of Object.entries(defined(attributes))) span.attribute(key, value)
}

const errorTypeOf = (cause: Cause.Cause<unknown>): string | undefined =>
  Cause.isInterruptedOnly(cause)
    ? undefined
    : Option.match(Cause.failureOption(cause), { onNone: () => "defect", onSome: Discreet.tagOf })

const statusOf = (cause: Cause.Cause<unknown>): number | undefined => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  return isLlmFuseError(error) && "statusCode" in error ? error.statusCode : undefined
}
