/** What an error body says, in whichever of the vendors' shapes it says so. */
import { Either } from "effect"
import * as Json from "./Json.ts"

/** An error body, read. */
export interface ErrorBody {
  /** The parsed body; `undefined` if it is no JSON. */
  readonly json: unknown
  /** The vendor's words, with those of the provider behind a router; an HTML page gives its title. */
  readonly message: string | undefined
  /** Every code, type, status word and reason in it, most specific first, as `normalize` writes them. */
  readonly codes: ReadonlyArray<string>
  /** The HTTP status that the body names. */
  readonly status: number | undefined
  /** The vendor's id of the exchange. */
  readonly requestId: string | undefined
}

/**
 * One spelling for the vendors' many: `rate_limit_error`, `RateLimitError` and `RATE_LIMIT` are `ratelimit`,
 * `ThrottlingException` is `throttling`.
 */
export const normalize = (word: string): string =>
  word
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")
    .replace(/(?:error|exception)$/, "")

/** Reads a body as it came. */
export const parse = (body: string): ErrorBody => parseAt(body, 0)

const parseAt = (body: string, depth: number): ErrorBody => {
  const page = /^\s*(?:<!doctype html|<html|<head|<\?xml)/i.test(body)
  if (page) return { ...nothing, message: /<title[^>]*>([^<]+)/i.exec(body)?.[1]?.trim() ?? "an HTML page" }
  return Either.match(Json.parse(body), {
    onLeft: () => (/^\s*[[{]/.test(body) ? salvage(body) : { ...nothing, message: Json.text(body.trim()) }),
    onRight: (json) => read(json, depth)
  })
}

/** Reads a parsed body. */
export const fromJson = (json: unknown): ErrorBody => read(json, 0)

const read = (json: unknown, depth: number): ErrorBody => {
  const root = Array.isArray(json) ? json[0] : json
  const error = Json.at(root, "error")
  const inner = Json.isRecord(error) ? error : undefined
  const upstream = depth < maxRouters ? behind(Json.at(inner, "metadata", "raw"), depth + 1) : undefined
  const message = messageOf(root, error)
  const status = [inner, root]
    .flatMap((it) => [Json.at(it, "code"), Json.at(it, "status_code"), Json.at(it, "status")])
    .map(httpStatus)
  return {
    json,
    message: [message, upstream?.message].flatMap((text) => text?.slice(0, maxWords) ?? []).join(": ") || undefined,
    codes: [...codesOf(root, error), ...(upstream?.codes ?? [])].map(normalize).filter((code) => code !== ""),
    status: status.find((code) => code !== undefined),
    requestId: Json.text(Json.at(root, "request_id"))
  }
}

const nothing: ErrorBody = { json: undefined, message: undefined, codes: [], status: undefined, requestId: undefined }

/** OpenRouter keeps what the provider behind it said as text, often as JSON within JSON. */
const behind = (raw: unknown, depth: number): ErrorBody | undefined =>
  Json.isRecord(raw) ? read(raw, depth) : typeof raw === "string" ? parseAt(raw.slice(0, maxWords), depth) : undefined

/** How many routers deep an error is looked for. */
const maxRouters = 4

/** Far more than an error quotes, and than any rule looks for, in characters. */
const maxWords = 16_384

/** `{ error: { message } }`, `{ error: "text" }`, `{ message }`, `{ detail }`, `{ fault }`, `{ title }`, a bare text. */
const messageOf = (root: unknown, error: unknown): string | undefined =>
  Json.text(Json.at(error, "message")) ??
  detailOf(Json.at(error, "message")) ??
  Json.text(Json.at(root, "message")) ??
  detailOf(Json.at(root, "message")) ??
  Json.text(error) ??
  detailOf(root) ??
  Json.text(Json.at(root, "fault", "faultstring")) ??
  Json.text(Json.at(root, "title")) ??
  Json.text(root)

/** FastAPI's `detail`: a text, or a list of what is wrong where. */
const detailOf = (value: unknown): string | undefined => {
  const detail = Json.at(value, "detail")
  const complaints = Json.list(detail).map((it) => {
    const where = Json.list(Json.at(it, "loc"))
      .filter((step) => typeof step === "string" || typeof step === "number")
      .join(".")
    return `${where}${where === "" ? "" : ": "}${Json.text(Json.at(it, "msg")) ?? "refused"}`
  })
  return Json.text(detail) ?? Json.text(complaints.join("; "))
}

const codeKeys = ["code", "error_code", "errorcode", "reason", "error_type", "type", "status", "error_name"]

const codesOf = (root: unknown, error: unknown): ReadonlyArray<string> => {
  const holders = [
    Json.at(error, "innererror"),
    Json.at(error, "availability"),
    Json.at(error, "details"),
    ...Json.list(Json.at(error, "details")),
    Json.at(error, "metadata"),
    error,
    root,
    Json.at(root, "fault", "detail"),
    ...Json.list(Json.at(root, "detail"))
  ]
  return [
    ...holders.flatMap((holder) => codeKeys.map((key) => Json.at(holder, key))),
    Json.at(error, "metadata", "limit_source"),
    Json.at(error, "metadata", "provider_code"),
    error
  ].flatMap((code) => (typeof code === "string" ? [code] : typeof code === "number" ? [String(code)] : []))
}

const httpStatus = (code: unknown): number | undefined => {
  const status = typeof code === "string" && /^\d{3}$/.test(code) ? Number(code) : code
  return typeof status === "number" && Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined
}

/** The body was cut, by us or on its way: what can still be made out decides better than the status alone. */
const salvage = (body: string): ErrorBody => {
  const fields = [...body.matchAll(/"(message|code|type|status|reason|error_type)"\s*:\s*"((?:[^"\\]|\\.)*)"/g)]
  const first = fields.find(([, key]) => key === "message")?.[2]
  return {
    ...nothing,
    message: first?.replace(/\\(?:u[0-9a-fA-F]{4}|.)/g, (escape) => Json.text(unescape(escape)) ?? " "),
    codes: fields.filter(([, key]) => key !== "message").map(([, , word]) => normalize(word ?? ""))
  }
}

const unescape = (escape: string): unknown => Either.getOrElse(Json.parse(`"${escape}"`), () => " ")
