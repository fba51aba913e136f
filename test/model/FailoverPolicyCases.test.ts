import { assert, describe, it } from "@effect/vitest"
import * as FailoverPolicy from "../../src/model/FailoverPolicy.ts"

const cell = (retry: string, failover: boolean, breaker: string) => ({ retry, failover, breaker })

describe("cases that no error has in its own words", () => {
  it.each([
    ["TimeoutError", "shortened", cell("when-alone", true, "ignored")],
    ["InvalidRequestError", "capability", cell("no", true, "ignored")],
    ["InvalidResponseError", "length", cell("no", false, "ignored")],
    ["InvalidResponseError", "another", cell("once", true, "counts")],
    ["StrangeError", undefined, cell("no", true, "ignored")]
  ])("%s, %s", (_tag, failureCase, verdict) => {
    assert.deepStrictEqual(FailoverPolicy.default.verdict({ _tag, failureCase }) as unknown, verdict)
  })
})

describe("strict", () => {
  it("ends the call at what would be refused everywhere, not at what one provider cannot do", () => {
    const fails = (_tag: string, failureCase?: string) => FailoverPolicy.strict.verdict({ _tag, failureCase }).failover

    assert.isFalse(fails("AuthenticationError"))
    assert.isFalse(fails("InvalidRequestError"))
    assert.isTrue(fails("InvalidRequestError", "capability"))
    assert.isTrue(fails("ModelNotFoundError"))
  })
})

describe("the provider's own word on retrying", () => {
  it.each([
    ["QuotaExhaustedError", true, "yes"],
    ["InvalidResponseError", true, "once"],
    ["TimeoutError", true, "when-alone"],
    ["OverloadedError", true, "yes"],
    ["OverloadedError", false, "no"],
    ["OverloadedError", undefined, "yes"]
  ])("%s, %s: %s", (_tag, shouldRetry, retry) => {
    const verdict = FailoverPolicy.default.verdict({ _tag, shouldRetry })

    assert.deepStrictEqual(verdict, { ...FailoverPolicy.default.verdict({ _tag }), retry: retry as "yes" })
  })
})
