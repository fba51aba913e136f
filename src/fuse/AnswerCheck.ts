/** What a provider hands over, looked at before it counts as an answer. */
import { Either } from "effect"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import { ContentPolicyError, EmptyResponseError, InvalidResponseError, type ProviderError } from "../model/LlmError.ts"

/** An answer that holds something, or the error that says why it is none. */
export const checkAnswer = (provider: string, answer: unknown): Either.Either<ProviderAnswer, ProviderError> => {
  const wanted = (typeof answer === "string" ? { text: answer } : answer) as ProviderAnswer | null | undefined
  if (typeof wanted?.text !== "string") {
    const message = `${provider}: the answer has no text: give a string or { text, ... }`
    return Either.left(new InvalidResponseError({ provider, message }))
  }
  if (wanted.text !== "" || (wanted.toolCalls?.length ?? 0) > 0 || wanted.finishReason === "length") {
    return Either.right(wanted)
  }
  return Either.left(
    wanted.refusal === undefined
      ? new EmptyResponseError({ provider })
      : new ContentPolicyError({ provider, stage: "response", message: `${provider}: refused: ${wanted.refusal}` })
  )
}
