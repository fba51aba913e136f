import { assert, describe, it } from "@effect/vitest"
import type { ProviderError } from "../../src/model/LlmError.ts"
import * as HttpFailure from "../../src/provider/HttpFailure.ts"

const context = { provider: "p", headers: {}, nowMillis: 0, redact: (text: string) => text }

/** The error that a body is under an HTTP status; without one, within a 200. */
const read = (status: number | undefined, body: object): ProviderError =>
  status === undefined
    ? HttpFailure.inBand({ ...context, error: body })
    : HttpFailure.fromResponse({ ...context, status, body: JSON.stringify(body) })

const kindOf = (error: ProviderError): string =>
  error._tag === "ContentPolicyError" ? `${error._tag}:${error.stage}` : error._tag.replace(/Error$/, "")

const kind = (status: number | undefined, body: object): string => kindOf(read(status, body))

const saying = (message: string) => ({ error: { message } })

const named = (code: string) => ({ error: { message: "words", code } })

/** Every status that a rule names, and its neighbours. */
const statuses = [
  ...[undefined, 399, 400, 401, 402, 403, 404, 408, 409, 410, 411, 412, 413, 414, 421, 422, 423, 428, 429, 430],
  ...[499, 500, 501, 502, 503, 599, 600]
]

const silent = { error: { message: "words" } }

const byStatus = new Map(statuses.map((status) => [status, kind(status, silent)]))

/** Under which statuses a body is something else than the status says. */
const telling = (body: object, expected: string) =>
  statuses.filter((status) => byStatus.get(status) !== expected && kind(status, body) === expected)

const from400 = statuses.filter((status) => status !== undefined && status >= 400 && status < 429)

const from429 = statuses.filter((status) => status !== undefined && status >= 429 && status < 600)

const all = statuses.filter((status) => status === undefined || status >= 300)

/** `statuses` as far as they do not say it by themselves. */
const silentOn = (expected: string, within: ReadonlyArray<number | undefined>) =>
  statuses.filter((status) => within.includes(status) && byStatus.get(status) !== expected)

interface Phrases {
  readonly kind: string
  /** The statuses under which the words count. */
  readonly statuses: ReadonlyArray<number | undefined>
  /** A status that says something else. */
  readonly at: number
  /** A dot stands where a word has to end: a letter there makes it another word. */
  readonly phrases: ReadonlyArray<string>
}

const phrases: ReadonlyArray<Phrases> = [
  {
    kind: "ContentPolicyError:prompt",
    statuses: [undefined, 400, 403, 422],
    at: 400,
    phrases: [
      "·violates our usage guidelines·",
      "·violate the content policy·",
      "·violated xAI's safety policies·",
      "·violating xais acceptable use guideline·",
      "·violates content policies·",
      "·prompt· was ·flagged· by our ·usage· rules",
      "·input· has been ·blocked· for ·content· reasons",
      "·message· was ·filtered· by a ·safety· system",
      "·prompt· ·blocked· by ·moderation·",
      "·rejected as a result of our safety system·",
      "·rejected by our moderation system·"
    ]
  },
  {
    kind: "ContentPolicyError:response",
    statuses: [undefined, 400],
    at: 400,
    phrases: ["·output blocked by content filtering"]
  },
  {
    kind: "ContextLength",
    statuses: [undefined, 400, 403, 413, 422, 500],
    at: 400,
    phrases: [
      "·context length·",
      "·context window·",
      "·context size·",
      "·context limit·",
      "·context overflow",
      "·prompt is too long·",
      "·input is too long·",
      "·max prompt length·",
      "·maximum input length·",
      "·prompt exceeds max length·",
      "·input exceeds maximum length·",
      "·input token count· of 9 ·exceeds· 8",
      "·prompt tokens· ·exceed· 8",
      "·input length· ·must be· under 8",
      "·inputs` tokens· + 3 ·must be <= 8",
      "·input` tokens· ·must be < 8",
      "·inputs tokens· ·must be < 8",
      "·too many tokens·",
      "·too many input tokens·",
      "·too many prompt tokens·",
      "·too many total tokens·",
      "·reduce the length of the messages·",
      "·reduce the length of your prompt·",
      "·reduce the length of the input·",
      "·reduce the length of either one·"
    ]
  },
  {
    kind: "ContextLength",
    statuses: [413, 429],
    at: 429,
    phrases: ["·request too large· for m", "·limit 10, requested 11", "·limit: 10, requested: 11"]
  },
  {
    kind: "ModelNotFound",
    statuses: [undefined, 400, 403, 410, 422],
    at: 400,
    phrases: [
      "·model· m does ·not exist·",
      "·model· m was ·not found·",
      "·model· m ·has been decommissioned·",
      "·model· m ·has been retired·",
      "·model· m is ·no longer supported·",
      "·model· m is ·no longer available·",
      "·model identifier is invalid·",
      "·is not a valid model·",
      "·invalid model·",
      "·unknown model·",
      "·no such model·"
    ]
  },
  { kind: "QuotaExhausted", statuses: [412], at: 412, phrases: ["·suspended·"] },
  {
    kind: "Overloaded",
    statuses: from429,
    at: 429,
    phrases: [
      "·is overloaded·",
      "·are currently at capacity·",
      "·is temporarily over capacity·",
      "·no capacity available·",
      "·capacity exceeded·",
      "·capacity is exhausted·"
    ]
  },
  {
    kind: "QuotaExhausted",
    statuses: [undefined, 400, 403, 412, 429],
    at: 400,
    phrases: [
      "·credit balance· is ·too low·",
      "·credit balance· is ·exhausted·",
      "·credit balance· is ·insufficient·",
      "·credit balance· is ·negative·",
      "·insufficient balance·",
      "·insufficient account credit·",
      "·insufficient credits·",
      "·insufficient funds·",
      "·insufficient quota·",
      "·all available credits·",
      "·out of credit·",
      "·doesn't have any credits·",
      "·no remaining credits·",
      "·credits are depleted·",
      "·credit is exhausted·",
      "·credit has been used up·",
      "·credits have been used up·",
      "·spend limit· has been ·reached·",
      "·spending limit· has been ·exceeded·",
      "·reached· its ·spend limit·",
      "·exceeded· its ·spending limit·",
      "·reached your specified· API usage ·limits·",
      "·reached your monthly· API ·limit·",
      "·reached your weekly· API ·limit·",
      "·reached your daily· API ·quota·",
      "·reached your session· API ·limit·",
      "·daily limit·",
      "·weekly usage limit·",
      "·monthly token quota·",
      "·session request limit·",
      "·daily free limit·"
    ]
  },
  {
    kind: "QuotaExhausted",
    statuses: [429],
    at: 429,
    phrases: [
      "·exceeded your current quota·, see ·billing·",
      "·per day",
      "·per-week",
      "·permonth",
      "·TPD·",
      "·rpd·",
      "try again in 24h",
      "try again in 1d 1s"
    ]
  },
  {
    kind: "Authentication",
    statuses: [400],
    at: 400,
    phrases: [
      "·incorrect api key·",
      "·invalid api-key·",
      "·missing api key·",
      "·no api key·",
      "·api key not valid·",
      "·api-key is invalid·",
      "·api key expired·",
      "·api key is missing·"
    ]
  }
]

describe.each(phrases)("words that mean $kind", (rule) => {
  it.each(rule.phrases)("%s", (marked) => {
    const whole = marked.replaceAll("·", "")
    const places = [...marked].flatMap((it, index) => (it === "·" ? [index] : []))
    const others = places.map((place) => `${marked.slice(0, place)}x${marked.slice(place)}`.replaceAll("·", ""))

    assert.deepStrictEqual(telling(saying(whole), rule.kind), silentOn(rule.kind, rule.statuses))
    assert.strictEqual(kind(rule.at, saying(whole.toUpperCase())), rule.kind)
    assert.deepStrictEqual(
      others.filter((words) => kind(rule.at, saying(words)) === rule.kind),
      []
    )
  })
})

describe("words that mean nothing by themselves", () => {
  it.each([
    "per second, and per day",
    "per minute, and per day",
    "per hour, and per week",
    "RPS, and TPD",
    "tpm, and RPD",
    "RPH, and per month",
    "super daylight",
    "limit: 0.5",
    "xlimit: 0",
    "limit: 01",
    "Limit 10, Requested 10",
    "A request too large",
    "try again in 86399.999s",
    "You exceeded your current quota, please check your plan and billing. Please retry in 20s."
  ])("%s is a rate limit", (words) => {
    assert.strictEqual(kind(429, saying(words)), "RateLimit")
  })

  it("a limit of zero is a quota only where a limit was hit", () => {
    assert.deepStrictEqual(telling(saying("limit: 0, model: m"), "QuotaExhausted"), [429])
  })

  it("Google's words for every limit are no quota beside its code", () => {
    const message = "You exceeded your current quota, please check your plan and billing details."

    assert.strictEqual(kind(429, { error: { message, status: "RESOURCE_EXHAUSTED" } }), "RateLimit")
  })
})

interface Codes {
  readonly kind: string
  readonly statuses: ReadonlyArray<number | undefined>
  readonly codes: string
}

const codes: ReadonlyArray<Codes> = [
  {
    kind: "ContentPolicyError:prompt",
    statuses: all,
    codes: `content_filter content_policy_violation invalid_prompt ResponsibleAIPolicyViolation moderation_blocked
      content_moderation`
  },
  { kind: "ContentPolicyError:response", statuses: all, codes: "refusal" },
  { kind: "InvalidResponse", statuses: all, codes: "tool_use_failed json_validate_failed" },
  {
    kind: "ContextLength",
    statuses: all,
    codes: `context_length_exceeded exceed_context_size_error context_window_exceeded token_limit_exceeded
      tokens_limit_reached max_tokens_exceeded string_too_long string_above_max_length 3051`
  },
  { kind: "ContextLength", statuses: [413], codes: "rate_limit_exceeded" },
  {
    kind: "ModelNotFound",
    statuses: [undefined, ...from400],
    codes: "model_not_available model_decommissioned invalid_model DeploymentNotFound 1500 model_not_found"
  },
  {
    kind: "QuotaExhausted",
    statuses: all.filter((status) => status !== 404),
    codes: `insufficient_quota insufficient_balance insufficient_credits credit_balance_exhausted billing_error
      billing_not_active billing_hard_limit_reached organization_usage_limit_exceeded
      organization_spend_limit_exceeded project_spend_limit_exceeded enforced_spend_limit_reached
      contract_spend_limit_reached ServiceQuotaExceededException`
  },
  { kind: "RateLimit", statuses: [402], codes: "openrouter_in_flight_budget" },
  {
    kind: "Overloaded",
    statuses: from429,
    codes: "capacity_exhausted MODEL_CAPACITY_EXHAUSTED queue_exceeded ModelNotReadyException"
  },
  {
    kind: "Overloaded",
    statuses: [undefined, ...from429],
    codes: "overloaded server_is_overloaded engine_overloaded provider_overloaded over_capacity capacity_exceeded"
  },
  { kind: "RateLimit", statuses: [undefined, 400, 403], codes: "rate_limit_error rate_limited too_many_requests" },
  { kind: "RateLimit", statuses: [undefined, 400, 403], codes: "rate_limit_exceeded" },
  {
    kind: "Authentication",
    statuses: [undefined, 400, 412],
    codes: `authentication_error invalid_api_key API_KEY_INVALID API_KEY_EXPIRED unauthenticated unauthorized
      permission_denied permission_error access_denied unsupported_country_region_territory FAILED_PRECONDITION`
  },
  { kind: "Timeout", statuses: [undefined, 400, 500, 502], codes: "timeout request_timeout DEADLINE_EXCEEDED" },
  { kind: "Overloaded", statuses: [undefined, 500, 502], codes: "unavailable service_unavailable_error" },
  { kind: "InvalidRequest", statuses: [501], codes: "not_supported_error UNIMPLEMENTED not_implemented" },
  { kind: "Server", statuses: [undefined, 400], codes: "internal internal_server_error server_error" }
]

describe.each(codes)("codes that mean $kind", (rule) => {
  it.each(rule.codes.split(/\s+/))("%s", (code) => {
    assert.deepStrictEqual(telling(named(code), rule.kind), silentOn(rule.kind, rule.statuses))
  })
})

describe("an error within a success stands for the status of its code", () => {
  it.each([
    [
      400,
      `invalid_request invalid_argument bad_request validation_error ValidationException invalid_value
      unprocessable_entity Client_specified_an_invalid_argument`
    ],
    [
      401,
      "authentication_error unauthenticated unauthorized invalid_api_key API_KEY_INVALID Unauthenticated:bad-credentials"
    ],
    [402, "billing_error payment_required insufficient_quota insufficient_balance"],
    [
      403,
      `permission_denied permission_error access_denied AccessDeniedException forbidden
      The-caller-does-not-have-permission-to-execute-the-specified-operation`
    ],
    [404, "not_found model_not_found ResourceNotFoundException Some-requested-entity-was-not-found"],
    [413, "request_too_large payload_too_large"],
    [
      429,
      `rate_limit rate_limit_exceeded rate_limited too_many_requests ThrottlingException resource_exhausted slow_down
      Some-resource-has-been-exhausted`
    ],
    [
      500,
      `server_error api_error internal internal_server_error InternalServerException ModelStreamErrorException
      ModelErrorException`
    ],
    [502, "provider_unavailable bad_gateway"],
    [
      503,
      `unavailable service_unavailable ServiceUnavailableException provider_overloaded
      The-service-is-currently-unavailable`
    ],
    [504, "timeout request_timeout DEADLINE_EXCEEDED ModelTimeoutException"],
    [
      529,
      "overloaded_error server_is_overloaded engine_overloaded over_capacity capacity_exceeded insufficient_system_resource"
    ]
  ])("%d", (status, words) => {
    const others = words.split(/\s+/).filter((code) => read(undefined, named(code)).statusCode !== status)

    assert.deepStrictEqual(others, [])
  })

  it("of two codes the first counts, but that a request is invalid only where nothing else is said", () => {
    const statusOf = (code: string, type: string) => read(undefined, { error: { code, type } }).statusCode

    assert.strictEqual(statusOf("rate_limit_exceeded", "server_error"), 429)
    assert.strictEqual(statusOf("invalid_request_error", "rate_limit_exceeded"), 429)
    assert.strictEqual(statusOf("invalid_request_error", "a stranger"), 400)
    assert.strictEqual(statusOf("a stranger", "slow_down"), 429)
    assert.strictEqual(statusOf("a stranger", "another"), undefined)
  })
})

describe("Google's quota failure", () => {
  const violating = (...violations: ReadonlyArray<object>) => ({
    error: { message: "words", details: [{ reason: "x" }, { violations }] }
  })

  it.each(["PerDay", "PerWeek", "PerMonth"])("of a quota %s is a quota", (window) => {
    const body = violating({}, { quotaId: `GenerateRequests${window}PerProjectPerModel-FreeTier` })

    assert.deepStrictEqual(telling(body, "QuotaExhausted"), [429])
    assert.strictEqual(kind(429, [body]), "QuotaExhausted")
  })

  it.each(["PerSecond", "PerMinute", "PerHour"])("of a quota %s is a rate limit, whatever the words are", (window) => {
    const { error } = violating({ quotaId: `GenerateRequests${window}PerProjectPerModel` })
    const message = "You exceeded your current quota, see billing. 50 requests per day."

    assert.strictEqual(kind(429, { error: { ...error, message } }), "RateLimit")
    assert.strictEqual(kind(429, { error: { message } }), "QuotaExhausted")
    assert.deepStrictEqual(telling({ error }, "RateLimit"), [])
  })

  it("of a value of zero is a quota", () => {
    const body = violating({ quotaValue: "0", quotaId: "GenerateRequestsPerMinute" })

    assert.strictEqual(kind(429, body), "QuotaExhausted")
    assert.strictEqual(kind(429, violating({ quotaValue: "10" })), "RateLimit")
  })
})
