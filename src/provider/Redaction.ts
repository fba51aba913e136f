/** Keeps keys out of what people get to see. */
import { Either } from "effect"

/** Takes secrets out of a text. */
export type Redact = (text: string) => string

const mark = "<redacted>"

/** What looks like a secret wherever it stands: vendors' keys, bearer tokens, credentials and keys within URLs. */
const shapes: ReadonlyArray<readonly [form: RegExp, replacement: string]> = [
  [/\b(Bearer\s+)[A-Za-z0-9._~+/=-]{16,}/gi, `$1${mark}`],
  [/\b(?:sk|gsk|csk|xai|pplx|tgp|fw|hf|r8)[-_][A-Za-z0-9_-]{16,}/g, mark],
  [/\bAIza[A-Za-z0-9_-]{20,}/g, mark],
  [/(:\/\/)[^\s/?#@]+@/g, `$1${mark}@`],
  [/([?&](?:key|api[-_]?key|token|access[-_]?token|sig)=)[^&\s"']+/gi, `$1${mark}`]
]

/** Takes out what looks like a secret. */
export const byShape: Redact = (text) =>
  shapes.reduce((seen, [form, replacement]) => seen.replace(form, replacement), text)

/** Takes out the given secrets, as they are and as a URL or JSON would write them, and what looks like a secret. */
export const make = (secrets: ReadonlyArray<string>): Redact => {
  const spellings = secrets
    .filter((secret) => secret !== "")
    .flatMap((secret) => [secret, urlSpelling(secret), JSON.stringify(secret).slice(1, -1)])
    .sort((one, other) => other.length - one.length)
  const unique = [...new Set(spellings)]
  return (text) => byShape(unique.reduce((seen, secret) => seen.replaceAll(secret, mark), text))
}

/** One line of at most `limit` characters, without control characters. Redact before: a cut may leave half a key. */
export const oneLine = (text: string, limit = 300): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const line = text.replace(/[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim()
  return line.length <= limit ? line : `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "")}…`
}

const urlSpelling = (secret: string): string =>
  Either.getOrElse(
    Either.try(() => encodeURIComponent(secret)),
    () => secret
  )
