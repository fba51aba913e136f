/**
 * Spans, in the names of OpenTelemetry's GenAI conventions where they exist. Nothing of prompts and answers is in them,
 * and none are made where no tracer is provided.
 */
import { Cause, Context, DefaultServices, Effect, Exit, type Fiber, Option, Tracer } from "effect"
import type { ChatResponse } from "../model/ChatResponse.ts"
import * as Discreet from "./Discreet.ts"
import type { Operation } from "./FuseEvent.ts"

const noTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Whether a tracer of somebody's is there, other than the one that Effect always has. */
export const isOn = (fiber: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  Context.get(fiber.currentDefaultServices, Tracer.Tracer) !== noTracer

/** What is known of a call when it begins. */
export interface CallSpan {
  readonly callId: string
  readonly operation: Operation
  /** The first provider that will be asked, and its model. */
  readonly provider: string | undefined
  readonly model: string | undefined
  /** Whether the span may quote prompts and answers. */
  readonly capturesContent: boolean
}

type Told = Pick<ChatResponse, "provider" | "model" | "attempts" | "usage"> &
  Partial<Pick<ChatResponse, "finishReason" | "cached" | "fallback" | "requestId">>

const operationName = (operation: Operation): string => (operation === "embed" ? "embeddings" : "chat")

const nameOf = (operation: Operation, model: string | undefined): string =>
  model === undefined || model === "" ? operationName(operation) : `${operationName(operation)} ${model}`

/** One span for the whole call. */
export const aroundCall = <A extends Told, E, R>(
  { callId, operation, provider, model, capturesContent }: CallSpan,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  spanned(
    nameOf(operation, model),
    {
      "gen_ai.operation.name": operationName(operation),
      "gen_ai.provider.name": provider,
      "gen_ai.request.model": model,
      "llmfuse.call.id": callId,
      "llmfuse.operation": operation
    },
    capturesContent,
    call,
    (response) => ({
      "gen_ai.provider.name": response.provider,
      ...ofResponse(response),
      "gen_ai.response.finish_reasons": response.finishReason === undefined ? undefined : [response.finishReason],
      "llmfuse.attempts": response.attempts.length,
      "llmfuse.cached": response.cached === true ? true : undefined,
      "llmfuse.fallback": response.fallback
    }),
    () => ({})
  )

/** What is known of an attempt when it begins. */
export interface AttemptSpan {
  readonly provider: string
  readonly model: string | undefined
  readonly operation: Operation
  readonly number: number
  readonly waitedMillis: number
  readonly capturesContent: boolean
  /** Whether another provider was faster, asked when the attempt has been interrupted. */
  readonly isLost: () => boolean
}

/** One span for one attempt, a child of its call's. */
export const aroundAttempt = <A extends Pick<Told, "usage"> & Partial<Told>, E, R>(
  { provider, model, operation, number, waitedMillis, capturesContent, isLost }: AttemptSpan,
  attempt: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  spanned(
    `attempt ${provider}`,
    {
      "gen_ai.operation.name": operationName(operation),
      "gen_ai.provider.name": provider,
      "gen_ai.request.model": model,
      "llmfuse.attempt.number": number,
      "llmfuse.attempt.waited_ms": waitedMillis === 0 ? undefined : waitedMillis
    },
    capturesContent,
    attempt,
    (response) => ({ ...ofResponse(response), "llmfuse.attempt.outcome": "success" }),
    (exit) => ({
      "llmfuse.attempt.outcome": !Cause.isInterruptedOnly(exit.cause)
        ? "failure"
        : isLost()
          ? "hedge-lost"
          : "interrupted"
    })
  )

type Attributes = Readonly<Record<string, unknown>>

const ofResponse = ({ model, usage, requestId }: Partial<Told>): Attributes => ({
  "gen_ai.response.model": model === "" ? undefined : model,
  "gen_ai.response.id": requestId,
  "gen_ai.usage.input_tokens": usage?.inputTokens,
  "gen_ai.usage.output_tokens": usage?.outputTokens
})

const defined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

const spanned = <A, E, R>(
  name: string,
  attributes: Attributes,
  capturesContent: boolean,
  effect: Effect.Effect<A, E, R>,
  onSuccess: (value: A) => Attributes,
  onFailure: (exit: Exit.Failure<A, E>) => Attributes
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let failed: Cause.Cause<E> | undefined
    const options = { kind: "client", attributes: defined(attributes), captureStackTrace: false } as const
    const traced = Effect.useSpan(name, options, (span) => {
      const annotated = Effect.onExit(Effect.withParentSpan(effect, span), (exit) =>
        Effect.sync(() => {
          const more = Exit.isSuccess(exit)
            ? onSuccess(exit.value)
            : { "error.type": errorTypeOf(exit.cause), ...onFailure(exit) }
          for (const [key, value] of Object.entries(defined(more))) span.attribute(key, value)
        })
      )
      // The tracer is told of a failure by its end: by another error, which quotes nobody.
      return Effect.catchAllCause(annotated, (cause) => {
        failed = cause
        return Effect.failCause(capturesContent ? cause : Cause.map(cause, Discreet.of))
      })
    })
    return Effect.catchAllCause(traced, (cause) => Effect.failCause(failed ?? (cause as Cause.Cause<never>)))
  })

const errorTypeOf = (cause: Cause.Cause<unknown>): string | undefined =>
  Cause.isInterruptedOnly(cause)
    ? undefined
    : Option.match(Cause.failureOption(cause), { onNone: () => "defect", onSome: Discreet.tagOf })
