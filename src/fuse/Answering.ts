/** One call from its check to its end: its time, what is kept of earlier ones, and what stands in for an error. */
import { Clock, Context, Duration, Effect, Either } from "effect"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { EmbeddingBatch } from "../model/Embedding.ts"
import { DeadlineExceededError, type FallbackError, inOwnWords, type LlmFuseError } from "../model/LlmError.ts"
import type { EventHub } from "../observability/EventHub.ts"
import type { Operation } from "../observability/FuseEvent.ts"
import * as SpanEvents from "../observability/SpanEvents.ts"
import type { Asked } from "../observability/SpanFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Deadline from "../pipeline/Deadline.ts"
import { fallback } from "../pipeline/Fallback.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import * as Call from "./Call.ts"
import type * as CallCheck from "./CallCheck.ts"
import * as CallEnd from "./CallEnd.ts"
import * as CallStream from "./CallStream.ts"
import * as CallTelling from "./CallTelling.ts"
import * as Chat from "./Chat.ts"
import type { Answering, Conversation, Told } from "./Conversation.ts"
import * as FallbackAnswer from "./FallbackAnswer.ts"
import type { Account, CallOptions, Resolved } from "./FuseOptions.ts"
import type { Kept } from "./Kept.ts"
import type { Member } from "./Member.ts"
import * as PriceLoad from "./PriceLoad.ts"
import * as Story from "./Story.ts"

/** Begins calls. */
export interface Answerer {
  /** Embeds what was asked, within the time of the call. */
  readonly answer: <In extends EmbeddingBatch, A extends Told>(
    operation: Operation,
    input: Either.Either<In, LlmFuseError>,
    callOptions: CallOptions | undefined,
    run: (input: In, call: Call.Call, candidates: ReadonlyArray<Member>) => Answering<A>
  ) => Answering<A>
  /** The same for a conversation; `outlet` takes the answer as it comes. */
  readonly converse: <A extends ChatResponse>(
    operation: Operation,
    conversation: Either.Either<Conversation<A>, LlmFuseError>,
    callOptions: CallOptions | undefined,
    outlet?: CallStream.Outlet
  ) => Answering<A>
}

/** What answers the calls of a service. */
export const make = (
  check: ReturnType<typeof CallCheck.make>,
  options: Resolved,
  kept: Kept | undefined,
  hub: EventHub,
  { isPriced, load }: Account
): Answerer => {
  const begin = <In, A extends Told>(
    operation: Operation,
    input: Either.Either<In, LlmFuseError>,
    callOptions: CallOptions | undefined,
    run: (input: In, call: Call.Call, candidates: ReadonlyArray<Member>) => Answering<A>,
    requestOf: (input: In) => Asked,
    outlet?: CallStream.Outlet
  ): Answering<A> =>
    Effect.withFiberRuntime<A, LlmFuseError>((fiber): Answering<A> => {
      const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
      const checked = check(callOptions)
      const { tag, deadlineMillis, recovery, timeouts, retry, hedge, maxCost, isOfItsOwn } = Either.getOrElse(
        checked,
        () => nothing
      )
      const startMillis = Monotonic.unsafeMillis(clock)
      const own = deadlineMillis === undefined ? undefined : Deadline.after(startMillis, deadlineMillis)
      const onSpan = Tracing.isOn(fiber) ? SpanEvents.make(hub, clock) : undefined
      const call: Call.Call = {
        hub: onSpan === undefined ? hub : onSpan.hub,
        id: undefined,
        operation,
        isTraced: onSpan !== undefined,
        clock,
        startMillis,
        asksAtOnce: kept === undefined && (load === undefined || maxCost === undefined),
        deadline: Deadline.earlier(own, fiber.getFiberRef(Deadline.current)),
        timeouts,
        retry,
        hedge,
        isOfItsOwn,
        maxCost,
        tag,
        stream: outlet === undefined ? undefined : CallStream.make(recovery, outlet),
        attempts: [],
        current: undefined,
        isOver: false,
        isShared: false,
        onShared: undefined,
        underWay: hedge === undefined ? undefined : new Map()
      }
      const running = Either.isLeft(input)
        ? Effect.fail(input.left)
        : Either.isLeft(checked)
          ? Effect.fail(checked.left)
          : run(input.right, call, checked.right.candidates)
      const heard = hub.isHeard() ? CallTelling.told(call, running) : running
      return onSpan === undefined ? heard : CallTelling.traced(call, checked, input, requestOf, onSpan.onStart, heard)
    })

  const prices = load === undefined ? undefined : PriceLoad.make(load)

  const inTime = <A>(call: Call.Call, answer: Answering<A>): Answering<A> => {
    const { deadline } = call
    const running = prices === undefined ? answer : prices(call, answer)
    const bounded =
      deadline === undefined
        ? running
        : Deadline.within(deadline, () => CallEnd.tell(call, deadlineExceeded(call, deadline)))(running)
    return isPriced || call.hub.isHeard() ? CallTelling.brokenOff(call, bounded) : bounded
  }

  const standingIn = <A extends ChatResponse>(
    call: Call.Call,
    { request, accept }: Conversation<A>
  ): ((answer: Answering<A>) => Answering<A>) => {
    const { fallback: instead } = options
    if (instead === undefined) return (answer) => answer
    return fallback(
      (error: LlmFuseError) =>
        Effect.flatMap(FallbackAnswer.run(instead, request, error), (value) =>
          Either.match(accept(FallbackAnswer.respond(call, value)), {
            onLeft: (problem): Effect.Effect<A, unknown> => Effect.fail(problem),
            onRight: (response) => Effect.as(Chat.present(call, response), response)
          })
        ),
      {
        appliesTo: (error) => FallbackAnswer.appliesTo(call, error),
        onFallback: (error) => {
          if (call.hub.isHeard()) call.hub.tell({ _tag: "FallbackUsed", ...Call.factsOf(call), error })
          return Effect.void
        }
      }
    )
  }

  return {
    answer: (operation, input, callOptions, run) =>
      begin(
        operation,
        input,
        callOptions,
        (asked, call, candidates) => inTime(call, run(asked, call, candidates)),
        (asked) => asked
      ),
    converse: (operation, conversation, callOptions, outlet) =>
      begin(
        operation,
        conversation,
        callOptions,
        (it, call, candidates) => {
          const running = inTime(call, it.run(call, candidates))
          const answer = kept === undefined ? running : kept(call, it, candidates, running)
          return options.fallback === undefined
            ? answer
            : Effect.mapError(standingIn(call, it)(answer), (error) => tellIfFallback(call, error))
        },
        ({ request }) => request,
        outlet
      )
  }
}

/** What is known of a call whose options are refused. */
const nothing = {
  tag: undefined,
  deadlineMillis: undefined,
  recovery: "fail",
  timeouts: undefined,
  retry: undefined,
  hedge: undefined,
  maxCost: undefined,
  isOfItsOwn: false
} as const

const tellIfFallback = (call: Call.Call, error: LlmFuseError | FallbackError): LlmFuseError =>
  error._tag === "FallbackError" ? CallEnd.tell(call, error) : error

const deadlineExceeded = (call: Call.Call, { atMillis }: Deadline.Deadline): DeadlineExceededError => {
  Story.breakOff(call)
  const millis = Math.max(0, Math.round(atMillis - call.startMillis))
  const provider = call.attempts.at(-1)?.provider ?? "llmfuse"
  const message = `no answer within the deadline of ${millis} ms`
  return inOwnWords(new DeadlineExceededError({ provider, deadline: Duration.millis(millis), message }))
}
