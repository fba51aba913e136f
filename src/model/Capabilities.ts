/** What a provider can do, known before it is asked. */
import { type ConfigError, Either } from "effect"
import type { ChatRequest } from "./ChatRequest.ts"
import { type Content, partsOf, textOf } from "./Message.ts"
import * as OptionCheck from "./OptionCheck.ts"

/** What a provider can do; what is not said is taken for granted. */
export interface Capabilities {
  /** Calling tools. Default: true. */
  readonly tools?: boolean | undefined
  /** Reading images. Default: true. */
  readonly images?: boolean | undefined
  /** Reading files, such as PDFs. Default: true. */
  readonly files?: boolean | undefined
  /** Keeping to a JSON schema: by itself (`true`), or only with help (`false`): a forced tool, or JSON and a word. Default: the vendor's. */
  readonly jsonSchema?: boolean | undefined
  /** Streaming. Without it the answer is handed out in one piece. Default: true. */
  readonly streaming?: boolean | undefined
  /** Going on from an assistant message at the end of the conversation. Default: true. */
  readonly prefill?: boolean | undefined
  /** How many tokens fit, those of the answer included; a whole number from 1. Default: unknown, so nothing is refused. */
  readonly contextWindow?: number | undefined
}

/** Why a provider that can do so much cannot take a request; `undefined` if it can. */
export const obstacle = (capabilities: Capabilities | undefined, request: ChatRequest): Obstacle | undefined => {
  if (capabilities === undefined) return undefined
  const holds = (type: "image" | "file") =>
    request.messages.some(({ content }) => partsOf(content).some((part) => part.type === type))
  const { tools, images, files, prefill, contextWindow } = capabilities
  if (tools === false && (request.tools?.length ?? 0) > 0) return lacking("cannot call tools")
  if (images === false && holds("image")) return lacking("cannot read images")
  if (files === false && holds("file")) return lacking("cannot read files")
  if (prefill === false && request.messages.at(-1)?.role === "assistant") {
    return lacking("cannot go on from an assistant message")
  }
  if (contextWindow === undefined) return undefined
  const estimate = estimateTokens(request)
  return estimate > contextWindow
    ? { isTooLong: true, what: `about ${estimate} tokens do not fit its context window of ${contextWindow}` }
    : undefined
}

/** What a provider lacks for a request. */
export interface Obstacle {
  /** Whether it is the length. */
  readonly isTooLong: boolean
  /** In words that follow the provider's name. */
  readonly what: string
}

const lacking = (what: string): Obstacle => ({ isTooLong: false, what })

/** Characters to a token. Real ratios are from 2 (code, many scripts) to 4.5; a low estimate refuses nothing that fits. */
export const charactersPerToken = 4.5

/** At least about so many tokens are in a request, and wanted for its answer. */
export const estimateTokens = (request: ChatRequest): number =>
  Math.floor(charactersOf(request) / charactersPerToken) + (request.maxTokens ?? 0)

/** How many characters of text a request holds. */
export const charactersOf = ({ system, messages }: ChatRequest): number => {
  const length = (content: Content) => textOf(content).length
  return messages.reduce((sum, { content }) => sum + length(content), system?.length ?? 0)
}

const flags = ["tools", "images", "files", "jsonSchema", "streaming", "prefill"] as const

/** Looks at what a provider says that it can do. */
export const check = (capabilities: Capabilities, path: string): Either.Either<void, ConfigError.ConfigError> =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, capabilities, [...flags, "contextWindow"])
    for (const flag of flags) {
      const value = capabilities[flag]
      if (value !== undefined) yield* OptionCheck.oneOf(`${path}.${flag}`, value, [true, false])
    }
    if (capabilities.contextWindow !== undefined) {
      yield* OptionCheck.wholeNumber(`${path}.contextWindow`, capabilities.contextWindow, 1)
    }
  })
