/** Tools that the model may call, and the shape that its answer is to have. */
import { Either, JSONSchema, Schema } from "effect"

/** A JSON schema, in whatever dialect the vendor takes. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A shape: a JSON schema, or an Effect `Schema`, of whose encoded side the JSON schema is made. */
// biome-ignore lint/suspicious/noExplicitAny: a schema is invariant in what it decodes, so that only any takes them all.
export type Shape = JsonSchema | Schema.Schema<any, any, never>

/** A tool that the model may call. */
export interface Tool {
  /** Letters, digits, `_` and `-`; at most 64; unique within a request. */
  readonly name: string
  /** What it does and when to call it, for the model. */
  readonly description?: string | undefined
  /** The arguments, an object. Default: none. */
  readonly parameters?: Shape | undefined
  /** Whether the vendor is to keep to the schema strictly, where it can. Default: the vendor's. */
  readonly strict?: boolean | undefined
}

/** Whether the model calls tools: as it likes, not at all, at least one, or the one of that name. Default: `"auto"`. */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string }

/** The form of the answer: free text, some JSON, or JSON of a shape. */
export type ResponseFormat =
  | "text"
  | "json"
  | {
      readonly schema: Shape
      /** Names the shape, where the vendor wants a name. Default: `"answer"`. */
      readonly name?: string | undefined
      readonly description?: string | undefined
      /** Whether the vendor is to keep to the schema strictly, where it can. Default: true. */
      readonly strict?: boolean | undefined
    }

/** How much the model thinks before it answers, where the vendor can be told. */
export interface Reasoning {
  readonly effort?: "none" | "minimal" | "low" | "medium" | "high" | undefined
  /** The most tokens to think; a whole number from 1. */
  readonly maxTokens?: number | undefined
}

const made = new WeakMap<object, JsonSchema>()

/** The JSON schema of a shape, made once. The left side says why a shape has none. */
export const jsonSchemaOf = (shape: Shape): Either.Either<JsonSchema, string> => {
  if (!Schema.isSchema(shape)) return Either.right(shape)
  const known = made.get(shape)
  if (known !== undefined) return Either.right(known)
  return Either.mapBoth(
    Either.try((): JsonSchema => ({ ...JSONSchema.make(shape) })),
    {
      onLeft: (cause) => (cause instanceof Error ? cause.message : String(cause)),
      onRight: (json) => {
        const { $schema, ...schema } = json
        made.set(shape, schema)
        return schema
      }
    }
  )
}
