/** JSON schemas as OpenAI's wire wants them. */
import { Either } from "effect"
import { type JsonSchema, jsonSchemaOf, type Shape } from "../model/Tool.ts"
import * as Json from "./Json.ts"

/** No arguments. */
const nothing: JsonSchema = { type: "object", properties: {} }

/**
 * The JSON schema of a shape, with an object at its root instead of a reference to one: vendors look at the type there.
 * Requests whose shapes have no JSON schema do not come here.
 */
export const of = (shape: Shape | undefined): JsonSchema =>
  shape === undefined ? nothing : withRoot(Either.getOrElse(jsonSchemaOf(shape), () => nothing))

const withRoot = (schema: JsonSchema): JsonSchema => {
  const name = /^#\/(\$defs|definitions)\/(.+)$/.exec(Json.text(schema.$ref) ?? "")
  const [, holder = "", key = ""] = name ?? []
  const root = Json.at(schema, holder, key.replaceAll("~1", "/").replaceAll("~0", "~"))
  if (!Json.isRecord(root)) return schema
  const { $ref: _ref, ...rest } = schema
  return { ...root, ...rest }
}

/** Why OpenAI would not keep to a schema strictly; `undefined` if it would. */
export const strictObstacle = (schema: JsonSchema): string | undefined =>
  schema.type !== "object" ? "its root is no object" : obstacleIn(schema, "it")

/** What strict schemas must not hold. */
const forbidden = [
  ..."allOf oneOf not if then else default minLength maxLength prefixItems contains uniqueItems".split(" "),
  ..."patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas".split(" "),
  ..."unevaluatedProperties unevaluatedItems minContains maxContains".split(" ")
]

const obstacleIn = (schema: unknown, at: string): string | undefined => {
  if (!Json.isRecord(schema)) return `${at} may be anything`
  const word = forbidden.find((key) => Object.hasOwn(schema, key))
  if (word !== undefined) return `${at} has ${word}`
  const { type, items, anyOf, $defs, definitions } = schema
  const isSaid = ["type", "anyOf", "enum", "const", "$ref"].some((key) => schema[key] !== undefined)
  if (!isSaid) return `${at} may be anything`
  const types: ReadonlyArray<unknown> = Array.isArray(type) ? type : [type]
  return (
    (types.includes("object") ? ofObject(schema, at) : undefined) ??
    (types.includes("array") ? obstacleIn(items, `${at}[]`) : undefined) ??
    first(Json.list(anyOf).map((one) => [at, one] as const)) ??
    first(Object.entries({ ...asRecord($defs), ...asRecord(definitions) }))
  )
}

const ofObject = (schema: Readonly<Record<string, unknown>>, at: string): string | undefined => {
  if (schema.additionalProperties !== false) return `${at} may have other properties`
  const properties = Object.entries(asRecord(schema.properties))
  const required = Json.list(schema.required)
  const optional = properties.find(([key]) => !required.includes(key))
  return optional === undefined
    ? first(properties.map(([key, value]) => [`${at}.${key}`, value]))
    : `${at}.${optional[0]} is optional`
}

const first = (schemas: ReadonlyArray<readonly [at: string, schema: unknown]>): string | undefined =>
  schemas.map(([at, schema]) => obstacleIn(schema, at)).find((obstacle) => obstacle !== undefined)

const asRecord = (value: unknown): Readonly<Record<string, unknown>> => (Json.isRecord(value) ? value : {})
