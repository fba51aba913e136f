/** One text for one value: equal for what is equal, different for what is not. */
import { Encoding } from "effect"

/**
 * The text of a value, which is JSON where the value is: keys in the order of the alphabet, except that the
 * `properties` of a JSON schema keep theirs, in which models write. A key without a value (`undefined`) is as none.
 * Bytes, dates and numbers that JSON lacks are told apart from everything else. `undefined` for what might hide
 * something or has no end: functions, symbols, maps, instances of classes, circles.
 */
export const canonicalText = (value: unknown): string | undefined => write(value, [], false)

const write = (value: unknown, around: ReadonlyArray<object>, isOrdered: boolean): string | undefined => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value)
    case "number":
    case "boolean":
    case "undefined":
      return String(value)
    case "bigint":
      return `${value}n`
    case "object":
      return value === null ? "null" : writeObject(value, around, isOrdered)
    default:
      return undefined
  }
}

const writeObject = (value: object, around: ReadonlyArray<object>, isOrdered: boolean): string | undefined => {
  if (around.includes(value)) return undefined
  const within = [...around, value]
  if (Array.isArray(value)) {
    return joined(
      "[",
      "]",
      Array.from(value, (item: unknown) => write(item, within, false))
    )
  }
  if (value instanceof Uint8Array) return `bytes(${Encoding.encodeBase64(value)})`
  if (value instanceof Date) return `date(${value.getTime()})`
  if (!isPlain(value)) return undefined
  const fields = Object.entries(value).filter(([, item]) => item !== undefined)
  if (!isOrdered) fields.sort(([one], [other]) => (one < other ? -1 : 1))
  return joined(
    "{",
    "}",
    fields.map(([key, item]) => {
      const text = write(item, within, key === "properties")
      return text === undefined ? undefined : `${JSON.stringify(key)}:${text}`
    })
  )
}

const joined = (open: string, close: string, texts: ReadonlyArray<string | undefined>): string | undefined =>
  texts.includes(undefined) ? undefined : `${open}${texts.join(",")}${close}`

/** Of a literal, or of `JSON.parse`, in whichever realm. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
