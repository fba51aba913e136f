/** Checks of option values. What they refuse names the option, the value and what is allowed. */
import { ConfigError, Duration, Either } from "effect"

/** The longest time that a timer can wait: 2^31 - 1 ms, about 24.8 days. Beyond it a timer would fire at once or never. */
export const maxTimerMillis = 2 ** 31 - 1

type Checked<A> = Either.Either<A, ConfigError.ConfigError>

const show = (value: unknown): string =>
  Array.isArray(value)
    ? value.length === 0
      ? "an empty list"
      : "a list"
    : typeof value === "string"
      ? JSON.stringify(value)
      : Duration.isDuration(value)
        ? Duration.format(value)
        : String(value)

/** An option that is refused: the error names the option, its value and what is allowed. */
export const refuse = (option: string, value: unknown, allowed: string): Checked<never> =>
  Either.left(ConfigError.InvalidData(option.split("."), `${option} is ${show(value)}; allowed: ${allowed}`))

/** A number of at least `min` and at most `max`. */
export const number = (option: string, value: unknown, min: number, max: number): Checked<number> =>
  typeof value === "number" && value >= min && value <= max
    ? Either.right(value)
    : refuse(option, value, `a number from ${min} to ${max}`)

/** A number above zero. */
export const positive = (option: string, value: unknown): Checked<number> =>
  typeof value === "number" && value > 0 && Number.isFinite(value)
    ? Either.right(value)
    : refuse(option, value, "a number above 0")

/** A whole number of at least `min`, and at most `max` where there is a limit. */
export const wholeNumber = (
  option: string,
  value: unknown,
  min: number,
  max = Number.MAX_SAFE_INTEGER
): Checked<number> =>
  Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
    ? Either.right(value as number)
    : refuse(option, value, `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`}`)

/** A duration, in milliseconds: not negative, not longer than a timer can wait; above zero if so wanted. */
export const durationMillis = (option: string, value: unknown, least: "zero" | "above-zero"): Checked<number> => {
  const allowed = `a duration ${least === "zero" ? "from 0" : "above 0"} to ${maxTimerMillis} ms, such as 500 or "2 seconds"`
  // Duration takes NaN and negative numbers for zero, so these are refused before it sees them.
  const isSane = typeof value === "number" ? value >= 0 : typeof value === "string" ? !value.startsWith("-") : true
  const millis = isSane ? Duration.decodeUnknown(value) : undefined
  if (millis === undefined || millis._tag === "None") return refuse(option, value, allowed)
  const number = Duration.toMillis(millis.value)
  return number <= maxTimerMillis && (number > 0 || least === "zero")
    ? Either.right(number)
    : refuse(option, value, allowed)
}

/** One of some words. */
export const oneOf = <const A>(option: string, value: unknown, words: ReadonlyArray<A>): Checked<A> => {
  const word = words.find((word) => word === value)
  return word === undefined ? refuse(option, value, words.map(show).join(", ")) : Either.right(word)
}

/** An object with no other keys than those known, so that a misspelt option does not pass in silence. */
export const knownKeys = (option: string, value: unknown, keys: ReadonlyArray<string>): Checked<void> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse(option, value, `an object with ${keys.join(", ")}`)
  }
  const stranger = Object.keys(value).find((key) => !keys.includes(key))
  if (stranger === undefined) return Either.right(undefined)
  const path = option === "" ? [stranger] : [...option.split("."), stranger]
  return Either.left(ConfigError.InvalidData(path, `${path.join(".")} is not an option; allowed: ${keys.join(", ")}`))
}
