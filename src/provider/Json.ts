/** Looking into JSON whose shape nobody has promised. */
import { Either } from "effect"

/** The value that a text describes; the left side if it is no JSON. Blanks around it are allowed. */
export const parse = (text: string): Either.Either<unknown, unknown> =>
  Either.try((): unknown => JSON.parse(text.replace(/^\uFEFF/, "")))

/** Whether a value is an object with keys, and no array. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What stands at a path of keys; `undefined` wherever it breaks off. */
export const at = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, key) => (isRecord(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value)

/** The value if it is a text that is not empty. */
export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** The value if it is a finite number. */
export const number = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/** The value if it is a number that something can be counted with: whole, and not below zero. */
export const count = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** The elements of an array; none if it is no array. */
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The text of a value; the left side if it has none, as a circle, a bigint or a function. */
export const write = (value: unknown): Either.Either<string, unknown> =>
  Either.flatMap(
    Either.try((): unknown => JSON.stringify(value)),
    (text) => (typeof text === "string" ? Either.right(text) : Either.left(text))
  )
