/** Which failure it is: the first rule that holds. */
import { normalize } from "./ErrorBody.ts"
import * as Json from "./Json.ts"
import * as RetryHint from "./RetryHint.ts"

/** What a failure can be. */
export type Kind =
  | "RateLimit"
  | "QuotaExhausted"
  | "Overloaded"
  | "Server"
  | "Timeout"
  | "Authentication"
  | "ModelNotFound"
  | "InvalidRequest"
  | "ContextLength"
  | "PromptBlocked"
  | "ResponseBlocked"
  | "InvalidResponse"

/** What the rules look at. */
export interface Facts {
  /** The HTTP status; for an error within a 200 the one that it names, if it does. */
  readonly status: number | undefined
  /** The codes of the body as `ErrorBody.normalize` writes them. */
  readonly codes: ReadonlyArray<string>
  /** The vendor's message; the empty string if there is none. */
  readonly message: string
  /** The parsed body. */
  readonly body: unknown
  /** Whether some of the answer had come: the prompt was taken then. Default: no. */
  readonly isBegun?: boolean | undefined
}

interface Rule {
  readonly kind: Kind
  readonly when: (facts: Facts) => boolean
}

/** Which failure it is. A body without a known status or code is an invalid response. */
export const decide = (facts: Facts): Kind => {
  const kind = rules.find((rule) => rule.when(facts))?.kind ?? "InvalidResponse"
  return kind === "PromptBlocked" && facts.isBegun === true ? "ResponseBlocked" : kind
}

/** The HTTP status that the codes of an error within a 200 stand for. */
export const statusOf = (codes: ReadonlyArray<string>): number | undefined => {
  const named = codes.map((code) => statusOfCode.get(code)).filter((status) => status !== undefined)
  // `invalid_request_error` stands beside a telling code so often that it counts only where it is alone.
  return named.find((status) => status !== 400) ?? named[0]
}

const has = (words: string) => {
  const known = new Set(words.trim().split(/\s+/).map(normalize))
  return ({ codes }: Facts) => codes.some((code) => known.has(code))
}

const says =
  (...forms: ReadonlyArray<RegExp>) =>
  ({ message }: Facts) =>
    forms.some((form) => form.test(message))

const is =
  (...statuses: ReadonlyArray<number | undefined>) =>
  ({ status }: Facts) =>
    statuses.includes(status)

const all =
  (...conditions: ReadonlyArray<(facts: Facts) => boolean>) =>
  (facts: Facts) =>
    conditions.every((condition) => condition(facts))

const isFrom =
  (least: number, below = 600) =>
  ({ status }: Facts) =>
    status !== undefined && status >= least && status < below

/** The statuses under which vendors say what is wrong with a request, by design or by mistake. */
const isAboutRequest = is(400, 403, 413, 422, 500, undefined)

/** A request that is by itself larger than the limit per minute: "Limit 30000, Requested 41250". */
const isOverWindowAlone = ({ message }: Facts): boolean => {
  const [, limit, requested] = /\blimit:? (\d+), requested:? (\d+)/i.exec(message) ?? []
  return /^request too large\b/i.test(message) || Number(requested) > Number(limit)
}

/** The first window that the message names: a limit of a day or more is a quota, for a call cannot wait for it. */
const namesLongWindow = ({ message }: Facts): boolean => {
  const window = /\bper[ -]?(sec|min|hour|day|week|month)|\b[rt]p([smhd])\b/i.exec(message)
  return /^(?:day|week|month|d)$/i.test(window?.[1] ?? window?.[2] ?? "")
}

const violationsOf = ({ body }: Facts): ReadonlyArray<unknown> =>
  Json.list(Json.at(Array.isArray(body) ? body[0] : body, "error", "details")).flatMap((detail) =>
    Json.list(Json.at(detail, "violations"))
  )

/** Google's `QuotaFailure`: its text says "exceeded your current quota" for every window, its `quotaId` tells which. */
const violates = (form: RegExp) => (facts: Facts) =>
  violationsOf(facts).some((violation) => form.test(Json.text(Json.at(violation, "quotaId")) ?? ""))

/** A limit of zero: the tier does not have the model at all, whatever wait is named beside it. */
const isLimitZero = (facts: Facts): boolean =>
  /\blimit: 0\b(?!\.\d)/.test(facts.message) ||
  violationsOf(facts).some((violation) => Json.at(violation, "quotaValue") === "0")

const aDay = 86_400_000

const rules: ReadonlyArray<Rule> = [
  {
    kind: "PromptBlocked",
    when: has(`content_filter content_policy_violation invalid_prompt ResponsibleAIPolicyViolation moderation_blocked
      content_moderation`)
  },
  // OpenRouter's moderation, with what was flagged beside it.
  { kind: "PromptBlocked", when: ({ body }) => Json.at(body, "error", "metadata", "flagged_input") !== undefined },
  {
    kind: "PromptBlocked",
    when: all(
      is(400, 403, 422, undefined),
      says(
        /\bviolat(?:es?|ed|ing) (?:our |the |xai'?s )?(?:usage|content|safety|acceptable use) (?:guidelines?|polic(?:y|ies))\b/i,
        /\b(?:prompt|input|message)\b.{0,40}\b(?:flagged|blocked|filtered)\b.{0,60}\b(?:usage|content|safety|moderation)\b/i,
        /\brejected (?:as a result of|by) our (?:safety|moderation) system\b/i
      )
    )
  },
  { kind: "ResponseBlocked", when: has("refusal") },
  { kind: "ResponseBlocked", when: all(is(400, undefined), says(/^output blocked by content filter/i)) },
  // Groq: the model wrote a call or JSON that does not fit. It comes as a 400, yet another sample often fits.
  { kind: "InvalidResponse", when: has("tool_use_failed json_validate_failed") },
  {
    kind: "ContextLength",
    when: has(`context_length_exceeded exceed_context_size_error context_window_exceeded token_limit_exceeded
      tokens_limit_reached max_tokens_exceeded string_too_long string_above_max_length 3051`)
  },
  { kind: "ContextLength", when: all(is(413), has("rate_limit_exceeded")) },
  { kind: "ContextLength", when: all(is(413, 429), isOverWindowAlone) },
  {
    kind: "ContextLength",
    when: all(
      isAboutRequest,
      says(
        /\bcontext (?:length|window|size|limit)\b/i,
        /\bcontext overflow/i,
        /\b(?:prompt|input) is too long\b/i,
        /\bmax(?:imum)? (?:prompt|input) length\b|\b(?:prompt|input) exceeds max(?:imum)? length\b/i,
        /\b(?:input|prompt) (?:token count|tokens|length)\b.{0,40}\b(?:exceeds?|must be)\b/i,
        /\binputs?`? tokens\b.{0,40}\bmust be </i,
        /\btoo many (?:input |prompt |total )?tokens\b/i,
        /\breduce the length of (?:the|your|either) (?:messages|prompt|input|one)\b/i
      )
    )
  },
  {
    kind: "ModelNotFound",
    when: all(
      ({ status }) => status === undefined || (status >= 400 && status < 429),
      has(`model_not_found model_not_available model_decommissioned invalid_model DeploymentNotFound 1500`)
    )
  },
  { kind: "ModelNotFound", when: is(404) },
  {
    kind: "ModelNotFound",
    when: all(
      is(400, 403, 410, 422, undefined),
      says(
        /\bmodel\b.{0,80}\b(?:not exist|not found|has been (?:decommissioned|retired)|no longer (?:supported|available))\b/i,
        /\bmodel identifier is invalid\b|\bis not a valid model\b|^(?:invalid|unknown|no such) model\b/i
      )
    )
  },
  {
    kind: "QuotaExhausted",
    when: has(`insufficient_quota insufficient_balance insufficient_credits credit_balance_exhausted billing_error
      billing_not_active billing_hard_limit_reached organization_usage_limit_exceeded
      organization_spend_limit_exceeded project_spend_limit_exceeded enforced_spend_limit_reached
      contract_spend_limit_reached ServiceQuotaExceededException`)
  },
  // OpenRouter: the money is there, but set aside for requests that are under way.
  { kind: "RateLimit", when: all(is(402), has("openrouter_in_flight_budget")) },
  { kind: "QuotaExhausted", when: is(402) },
  { kind: "QuotaExhausted", when: all(is(412), says(/\bsuspended\b/i)) },
  { kind: "QuotaExhausted", when: all(is(429), violates(/PerDay|PerWeek|PerMonth/)) },
  { kind: "QuotaExhausted", when: all(is(429), isLimitZero) },
  { kind: "RateLimit", when: all(is(429), violates(/PerMinute|PerSecond|PerHour/)) },
  {
    kind: "Overloaded",
    when: all(
      isFrom(429),
      has(`overloaded server_is_overloaded engine_overloaded provider_overloaded over_capacity capacity_exceeded
        capacity_exhausted MODEL_CAPACITY_EXHAUSTED queue_exceeded ModelNotReadyException`)
    )
  },
  {
    kind: "Overloaded",
    when: all(
      isFrom(429),
      says(
        /\b(?:is|are) (?:currently |temporarily )?(?:overloaded|(?:at|over) capacity)\b/i,
        /\bno capacity available\b|\bcapacity (?:is )?(?:exceeded|exhausted)\b/i
      )
    )
  },
  {
    kind: "QuotaExhausted",
    when: all(
      is(400, 403, 412, 429, undefined),
      says(
        /\bcredit balance\b.{0,30}\b(?:too low|exhausted|insufficient|negative)\b/i,
        /\binsufficient (?:account )?(?:balance|credits?|funds|quota)\b/i,
        /\b(?:all available|out of|doesn't have any|no remaining) credits?\b/i,
        /\bcredits? (?:are|is|has been|have been) (?:depleted|exhausted|used up)\b/i,
        /\bspend(?:ing)? limit\b.{0,30}\b(?:reached|exceeded)\b|\b(?:reached|exceeded)\b.{0,30}\bspend(?:ing)? limit\b/i,
        /\breached your (?:specified|monthly|weekly|daily|session)\b.{0,20}\b(?:limits?|quota)\b/i,
        /\b(?:daily|weekly|monthly|session) (?:usage |token |request |free )?(?:limit|quota)\b/i
      )
    )
  },
  { kind: "QuotaExhausted", when: all(is(429), namesLongWindow) },
  { kind: "QuotaExhausted", when: all(is(429), ({ message }) => (RetryHint.fromMessage(message) ?? 0) >= aDay) },
  // These words alone mean money, except Google's, which uses them for every limit.
  {
    kind: "QuotaExhausted",
    when: all(
      is(429),
      says(/\bexceeded your current quota\b.{0,40}\bbilling\b/i),
      ({ codes, message }) => !codes.includes("resourceexhausted") && RetryHint.fromMessage(message) === undefined
    )
  },
  {
    kind: "RateLimit",
    when: all(is(400, 403), has("rate_limit_error rate_limit_exceeded rate_limited too_many_requests"))
  },
  {
    kind: "Authentication",
    when: all(
      is(400, 412, undefined),
      // Google refuses regions and unpaid projects with FAILED_PRECONDITION.
      has(`authentication_error invalid_api_key API_KEY_INVALID API_KEY_EXPIRED unauthenticated unauthorized
        permission_denied permission_error access_denied unsupported_country_region_territory FAILED_PRECONDITION`)
    )
  },
  { kind: "Authentication", when: is(401, 403) },
  {
    kind: "Authentication",
    when: all(
      is(400),
      says(
        /\b(?:incorrect|invalid|missing|no) api[ -]key\b|\bapi[ -]key (?:is )?(?:not valid|invalid|expired|missing)\b/i
      )
    )
  },
  // 499: somebody on the way closed the request; we did not, or nobody would read the answer.
  { kind: "Timeout", when: is(408, 499, 504, 522, 524) },
  {
    kind: "Timeout",
    when: all(is(400, 500, 502), has("timeout request_timeout DEADLINE_EXCEEDED"))
  },
  { kind: "Overloaded", when: is(498, 503, 529) },
  { kind: "Overloaded", when: all(is(500, 502), has("unavailable service_unavailable_error")) },
  { kind: "RateLimit", when: is(429) },
  { kind: "InvalidRequest", when: all(is(501), has("not_supported_error UNIMPLEMENTED not_implemented")) },
  { kind: "Server", when: isFrom(500) },
  { kind: "Server", when: is(409, 424) },
  { kind: "Server", when: all(is(400), has("internal internal_server_error server_error")) },
  { kind: "InvalidRequest", when: isFrom(300, 500) }
]

/**
 * What codes stand for where no HTTP status says it; those of Bedrock, such as `ValidationException`, are among them without
 * their last word. xAI writes sentences for the gRPC codes.
 */
const statusOfCode = new Map(
  Object.entries({
    400: `invalid_request invalid_argument bad_request validation_error invalid_value
      unprocessable_entity clientspecifiedaninvalidargument`,
    401: "authentication_error unauthenticated unauthorized invalid_api_key API_KEY_INVALID unauthenticatedbadcredentials",
    402: "billing_error payment_required insufficient_quota insufficient_balance",
    403: `permission_denied permission_error access_denied forbidden
      thecallerdoesnothavepermissiontoexecutethespecifiedoperation`,
    404: "not_found model_not_found ResourceNotFoundException somerequestedentitywasnotfound",
    413: "request_too_large payload_too_large",
    429: `rate_limit rate_limit_exceeded rate_limited too_many_requests ThrottlingException resource_exhausted slow_down
      someresourcehasbeenexhausted`,
    500: `server_error api_error internal internal_server_error
      ModelStreamErrorException ModelErrorException`,
    502: "provider_unavailable bad_gateway",
    503: `unavailable service_unavailable provider_overloaded
      theserviceiscurrentlyunavailable`,
    504: "timeout request_timeout DEADLINE_EXCEEDED ModelTimeoutException",
    529: "overloaded_error server_is_overloaded engine_overloaded over_capacity capacity_exceeded insufficient_system_resource"
  }).flatMap(([status, words]) => words.split(/\s+/).map((word) => [normalize(word), Number(status)] as const))
)
