/** How long a provider asks to be left alone, in whichever of its ways it says so. */
import * as Json from "./Json.ts"

/** Where hints stand. */
export interface Source {
  /** The HTTP status, or the one that an error within a 200 names. */
  readonly status: number | undefined
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The parsed body; `undefined` if it is no JSON. */
  readonly body: unknown
  /** The vendor's message. */
  readonly message: string
  /** The time to compare dates with where the response has no `date` of its own. */
  readonly nowMillis: number
}

/** What was found. */
export interface RetryHint {
  /** Milliseconds from 0 to 2^31 - 1, fractions rounded up. */
  readonly retryAfterMillis: number | undefined
  /** The provider's own word in `x-should-retry`. */
  readonly shouldRetry: boolean | undefined
}

type Headers = Source["headers"]

/**
 * Reads the wait that a failed response asks for. Official clients look at `retry-after-ms`, then `retry-after`, then
 * the body; the reset of a rate limit comes last, since only the bucket that is used up tells the wait. What cannot be
 * read is no hint. A success gives none: Anthropic sends `retry-after` with answers too.
 */
export const read = (source: Source): RetryHint => {
  const { status, headers } = source
  if (status !== undefined && status < 300) return { retryAfterMillis: undefined, shouldRetry: undefined }
  const word = headers["x-should-retry"]?.trim().toLowerCase()
  return {
    retryAfterMillis: clamp(waitOf(source)),
    shouldRetry: word === "true" ? true : word === "false" ? false : undefined
  }
}

/** The wait in milliseconds that a message speaks of, as in "try again in 7.66s" or "reset after 2m 13s". */
export const fromMessage = (message: string): number | undefined => {
  const phrase = spokenWait.exec(message)
  return phrase?.[1] === undefined ? undefined : durationMillis(phrase[1])
}

/** The vendor's time where the response says it, for its dates are by its own clock. */
export const nowOf = ({ headers, nowMillis }: Pick<Source, "headers" | "nowMillis">): number =>
  dateMillis(headers.date) ?? nowMillis

const waitOf = (source: Source): number | undefined => {
  const { status, headers, body } = source
  const nowMillis = nowOf(source)
  const own = headersIn(body)
  // A reset tells when the window ends even where nothing ran out, so it counts only where a limit was hit.
  const isLimit = status === undefined || status === 429
  const isBusy = isLimit || status === 402 || status >= 498
  return (
    fromHeaders(headers, nowMillis) ??
    fromHeaders(own, nowMillis) ??
    fromBody(body) ??
    (isBusy ? fromMessage(source.message) : undefined) ??
    (isLimit ? (fromResets(headers, nowMillis) ?? fromResets(own, nowMillis)) : undefined)
  )
}

const fromHeaders = (headers: Headers, nowMillis: number): number | undefined =>
  decimal(headers["retry-after-ms"]) ??
  decimal(headers["x-ms-retry-after-ms"]) ??
  seconds(headers["retry-after"]) ??
  until(dateMillis(headers["retry-after"]), nowMillis)

/** Google's `RetryInfo`, Cloudflare's `retry_after`, OpenRouter's `availability.retry_after`. */
const fromBody = (body: unknown): number | undefined => {
  const root = Array.isArray(body) ? body[0] : body
  const error = Json.at(root, "error")
  for (const holder of [
    error,
    Json.at(error, "availability"),
    Json.at(error, "metadata"),
    Json.at(error, "details"),
    root
  ]) {
    const wait =
      decimal(Json.at(holder, "retry_after_ms")) ??
      seconds(Json.at(holder, "retry_after")) ??
      seconds(Json.at(holder, "retry_after_seconds"))
    if (wait !== undefined) return wait
  }
  const info = Json.list(Json.at(error, "details")).find((detail) => Json.at(detail, "retryDelay") !== undefined)
  return seconds(Json.at(info, "retryDelay"))
}

/** OpenRouter hands on the headers of its own limiter within the body. */
const headersIn = (body: unknown): Headers => {
  const headers = Json.at(body, "error", "metadata", "headers")
  if (!Json.isRecord(headers)) return {}
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name.toLowerCase(), String(value)]] : []
    )
  )
}

const fromResets = (headers: Headers, nowMillis: number): number | undefined => {
  const buckets = Object.entries(headers).flatMap(([name, value]) => {
    const remaining = remainingHeader(name)
    const wait = remaining === undefined ? undefined : resetMillis(value, nowMillis)
    return remaining === undefined || wait === undefined ? [] : [{ remaining: decimal(headers[remaining]), wait }]
  })
  // Azure at times sends the reset alone: then it is the one that ran out.
  const isTold = buckets.some(({ remaining }) => remaining !== undefined)
  const empty = buckets.filter(({ remaining }) => (isTold ? remaining === 0 : true))
  return empty.length === 0 ? undefined : empty.reduce((longest, { wait }) => Math.max(longest, wait), 0)
}

/** The header that says what is left in the bucket whose reset this header tells. */
const remainingHeader = (name: string): string | undefined =>
  /^(?:x-)?ratelimit-reset(?:-|$)/.test(name)
    ? name.replace("reset", "remaining")
    : /^anthropic-ratelimit-.+-reset$/.test(name)
      ? name.replace(/reset$/, "remaining")
      : undefined

/** A Go duration, seconds, an epoch in seconds or milliseconds, or a date: vendors differ. */
export const resetMillis = (value: string | undefined, nowMillis: number): number | undefined => {
  const number = decimal(value)
  if (number === undefined) return seconds(value) ?? until(dateMillis(value), nowMillis)
  return number >= 1e11 ? until(number, nowMillis) : number >= 1e9 ? until(number * 1000, nowMillis) : number * 1000
}

/** Seconds, with or without a unit. */
const seconds = (value: unknown): number | undefined => {
  const number = decimal(value)
  return number === undefined ? (typeof value === "string" ? durationMillis(value) : undefined) : number * 1000
}

/** A number from zero, or a text that is one and nothing else. */
export const decimal = (value: unknown): number | undefined =>
  typeof value === "number"
    ? value >= 0
      ? value
      : undefined
    : typeof value === "string" && /^\s*\d+(?:\.\d+)?\s*$/.test(value)
      ? Number(value)
      : undefined

const units = [
  [/^(?:ns|nanos?(?:econds?)?)$/, 1e-6],
  [/^(?:[uµμ]s|micros?(?:econds?)?)$/, 1e-3],
  [/^(?:ms|msecs?|millis?(?:econds?)?)$/, 1],
  [/^s(?:ecs?|econds?)?$/, 1000],
  [/^m(?:ins?|inutes?)?$/, 60_000],
  [/^h(?:rs?|ours?)?$/, 3_600_000],
  [/^d(?:ays?)?$/, 86_400_000]
] as const

const piece = "\\d+(?:\\.\\d+)?\\s*[a-zµμ]+"

const spokenWait = new RegExp(
  `\\b(?:(?:try|retry)(?:ing)?(?: again)?|resets?|available(?: again)?|wait)(?: in| after| for)?:? ` +
    `(?:about |approximately |~ ?)?(${piece}(?:(?:,| and|,? )?\\s*${piece})*)`,
  "i"
)

/** `6m0s`, `120ms`, `2m 13s`, `37 seconds`: the sum of the pieces up to the first that is none. */
const durationMillis = (text: string): number | undefined => {
  let sum: number | undefined
  // No number is begun within another, or the time would be the square of its length.
  for (const [, number, word] of text.toLowerCase().matchAll(/(?<!\d)(\d+(?:\.\d+)?)\s*([a-zµμ]+)/g)) {
    const unit = units.find(([name]) => name.test(word ?? ""))
    if (unit === undefined) return sum
    sum = (sum ?? 0) + Number(number) * unit[1]
  }
  return sum
}

const dateForm =
  /^(?:[a-z]+, ?\d{1,2}[ -][a-z]{3}[ -]\d{2,4} \d{2}:\d{2}:\d{2} gmt|\d{4}-\d{2}-\d{2}t\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2}))$/i

/** An HTTP date or one of RFC 3339. The form is checked first, as `Date.parse` finds a date in nearly every text. */
const dateMillis = (value: string | undefined): number | undefined => {
  const millis = value !== undefined && dateForm.test(value.trim()) ? Date.parse(value.trim()) : Number.NaN
  return Number.isNaN(millis) ? undefined : millis
}

const until = (millis: number | undefined, nowMillis: number): number | undefined =>
  millis === undefined ? undefined : Math.max(0, millis - nowMillis)

/** A timer that is set beyond 2^31 - 1 ms never fires. The tiny difference undoes what binary fractions add. */
const clamp = (millis: number | undefined): number | undefined =>
  millis === undefined || !(millis >= 0) ? undefined : Math.min(2 ** 31 - 1, Math.ceil(millis - 1e-6))
