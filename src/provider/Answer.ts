/** What an adapter read from a reply, and whether it is an answer. */
import { Either } from "effect"
import type { FinishReason, ProviderAnswer, ToolCall } from "../model/ChatResponse.ts"
import {
  ContentPolicyError,
  EmptyResponseError,
  InvalidResponseError,
  OverloadedError,
  type ProviderError,
  ServerError
} from "../model/LlmError.ts"
import type { OpaqueReasoning } from "../model/OpaqueReasoning.ts"
import * as HttpFailure from "./HttpFailure.ts"
import * as Json from "./Json.ts"
import * as RateHeaders from "./RateHeaders.ts"
import * as Reply from "./Reply.ts"

/** An answer or the error that the reply is instead. */
export type Read = Either.Either<ProviderAnswer, ProviderError>

/** What a reply holds, in no vendor's words. */
export interface Draft {
  readonly text: string
  readonly model: string | undefined
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly reasoning: string
  /** What the model said instead of an answer. */
  readonly refusal: string | undefined
  /** The vendor's word for why the model stopped. */
  readonly stopped: string | undefined
  /** The vendor's word for why it did not take the prompt. */
  readonly blockedPrompt?: string | undefined
  /** What the vendor wants back with the answer. */
  readonly opaque?: OpaqueReasoning | undefined
}

/**
 * The answer that a draft is; what was used is the head's to say. A refusal, a filtered answer and a blocked prompt are
 * a `ContentPolicyError`, a model that gave up is a `ServerError` or `OverloadedError`, one that wrote what is no call
 * of a tool is an `InvalidResponseError`, and nothing at all is an `EmptyResponseError`; but what ended at the token
 * limit is an answer, however short.
 */
export const settle = (head: Reply.Head, draft: Draft): Read => {
  const { text, toolCalls, reasoning, refusal, model, opaque } = draft
  const told = reasonOf(draft.stopped)
  if (draft.blockedPrompt !== undefined) {
    return Either.left(blocked(head, `the prompt was blocked (${draft.blockedPrompt})`, "prompt"))
  }
  if (refusal !== undefined) return Either.left(blocked(head, `the model refused: ${refusal}`))
  if (told === "refusal") return Either.left(blocked(head, `the model refused${text === "" ? "" : `: ${text}`}`))
  if (told === "content-filter") return Either.left(blocked(head, `the answer was stopped (${draft.stopped})`))
  if (told === "error" || told === "overloaded") {
    const Failure = told === "error" ? ServerError : OverloadedError
    return Either.left(new Failure(Reply.fieldsOf(head, `the model stopped with "${draft.stopped}"`)))
  }
  if (told === "invalid") {
    return Either.left(new InvalidResponseError(Reply.fieldsOf(head, `the model stopped with "${draft.stopped}"`)))
  }
  const finishReason = toolCalls.length > 0 && told !== "length" ? "tool-calls" : told
  if (text === "" && toolCalls.length === 0 && finishReason !== "length") {
    return Either.left(new EmptyResponseError(Reply.fieldsOf(head, "an answer with nothing in it")))
  }
  const { requestId, usage } = head
  const rateLimits = RateHeaders.read(head)
  return Either.right({
    text,
    finishReason,
    toolCalls,
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...(reasoning === "" ? {} : { reasoning }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(opaque === undefined ? {} : { opaque }),
    ...(rateLimits === undefined ? {} : { rateLimits })
  })
}

/** The answer, with what had to be changed of the request; as it was where that is nothing. */
export const withChanges = (answer: Read, changes: ReadonlyArray<string> | undefined): Read =>
  changes === undefined || changes.length === 0 ? answer : Either.map(answer, (it) => ({ ...it, changes }))

/** The error that a reply without an answer is: the one that it describes in a shape of its own, else invalid. */
export const missing = (reply: Reply.Reply, what: string): Read =>
  Json.at(reply.json, "message") !== undefined || Json.at(reply.json, "detail") !== undefined
    ? Either.left(HttpFailure.inBand({ ...reply, error: reply.json }))
    : Either.left(new InvalidResponseError(Reply.fieldsOf(reply, `a body without ${what}`)))

/** The error that an error object somewhere in a reply describes. */
export const failed = (reply: Reply.Reply, error: unknown): Read => Either.left(HttpFailure.inBand({ ...reply, error }))

/** A tool call; what the model wrote as arguments is kept as text if it is no JSON. No text means no arguments. */
export const toolCall = (id: string, name: string, written: string): ToolCall =>
  Either.match(Json.parse(written.trim() === "" ? "{}" : written), {
    onLeft: () => ({ id, name, rawArguments: written }),
    onRight: (parsed) => ({ id, name, arguments: parsed })
  })

const blocked = (head: Reply.Head, what: string, stage: "prompt" | "response" = "response"): ContentPolicyError =>
  new ContentPolicyError({ ...Reply.fieldsOf(head, what), stage })

/** What a word means. Gemini's compatible endpoint says its own word after one of OpenAI's kind: `content_filter: SPII`. */
const reasonOf = (stopped = ""): FinishReason | "refusal" | "error" | "overloaded" | "invalid" => {
  const [kind = "", own = ""] = stopped.toLowerCase().split(":")
  return finishReasons.get(own.trim()) ?? finishReasons.get(kind.trim()) ?? "unknown"
}

/**
 * The vendors' words. Together says `eos`, Mistral `model_length`, DeepSeek gives up for lack of resources, vLLM aborts, Gemini says
 * what was wrong with a call of a tool.
 */
const finishReasons: ReadonlyMap<string, FinishReason | "refusal" | "error" | "overloaded" | "invalid"> = new Map(
  (
    [
      ["stop", "stop eos end_turn stop_sequence completed"],
      ["length", "length max_tokens model_length model_context_window_exceeded"],
      ["tool-calls", "tool_calls tool_use function_call"],
      [
        "content-filter",
        `content_filter safety recitation language blocklist prohibited_content spii model_armor image_safety
        image_prohibited_content image_recitation`
      ],
      [
        "invalid",
        `malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response
        missing_thought_signature function_call_filter`
      ],
      ["refusal", "refusal"],
      ["error", "error abort"],
      ["overloaded", "insufficient_system_resource"]
    ] as const
  ).flatMap(([reason, words]) => words.split(/\s+/).map((word) => [word, reason] as const))
)
