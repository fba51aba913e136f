/** Error bodies in the words of both wires, and what each status is called there. */
import type { FaultError } from "./FaultBehaviour.ts"

/** The body of an OpenAI error. An error under a status below 400 is called what one under 500 is. */
export const openAiError = (status: number, { message, type, code }: FaultError): unknown => {
  const [usualType, usualCode] = openAiNames[status] ?? (isRefusal(status) ? refused : ["server_error", null])
  return {
    error: {
      message: message ?? messageOf(status),
      type: type ?? usualType,
      param: null,
      // The usual code might contradict a type that was chosen.
      code: code === undefined ? (type === undefined ? usualCode : null) : code
    }
  }
}

/** The body of an Anthropic error. */
export const anthropicError = (status: number, { message, type }: FaultError): unknown => ({
  type: "error",
  error: {
    type: type ?? anthropicNames[status] ?? (isRefusal(status) ? refused[0] : "api_error"),
    message: message ?? messageOf(status)
  }
})

const refused = ["invalid_request_error", null] as const

const isRefusal = (status: number): boolean => status >= 400 && status < 500

const openAiNames: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  401: ["invalid_request_error", "invalid_api_key"],
  404: ["invalid_request_error", "model_not_found"],
  429: ["requests", "rate_limit_exceeded"],
  503: ["service_unavailable_error", "server_is_overloaded"],
  529: ["overloaded_error", "server_is_overloaded"]
}

const anthropicNames: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error"
}

const messages: Readonly<Record<number, string>> = {
  400: "The request is invalid.",
  401: "Incorrect API key provided.",
  402: "Payment is required.",
  403: "You are not allowed to do this.",
  404: "The model does not exist or you do not have access to it.",
  429: "Rate limit reached for requests.",
  503: "The server is currently overloaded. Please try again later.",
  529: "Overloaded"
}

const messageOf = (status: number): string =>
  messages[status] ?? (isRefusal(status) ? "The request is refused." : "The server had an error.")
