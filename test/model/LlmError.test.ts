import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration } from "effect"
import { AllProvidersFailedError, type Attempt, type CandidateError, OverloadedError, ServerError } from "llmfuse"
import { withoutStackTrace } from "../../src/model/LlmError.ts"

const attempt = (provider: string, outcome: Attempt["outcome"], startSeconds: number, seconds: number): Attempt => ({
  provider,
  number: 1,
  startedAt: DateTime.unsafeMake(startSeconds * 1000),
  duration: Duration.seconds(seconds),
  outcome
})

describe("the report of a call that nobody answered", () => {
  it("has a line for providers that were given up or interrupted too, in the order asked", () => {
    const error = new AllProvidersFailedError({
      errors: { c: new OverloadedError({ provider: "c" }), b: new ServerError({ provider: "b" }) },
      // In the order in which they ended.
      attempts: [
        attempt("b", "failure", 1, 1),
        attempt("a", "hedge-lost", 0, 3),
        attempt("c", "failure", 3, 1),
        attempt("d", "interrupted", 4, 2)
      ]
    })

    assert.strictEqual(
      error.toString(),
      [
        "AllProvidersFailedError: no provider answered",
        "  a: 1 attempt in 3s: given up, another was faster",
        "  b: 1 attempt in 1s: ServerError: server error",
        "  c: 1 attempt in 1s: OverloadedError: overloaded",
        "  d: 1 attempt in 2s: interrupted"
      ].join("\n")
    )
  })

  it("names an error without words by its tag", () => {
    const wordless = { _tag: "OwnError", provider: "a" } as unknown as CandidateError
    const error = new AllProvidersFailedError({ errors: { a: wordless }, attempts: [] })

    assert.strictEqual(error.toString().split("\n")[1], "  a: not asked: OwnError")
    assert.strictEqual(error.message, "no provider answered: OwnError")
  })
})

describe("an error without a stack trace", () => {
  it("leaves others theirs, also when it cannot be made", () => {
    const limit = Error.stackTraceLimit
    const bug = new TypeError("a bug")

    assert.throws(() =>
      withoutStackTrace(() => {
        throw bug
      })
    )

    assert.strictEqual(Error.stackTraceLimit, limit)
  })
})
