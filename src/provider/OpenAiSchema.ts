/** JSON schemas as vendors of OpenAI's wire take them. */
import { Either } from "effect"
import { type JsonSchema, jsonSchemaOf, type Shape } from "../model/Tool.ts"
import * as Json from "./Json.ts"

/** No arguments. */
const nothing: JsonSchema = { type: "object", properties: {} }

const made = new WeakMap<object, JsonSchema>()

/** How much a schema may hold once its definitions stand in place. */
const maxNodes = 20_000

/**
 * The JSON schema of a shape, with what it refers to in place of the references: many servers look at the type of the
 * root and of properties, and nowhere else. What refers to itself stays as it is. Requests whose shapes have no JSON
 * schema do not come here.
 */
export const of = (shape: Shape | undefined): JsonSchema => {
  const schema = shape === undefined ? nothing : Either.getOrElse(jsonSchemaOf(shape), () => nothing)
  const known = made.get(schema)
  if (known !== undefined) return known
  const flat = inPlace(schema)
  made.set(schema, flat)
  return flat
}

const inPlace = (schema: JsonSchema): JsonSchema => {
  const { $defs, definitions, ...root } = schema
  let isRecursive = false
  let room = maxNodes
  const resolve = (node: unknown, within: ReadonlyArray<unknown>): unknown => {
    room -= 1
    if (room < 0) return undefined
    if (Array.isArray(node)) return node.map((it) => resolve(it, within))
    if (!Json.isRecord(node)) return node
    const { $ref, ...beside } = node
    const target = definitionOf(schema, $ref)
    if (target !== undefined && !within.includes($ref)) return resolve({ ...target, ...beside }, [...within, $ref])
    if (typeof $ref === "string") isRecursive = true
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, resolveUnder(key, value, within)]))
  }
  const resolveUnder = (key: string, value: unknown, within: ReadonlyArray<unknown>): unknown => {
    if (["enum", "const", "default", "examples", "required"].includes(key)) return value
    if (key !== "properties" || !Json.isRecord(value)) return resolve(value, within)
    return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, resolve(property, within)]))
  }
  const flat = resolve(root, []) as JsonSchema
  // Definitions within definitions can be too much in place: then they stay references.
  if (room < 0) return schema
  if (!isRecursive) return flat
  return { ...flat, ...($defs === undefined ? {} : { $defs }), ...(definitions === undefined ? {} : { definitions }) }
}

const definitionOf = (schema: JsonSchema, ref: unknown): Readonly<Record<string, unknown>> | undefined => {
  const [, holder = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(Json.text(ref) ?? "") ?? []
  const definition = Json.at(schema, holder, name.replaceAll("~1", "/").replaceAll("~0", "~"))
  return Json.isRecord(definition) ? definition : undefined
}

/** Why OpenAI would not keep to a schema strictly, in words that follow its name; `undefined` if it would. */
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
