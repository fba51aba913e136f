/** What adapters can be told about their vendor, and how it is checked. */
import { Config, ConfigError, type Duration, Effect, Either, Redacted } from "effect"
import type { Capabilities } from "../model/Capabilities.ts"
import * as OptionCheck from "../model/OptionCheck.ts"
import type * as Exchange from "./Exchange.ts"
import * as Json from "./Json.ts"
import type { Limits } from "./Provider.ts"
import { byShape } from "./Redaction.ts"

/** The options of every vendor. */
export interface VendorOptions {
  /** The model that is asked, in the vendor's spelling. */
  readonly model: string
  /** Shown in responses, errors and events; unique within a list of providers. Default: the vendor's name. */
  readonly name?: string | undefined
  /** The key; a string is wrapped at once. Default: read from the vendor's variable when the provider is built. */
  readonly apiKey?: Redacted.Redacted | string | undefined
  /** The address before the path of the wire, for a proxy or a region. Default: the vendor's. */
  readonly baseUrl?: string | undefined
  /** The most tokens to write for requests that do not say so, a whole number from 1. Default: the vendor's. */
  readonly maxTokens?: number | undefined
  /** The most that one attempt may take; wins over the options' `timeouts.attempt`. */
  readonly timeout?: Duration.DurationInput | undefined
  /**
   * How much is read of the body of a success, in bytes after decompression, a whole number from 1. A longer one fails
   * with `InvalidResponseError`, as does a stream that is answered with one body instead of events. Default: 67108864,
   * which is 64 MiB.
   */
  readonly maxResponseBytes?: number | undefined
  /** The provider's own limits; each that is set wins over the options' `limits`. */
  readonly limits?: Limits | undefined
  /** What the model can do, where it is not what the vendor's models mostly can; each that is set wins. */
  readonly capabilities?: Capabilities | undefined
  /** The model that embeds. Default: `model`. */
  readonly embeddingModel?: string | undefined
  /** The space of its vectors. Default: one for each vendor and embedding model. */
  readonly embeddingSpace?: string | undefined
  /** Headers to send too; they win over those that LlmFuse would send, `user-agent` among them. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** What an adapter knows when it is built. */
export interface Target extends Pick<VendorOptions, "model" | "apiKey" | "maxTokens" | "maxResponseBytes" | "headers"> {
  readonly name: string
  readonly baseUrl: string
  /** The path of the wire, with a leading slash. */
  readonly path: string
  /** The variable to read a missing key from. Absent: no key is needed. */
  readonly variable?: string | undefined
  /** The header for the key, and what stands before the key. Default: `authorization`, `Bearer `. */
  readonly keyHeader?: { readonly header: string; readonly prefix: string } | undefined
  /** What the vendor's wire asks for. */
  readonly wireHeaders?: Readonly<Record<string, string>> | undefined
  /** What a body of the wire says of usage. */
  readonly usageIn: Exchange.Endpoint["usageIn"]
}

const bearer = { header: "authorization", prefix: "Bearer " }

/**
 * Checks the options and finds the key. Fails with a `ConfigError` that names the option, its value and what is
 * allowed, or the variable in which the key is missing; never with a key or the credentials of a URL.
 */
export const resolve = Effect.fnUntraced(function* (target: Target) {
  const { name, model, maxTokens, maxResponseBytes, usageIn } = target
  if (Json.text(name) === undefined) return yield* OptionCheck.refuse("name", name, "a text that is not empty")
  if (Json.text(model) === undefined) {
    return yield* OptionCheck.refuse(`${name}.model`, model, "a text that is not empty")
  }
  if (maxTokens !== undefined) yield* OptionCheck.wholeNumber(`${name}.maxTokens`, maxTokens, 1)
  if (maxResponseBytes !== undefined) yield* OptionCheck.wholeNumber(`${name}.maxResponseBytes`, maxResponseBytes, 1)
  const url = yield* address(target)
  const ownHeaders = yield* sendable(name, target.headers)
  const value = yield* keyOf(target)
  const key = value === undefined ? undefined : { ...(target.keyHeader ?? bearer), value }
  return {
    name,
    url,
    key,
    headers: target.wireHeaders,
    ownHeaders,
    maxResponseBytes,
    usageIn
  } satisfies Exchange.Endpoint
})

type Checked<A> = Either.Either<A, ConfigError.ConfigError>

/** The whole address; a query of the base stays at its end. */
const address = (target: Target): Checked<string> => {
  const option = `${target.name}.baseUrl`
  const allowed = `an http or https URL without user name and password, such as "https://api.example.com/v1"`
  const url = URL.canParse(target.baseUrl) ? new URL(target.baseUrl) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    return OptionCheck.refuse(option, typeof target.baseUrl === "string" ? byShape(target.baseUrl) : url, allowed)
  }
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${target.path}`
  url.hash = ""
  return Either.right(url.href)
}

/** Header names and values that no client would send are refused here: a client's own words for it hold the value. */
const sendable = (name: string, headers: VendorOptions["headers"]): Checked<VendorOptions["headers"]> => {
  if (headers !== undefined && !Json.isRecord(headers)) {
    return OptionCheck.refuse(`${name}.headers`, headers, "an object from header names to texts")
  }
  const bad = Object.entries(headers ?? {}).find(
    ([header, value]) =>
      !/^[!#$%&'*+.^`|~\w-]+$/.test(header) || typeof value !== "string" || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)
  )
  return bad === undefined
    ? Either.right(headers)
    : Either.left(
        ConfigError.InvalidData(
          [name, "headers", bad[0]],
          `${name}.headers has ${JSON.stringify(bad[0])} with a name or value that HTTP cannot carry; allowed: visible characters`
        )
      )
}

/** The key that was given, else that of the variable; blanks around it are dropped, as files end with a newline. */
const keyOf = (target: Target): Effect.Effect<Redacted.Redacted | undefined, ConfigError.ConfigError> => {
  const { name, apiKey, variable } = target
  if (apiKey !== undefined && apiKey !== null) return checkedKey([name, "apiKey"], apiKey)
  if (variable === undefined) return Effect.void as Effect.Effect<undefined>
  return Config.redacted(variable).pipe(
    // Config redacts its own words too, and would not say what is missing.
    Effect.mapError((error) =>
      error._op === "MissingData"
        ? ConfigError.MissingData(
            error.path,
            `${variable} is not set; it holds the API key of ${name}, unless apiKey is given`
          )
        : error
    ),
    Effect.flatMap((key) => checkedKey([variable], key))
  )
}

const checkedKey = (path: Array<string>, given: Redacted.Redacted | string): Checked<Redacted.Redacted> => {
  const value: unknown = Redacted.isRedacted(given) ? Redacted.value(given) : given
  const key = typeof value === "string" ? value.trim() : ""
  const what = path.join(".")
  if (key === "") {
    return Either.left(ConfigError.InvalidData(path, `${what} is empty or no text; allowed: an API key`))
  }
  return /^[\x21-\x7e]+$/.test(key)
    ? Either.right(Redacted.make(key))
    : Either.left(
        ConfigError.InvalidData(path, `${what} holds blanks or letters that HTTP cannot carry; allowed: an API key`)
      )
}
