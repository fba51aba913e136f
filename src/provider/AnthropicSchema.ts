/** JSON schemas as Anthropic's Messages want them. */
import { Either } from "effect"
import { type JsonSchema, jsonSchemaOf, type Shape } from "../model/Tool.ts"
import * as Json from "./Json.ts"

/** The JSON schema of a shape, the reference at its top followed. A shape without one was refused before anybody is asked. */
export const of = (shape: Shape): JsonSchema => {
  const schema = Either.getOrElse(jsonSchemaOf(shape), (): JsonSchema => ({}))
  const name = /^#\/\$defs\/([^/]+)$/.exec(String(schema.$ref))?.[1]
  const target = Json.at(schema, "$defs", (name ?? "").replaceAll("~1", "/").replaceAll("~0", "~"))
  return Json.isRecord(target) ? { ...target, $defs: schema.$defs } : schema
}

/** Whether a schema can stand at the top of a tool's input. */
export const isObject = (schema: JsonSchema): boolean => schema.type === "object"

/** The input of a tool: an object. What is no object by its own words is called one. */
export const inputOf = (shape: Shape | undefined): JsonSchema => {
  const schema = shape === undefined ? {} : of(shape)
  if (isObject(schema)) return schema
  // An Effect struct without fields is any object or array.
  return schema.$id === "/schemas/{}" || Object.keys(schema).length === 0
    ? { type: "object", properties: {} }
    : { ...schema, type: "object" }
}

/** An object with the value under a key; definitions stay at the top, where references look for them. */
export const under = (key: string, { $defs, ...schema }: JsonSchema): JsonSchema => ({
  type: "object",
  properties: { [key]: schema },
  required: [key],
  additionalProperties: false,
  ...($defs === undefined ? {} : { $defs })
})

const kept = ["type", "enum", "const", "$ref", "title", "required"]

const formats = "date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" ")

/**
 * The schema in the part of JSON Schema that the vendor keeps to by itself; limits become words of the description.
 * `undefined` where that would change what fits, as with keys that are not known beforehand.
 */
export const strict = (schema: JsonSchema): JsonSchema | undefined => {
  const trouble = { isThere: false }
  const made = strictly(schema, trouble)
  return trouble.isThere ? undefined : made
}

const strictly = (schema: unknown, trouble: { isThere: boolean }): JsonSchema => {
  if (!Json.isRecord(schema)) {
    trouble.isThere = true
    return {}
  }
  const { properties, items, anyOf, oneOf, allOf, $defs, additionalProperties = false, description, ...rest } = schema
  const inner = (value: unknown) => strictly(value, trouble)
  const each = (values: unknown) =>
    Object.fromEntries(Object.entries(Json.isRecord(values) ? values : {}).map(([key, value]) => [key, inner(value)]))
  const branches = anyOf ?? oneOf ?? allOf
  const isTyped = ["type", "enum", "const", "$ref"].some((key) => key in rest) || Array.isArray(branches)
  const isOpen = additionalProperties !== false || "patternProperties" in rest
  if (!isTyped || isOpen) trouble.isThere = true
  const isKept = (key: string, value: unknown) =>
    kept.includes(key) ||
    (key === "format" && formats.includes(String(value))) ||
    (key === "minItems" && (value === 0 || value === 1))
  const entries = Object.entries(rest).filter(([key]) => key !== "$schema" && key !== "$id")
  const limits = entries
    .filter(([key, value]) => !isKept(key, value))
    .map(([key, it]) => `${key}: ${JSON.stringify(it)}`)
  const words = [Json.text(description) ?? "", limits.length === 0 ? "" : `{${limits.join(", ")}}`].filter(
    (it) => it !== ""
  )
  return {
    ...Object.fromEntries(entries.filter(([key, value]) => isKept(key, value))),
    ...(words.length === 0 ? {} : { description: words.join("\n\n") }),
    ...(rest.type === "object" ? { properties: each(properties), additionalProperties: false } : {}),
    ...(items === undefined ? {} : { items: inner(items) }),
    ...(Array.isArray(branches) ? { [allOf === branches ? "allOf" : "anyOf"]: branches.map(inner) } : {}),
    ...($defs === undefined ? {} : { $defs: each($defs) })
  }
}
