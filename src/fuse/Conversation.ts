/** What is asked for, and how it ends. */
import type { Effect, Either } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ChatResponse } from "../model/ChatResponse.ts"
import type { LlmFuseError } from "../model/LlmError.ts"
import type * as Call from "./Call.ts"
import type { Member } from "./Member.ts"

/** The end of a call. */
export type Answering<A> = Effect.Effect<A, LlmFuseError>

/** Has the providers answer. */
export type Run<A> = (call: Call.Call, candidates: ReadonlyArray<Member>) => Answering<A>

/** What every answer tells of its call. */
export type Told = Pick<ChatResponse, "provider" | "model" | "attempts" | "latency" | "usage"> &
  Partial<Pick<ChatResponse, "cost">>

/** A conversation that wants to go on: its answer may be kept, and another may stand in for it. */
export interface Conversation<A> {
  readonly request: ChatRequest
  readonly run: Run<A>
  /** What a response that no provider has given just now comes to. */
  readonly accept: (response: ChatResponse) => Either.Either<A, string>
}
