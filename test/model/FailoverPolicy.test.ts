import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration } from "effect"
import * as Llm from "llmfuse"
import { FailoverPolicy } from "llmfuse"

const provider = "groq"

/** The table of the documentation: retry, failover, breaker. */
const table: ReadonlyArray<
  readonly [
    error: FailoverPolicy.Classified & { isRetryable: boolean },
    retry: string,
    failover: boolean,
    breaker: string
  ]
> = [
  [new Llm.RateLimitError({ provider }), "yes", true, "counts-or-opens"],
  [new Llm.QuotaExhaustedError({ provider }), "no", true, "opens"],
  [new Llm.OverloadedError({ provider }), "yes", true, "counts"],
  [new Llm.ServerError({ provider }), "yes", true, "counts"],
  [new Llm.ConnectionError({ provider }), "yes", true, "counts"],
  [new Llm.TimeoutError({ provider, phase: "headers" }), "when-alone", true, "counts"],
  [new Llm.TimeoutError({ provider, phase: "firstToken" }), "when-alone", true, "counts"],
  [new Llm.TimeoutError({ provider, phase: "contentGap" }), "when-alone", true, "counts"],
  [new Llm.TimeoutError({ provider, phase: "attempt" }), "when-alone", true, "counts"],
  [new Llm.TimeoutError({ provider, phase: "upstream" }), "yes", true, "counts"],
  [new Llm.AuthenticationError({ provider }), "no", true, "opens"],
  [new Llm.ModelNotFoundError({ provider }), "no", true, "ignored"],
  [new Llm.InvalidRequestError({ provider }), "no", true, "ignored"],
  [new Llm.ContextLengthError({ provider }), "no", true, "ignored"],
  [new Llm.ContentPolicyError({ provider, stage: "prompt" }), "no", false, "ignored"],
  [new Llm.ContentPolicyError({ provider, stage: "response" }), "no", true, "ignored"],
  [new Llm.InvalidResponseError({ provider }), "once", true, "counts"],
  [new Llm.InvalidResponseError({ provider, reason: "schema" }), "once", true, "ignored"],
  [new Llm.EmptyResponseError({ provider }), "once", true, "counts"],
  [new Llm.StreamInterruptedError({ provider, partial: "" }), "yes", true, "counts"],
  [new Llm.CustomProviderError({ provider, retryable: true }), "yes", true, "counts"],
  [new Llm.CustomProviderError({ provider, retryable: false }), "no", true, "ignored"],
  [new Llm.ThrottledError({ provider, wait: Duration.seconds(1) }), "no", true, "ignored"],
  [new Llm.CircuitOpenError({ provider, openUntil: DateTime.unsafeMake(0) }), "no", true, "ignored"],
  [new Llm.DeadlineExceededError({ provider, deadline: Duration.seconds(1) }), "no", false, "ignored"]
]

describe("FailoverPolicy", () => {
  for (const [error, retry, failover, breaker] of table) {
    it(`${error._tag}${error.failureCase === undefined ? "" : ` (${error.failureCase})`} is judged as documented`, () => {
      assert.deepStrictEqual(FailoverPolicy.default.verdict(error), { retry, failover, breaker })
      assert.strictEqual(error.isRetryable, retry !== "no")
    })
  }

  it("strict differs in two cells only", () => {
    const differing = table.filter(
      ([error]) =>
        JSON.stringify(FailoverPolicy.strict.verdict(error)) !== JSON.stringify(FailoverPolicy.default.verdict(error))
    )

    assert.deepStrictEqual(
      differing.map(([error]) => error._tag),
      ["AuthenticationError", "InvalidRequestError"]
    )
    assert.isTrue(differing.every(([error]) => !FailoverPolicy.strict.verdict(error).failover))
  })

  it("a cell can be replaced for a tag, and for one case of it, which wins", () => {
    const policy = FailoverPolicy.make({
      TimeoutError: { retry: "no" },
      "TimeoutError:upstream": { breaker: "ignored" },
      ContentPolicyError: { failover: true }
    })

    assert.deepStrictEqual(policy.verdict(new Llm.TimeoutError({ provider, phase: "attempt" })), {
      retry: "no",
      failover: true,
      breaker: "counts"
    })
    assert.deepStrictEqual(policy.verdict(new Llm.TimeoutError({ provider, phase: "upstream" })), {
      retry: "no",
      failover: true,
      breaker: "ignored"
    })
    assert.isTrue(policy.verdict(new Llm.ContentPolicyError({ provider, stage: "prompt" })).failover)
  })

  it("the provider's own word on retrying outranks the table", () => {
    const no = new Llm.OverloadedError({ provider, shouldRetry: false })
    const yes = new Llm.QuotaExhaustedError({ provider, shouldRetry: true })

    assert.isFalse(no.isRetryable)
    assert.isTrue(yes.isRetryable)
  })
})

describe("errors", () => {
  it("every one is told by instanceof, by _tag, and as an error of LlmFuse", () => {
    for (const [error] of table) {
      assert.instanceOf(error, Error)
      assert.isTrue(Llm.isLlmFuseError(error))
    }
    assert.isFalse(Llm.isLlmFuseError(new Error("other")))
    assert.isFalse(Llm.isLlmFuseError(undefined))
  })

  it("a message of one's own stands; without one the provider is named", () => {
    assert.strictEqual(new Llm.RateLimitError({ provider }).message, "groq: rate limited")
    assert.strictEqual(new Llm.RateLimitError({ provider, message: "slow down" }).message, "slow down")
  })

  it("a field of the wrong kind is refused where the error is made", () => {
    assert.throws(
      () => new Llm.RateLimitError({ provider, retryAfter: 5 as unknown as Duration.Duration }),
      /DurationFromSelf/
    )
  })
})
