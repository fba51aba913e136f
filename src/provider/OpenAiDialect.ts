/** Where vendors that speak OpenAI's chat completions differ, as data: a vendor is a few lines of it. */
import { type ConfigError, Either } from "effect"
import type { Capabilities } from "../model/Capabilities.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import type { Reasoning } from "../model/Tool.ts"

/** How much a model thinks, in our words. */
export type Effort = NonNullable<Reasoning["effort"]>

/** Where embeddings of this wire differ. */
export interface EmbeddingDialect {
  /** The path after the base address. Default: `/embeddings`. */
  readonly path?: string | undefined
  /** How many texts one request may hold. Default: unknown, so any number. */
  readonly maxInputs?: number | undefined
  /** The field for the length of the vectors; false: there is none. Default: `dimensions`; Mistral's is `output_dimension`. */
  readonly dimensionsField?: "dimensions" | "output_dimension" | false | undefined
  /** Whether the encoding is asked for, always as `float`. Default: true. Base64 is understood all the same. */
  readonly encodingFormat?: boolean | undefined
}

/** Where vendors of this wire differ. What is not said is as OpenAI's documentation has it. */
export interface Dialect {
  /** The field for the token limit. Default: `max_tokens`; OpenAI's reasoning models refuse it. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined
  /** The field for the seed; false: there is none. Default: `seed`; Mistral's is `random_seed`. */
  readonly seedField?: "seed" | "random_seed" | false | undefined
  /** The header that carries the key. Default: `authorization`, as a bearer token. */
  readonly keyHeader?: "authorization" | "api-key" | undefined
  /** Whether a stream is asked to say its usage. Default: true; Mistral does so unasked, and refuses what it does not know. */
  readonly streamOptions?: boolean | undefined
  /** How many texts `stop` may hold. Default: any number. */
  readonly maxStops?: number | undefined
  /** Whether `metadata` is taken. Default: false. */
  readonly metadata?: boolean | undefined
  /**
   * What `tool_choice` can be: a word or the name of a tool, only a word, or nothing. Default: `"named"`. Where a name
   * cannot be said, only that tool is offered; where nothing can be said, the model is free.
   */
  readonly toolChoice?: "named" | "words" | false | undefined
  /** The word for "at least one tool". Default: `required`. */
  readonly requiredWord?: "required" | "any" | undefined
  /** Whether `parallel_tool_calls` is taken. Default: true. */
  readonly parallelToolCalls?: boolean | undefined
  /** Which ids of tool calls are taken back: any, those of at most 40 characters, or of 9 letters and digits. Default: `"any"`. */
  readonly toolIds?: "any" | "forty" | "nine" | undefined
  /** Which images are read: any, only those whose bytes are sent along, or none. Default: `"any"`. */
  readonly images?: "any" | "data" | false | undefined
  /**
   * How a file is sent: as a `file` part that holds its bytes, as one that may hold its address too, as Mistral's
   * `document_url`, or not at all. Default: `"file"`.
   */
  readonly files?: "file" | "file-or-url" | "document_url" | false | undefined
  /**
   * How an answer is held to a JSON schema: by `response_format`, by the arguments of a tool that must be called, by
   * JSON mode with the schema in the system text, or by the system text alone. Default: `"native"`.
   */
  readonly jsonSchema?: "native" | "tool" | "mode" | "instruction" | undefined
  /** Whether `response_format` can be `json_object`. Default: true. */
  readonly jsonMode?: boolean | undefined
  /**
   * Whether `strict` needs schemas of OpenAI's kind: no other properties, none optional. Others are then sent with
   * `strict: false`. Default: true; servers that hold every answer to a grammar do not care.
   */
  readonly strictSchemas?: boolean | undefined
  /**
   * Where the vendor is told how much to think: in `reasoning_effort`, in OpenRouter's `reasoning`, in
   * `reasoning_effort` beside DeepSeek's `thinking`, or nowhere. Default: `"effort"`.
   */
  readonly reasoning?: "effort" | "object" | "toggle" | false | undefined
  /** The efforts that it knows; another becomes the nearest. Default: all. */
  readonly efforts?: ReadonlyArray<Effort> | undefined
  /**
   * `"merged"`: turns of the same role in a row become one, and system messages come first, for servers whose templates
   * want it so. Default: `"any"`.
   */
  readonly turns?: "any" | "merged" | undefined
  /** Whether the user may speak right after the result of a tool. Default: true; Mistral wants an assistant in between. */
  readonly userAfterTool?: boolean | undefined
  /**
   * How the model is asked to go on from an assistant message at the end: by the message alone, by `prefix` in it, by
   * vLLM's `continue_final_message`, or not at all. Default: `"plain"`.
   */
  readonly prefill?: "plain" | "prefix" | "continue" | false | undefined
  /**
   * What of an answer the vendor wants back: OpenRouter's `reasoning_details`, Gemini's `extra_content` of tool calls, or
   * DeepSeek's `reasoning_content`, which goes back where tools were called and nowhere else. Default: nothing.
   */
  readonly opaque?: "reasoning_details" | "extra_content" | "reasoning_content" | undefined
  /** Where embeddings differ; false: there are none. Default: as at OpenAI. */
  readonly embeddings?: EmbeddingDialect | false | undefined
}

/** What a vendor's models can do, as far as its dialect is sure; what the user says wins. */
export const capabilitiesOf = (dialect: Dialect, own: Capabilities | undefined): Capabilities | undefined => {
  const { images, files, prefill, jsonSchema = "native" } = dialect
  const sure: Capabilities = {
    ...(images === false ? { images } : {}),
    ...(files === false ? { files } : {}),
    ...(prefill === false ? { prefill } : {}),
    ...(jsonSchema === "native" ? {} : { jsonSchema: false }),
    ...own
  }
  return Object.keys(sure).length === 0 ? undefined : sure
}

const words: Readonly<Partial<Record<keyof Dialect, ReadonlyArray<unknown>>>> = {
  maxTokensField: ["max_tokens", "max_completion_tokens"],
  seedField: ["seed", "random_seed", false],
  keyHeader: ["authorization", "api-key"],
  streamOptions: [true, false],
  metadata: [true, false],
  toolChoice: ["named", "words", false],
  requiredWord: ["required", "any"],
  parallelToolCalls: [true, false],
  toolIds: ["any", "forty", "nine"],
  images: ["any", "data", false],
  files: ["file", "file-or-url", "document_url", false],
  jsonSchema: ["native", "tool", "mode", "instruction"],
  jsonMode: [true, false],
  strictSchemas: [true, false],
  reasoning: ["effort", "object", "toggle", false],
  turns: ["any", "merged"],
  userAfterTool: [true, false],
  prefill: ["plain", "prefix", "continue", false],
  opaque: ["reasoning_details", "extra_content", "reasoning_content"]
}

/** Looks at what a user says about a server; the error names the option, its value and what is allowed. */
export const check = (dialect: Dialect, path: string): Either.Either<void, ConfigError.ConfigError> =>
  Either.gen(function* () {
    for (const [flag, allowed] of Object.entries(words)) {
      const value = dialect[flag as keyof Dialect]
      if (value !== undefined) yield* OptionCheck.oneOf(`${path}.${flag}`, value, allowed)
    }
    if (dialect.maxStops !== undefined) yield* OptionCheck.wholeNumber(`${path}.maxStops`, dialect.maxStops, 1)
  })
