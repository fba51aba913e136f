/** What a provider hands over, looked at before it counts as an answer. */
import { Either } from "effect"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import { ContentPolicyError, EmptyResponseError, InvalidResponseError, type ProviderError } from "../model/LlmError.ts"
import { isUsage, type Usage } from "../model/Usage.ts"

/** What an answer says that it used; `undefined` for what counts nothing. */
export const usageOf = (answer: Partial<ProviderAnswer> | null | undefined): Usage | undefined =>
  isUsage(answer?.usage) ? answer.usage : undefined

/** An answer that holds something, or the error that says why it is none. */
export const checkAnswer = (provider: string, answer: unknown): Either.Either<ProviderAnswer, ProviderError> => {
  const wanted = (typeof answer === "string" ? { text: answer } : answer) as ProviderAnswer | null | undefined
  const usage = usageOf(wanted)
  if (typeof wanted?.text !== "string") {
    const message = `${provider}: the answer has no text: give a string or { text, ... }`
    return Either.left(new InvalidResponseError({ provider, message, usage }))
  }
  if (wanted.text !== "" || (wanted.toolCalls?.length ?? 0) > 0 || wanted.finishReason === "length") {
    return Either.right(wanted.usage === usage ? wanted : { ...wanted, usage })
  }
  const { refusal } = wanted
  return Either.left(
    refusal === undefined
      ? new EmptyResponseError({ provider, usage })
      : new ContentPolicyError({ provider, stage: "response", message: `${provider}: refused: ${refusal}`, usage })
  )
}
