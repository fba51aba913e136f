import { assert, describe, it } from "@effect/vitest"
import { catalogue } from "../../scripts/wall/catalogue.ts"
import * as Conduct from "../../scripts/wall/conduct.ts"
import { fault } from "../../scripts/wall/fault.ts"
import { type Judgement, judge } from "../../scripts/wall/judge.ts"
import { markdownTable, plainTable, type Result, scoreLine, scoreTable } from "../../scripts/wall/report.ts"
import type { Answer } from "../../scripts/wall/system.ts"
import { timing } from "../../scripts/wall/timing.ts"

const wholeText = "one two three four"

const answered = (answer: Partial<Answer> = {}, millis = 100): Conduct.Call => ({
  millis,
  outcome: { _tag: "Answered", answer: { text: wholeText, ...answer } }
})

const failed = (message = "all providers failed", text = message): Conduct.Call => ({
  millis: 100,
  outcome: { _tag: "Failed", isError: true, message, text }
})

const hung: Conduct.Call = { millis: 45_000, outcome: { _tag: "Hung" } }

const seen = (observation: Partial<Conduct.Observation>): Conduct.Observation => ({
  calls: [answered()],
  primary: [5],
  fallback: [],
  ...observation
})

const plain = fault(timing(1), { id: "T01", title: "a fault", conduct: "right conduct", primary: {} })

const verdict = (observation: Partial<Conduct.Observation>, given: Partial<typeof plain> = {}) =>
  judge({ ...plain, ...given }, seen(observation), wholeText)

const pass: Judgement = { verdict: "pass", reasons: [] }

describe("the judge of the wall", () => {
  it("passes the whole answer", () => {
    assert.deepStrictEqual(verdict({}), pass)
  })

  it.each([
    ["a cut answer of 2 words", "one two"],
    ["a cut answer of 3 words", "one two three"],
    ["a doubled answer of 6 words", "one two one two three four"],
    ["a doubled answer of 8 words", `${wholeText} ${wholeText}`],
    ["an empty answer", ""],
    ["another answer, of 3 words", "one two four"],
    ["another answer, of 4 words", "one two three five"]
  ])("fails %s that is presented as success", (described, text) => {
    assert.deepStrictEqual(verdict({ calls: [answered({ text })] }), {
      verdict: "fail",
      reasons: [`presented as success: ${described}`]
    })
  })

  it("calls an error within the budget safe, and names it", () => {
    assert.deepStrictEqual(verdict({ calls: [failed()] }), { verdict: "safe", reasons: ["all providers failed"] })
  })

  it("fails what rejects with no error", () => {
    const rejected = { millis: 1, outcome: { _tag: "Failed", isError: false, message: "x", text: "'x'" } } as const

    assert.deepStrictEqual(verdict({ calls: [rejected] }), {
      verdict: "fail",
      reasons: ["it rejected with what is no error"]
    })
    assert.strictEqual(verdict({ calls: [failed("")] }).verdict, "fail")
  })

  it("fails what hangs", () => {
    assert.deepStrictEqual(verdict({ calls: [hung] }), { verdict: "fail", reasons: ["no end within 45.0 s"] })
  })

  it("fails a broken required point, even where the answer came", () => {
    const given = { required: [Conduct.attempts(2)] }

    assert.deepStrictEqual(verdict({ primary: [1, 2] }, given), pass)
    assert.deepStrictEqual(verdict({ primary: [1, 2, 3] }, given), {
      verdict: "fail",
      reasons: ["3 attempts on the primary, at most 2 wanted"]
    })
    assert.strictEqual(verdict({ primary: [1, 2, 3], calls: [failed()] }, given).verdict, "fail")
  })

  it("calls an answer with a broken advisory point partial, and an error safe all the same", () => {
    const given = { advisory: [Conduct.retried] }

    assert.deepStrictEqual(verdict({}, given), { verdict: "partial", reasons: ["not retried on the same provider"] })
    assert.strictEqual(verdict({ calls: [failed()] }, given).verdict, "safe")
  })

  it("fails where the healthy call right after it does not bring the whole answer", () => {
    assert.deepStrictEqual(verdict({ followUp: answered() }), pass)
    assert.deepStrictEqual(verdict({ followUp: failed("circuit open") }).reasons, [
      "the healthy call after it failed: circuit open"
    ])
    assert.deepStrictEqual(verdict({ followUp: answered({ text: "one" }) }), {
      verdict: "fail",
      reasons: ["the healthy call after it: presented as success: a cut answer of 1 words"]
    })
    assert.strictEqual(verdict({ followUp: hung, calls: [failed()] }).verdict, "fail")
  })

  it("judges many calls by the worst of them", () => {
    assert.deepStrictEqual(verdict({ calls: [answered(), answered()] }), pass)
    assert.strictEqual(verdict({ calls: [answered(), failed(), answered()] }).verdict, "safe")
    assert.strictEqual(verdict({ calls: [answered(), failed(), answered({ text: "one" })] }).verdict, "fail")
  })

  it("passes the error that is wanted, if it gives the reason, and calls an answer partial", () => {
    const given = { wants: "error", advisory: [Conduct.errorSays(/category 7/, "the reason")] } as const

    assert.deepStrictEqual(verdict({ calls: [failed("refused", "refused: category 7")] }, given), pass)
    assert.deepStrictEqual(verdict({ calls: [failed("refused")] }, given), {
      verdict: "safe",
      reasons: ["the error does not say the reason"]
    })
    assert.strictEqual(verdict({}, given).verdict, "partial")
  })
})

describe("the points of conduct", () => {
  it("count attempts in all, within a time after the first, and before a moment", () => {
    const observation = seen({ primary: [1000, 1100, 2400, 2600, 9000] })

    assert.isUndefined(Conduct.attempts(5)(observation))
    assert.isUndefined(Conduct.attempts(3, 1500)(observation))
    assert.strictEqual(Conduct.attempts(2, 1500)(observation), "3 attempts on the primary in 1.5 s, at most 2 wanted")
    assert.isUndefined(Conduct.attemptsBefore(2500, 3)(observation))
    assert.strictEqual(
      Conduct.attemptsBefore(3000, 3)(observation),
      "4 attempts while the primary was down, at most 3 wanted"
    )
  })

  it("tell when the primary was asked again, and whether too early", () => {
    assert.isDefined(Conduct.retried(seen({ primary: [1] })))
    assert.isUndefined(Conduct.notRetriedBefore(1800)(seen({ primary: [1] })))
    assert.isUndefined(Conduct.notRetriedBefore(1800)(seen({ primary: [100, 1900] })))
    assert.strictEqual(
      Conduct.notRetriedBefore(1800)(seen({ primary: [100, 600, 4000] })),
      "retried after 0.5 s, not before 1.8 s wanted"
    )
    assert.isUndefined(Conduct.usedBetween(60, 90)(seen({ primary: [1, 60] })))
    assert.isDefined(Conduct.usedBetween(60, 90)(seen({ primary: [1, 59, 90] })))
  })

  it("tell whether the fallback was asked, and the time that was taken", () => {
    assert.isDefined(Conduct.fellBack(seen({})))
    assert.isUndefined(Conduct.fellBack(seen({ fallback: [7] })))
    assert.isUndefined(Conduct.within(100)(seen({})))
    assert.strictEqual(
      Conduct.within(1000)(seen({ calls: [answered({}, 2500), answered()] })),
      "took 2.5 s, 1.0 s wanted"
    )
  })

  it.each([
    [undefined, false],
    [{}, false],
    [{ inputTokens: undefined, outputTokens: Number.NaN }, false],
    [{ inputTokens: 12, outputTokens: 60 }, true],
    [{ prompt_tokens: 12 }, true]
  ])("find tokens in %o: %s", (usage, isReported) => {
    assert.strictEqual(Conduct.reportsUsage(seen({ calls: [answered({ usage })] })) === undefined, isReported)
  })

  it("look at answers for the model, and at errors for what they say", () => {
    assert.isUndefined(Conduct.namesModel("b")(seen({ calls: [answered({ model: "b" }), failed()] })))
    assert.isDefined(Conduct.namesModel("b")(seen({})))
    assert.isUndefined(Conduct.errorSays(/seven/, "it")(seen({})))
    assert.isDefined(Conduct.errorSays(/seven/, "it")(seen({ calls: [failed("six")] })))
  })
})

describe("the faults of the wall", () => {
  const find = (id: string) => catalogue().find((it) => it.id === id) ?? plain

  it("S14: an error may not hide how the stream broke behind the 400", () => {
    const judged = (text: string) => judge(find("S14"), seen({ calls: [failed("failed", text)] }), wholeText).verdict

    assert.strictEqual(judged("400 This model does not support assistant message prefill."), "fail")
    assert.strictEqual(judged("fallback: prefill; primary: the stream was cut"), "safe")
    assert.strictEqual(judged("terminated"), "safe")
  })

  it("S15: a few attempts while down, and used again in time", () => {
    const judged = (primary: ReadonlyArray<number>) => judge(find("S15"), seen({ primary }), wholeText)

    assert.deepStrictEqual(judged([0, 4000, 32_000, 60_010]), pass)
    assert.strictEqual(judged([0, 4000, 8000, 32_000, 60_010]).verdict, "partial")
    assert.strictEqual(judged([0, 4000, 32_000]).verdict, "partial")
  })

  it("X07: an error that took long has waited", () => {
    const late = { ...failed(), millis: 40_000 }

    assert.strictEqual(judge(find("X07"), seen({ calls: [late] }), wholeText).verdict, "fail")
    assert.strictEqual(judge(find("X07"), seen({ primary: [1, 500] }), wholeText).verdict, "partial")
  })

  it("are compressed by a time scale, except where their times are whole seconds", () => {
    const scales = new Map(catalogue(0.1).map(({ id, timeScale }) => [id, timeScale]))

    assert.strictEqual(scales.get("S09"), 0.1)
    assert.strictEqual(scales.get("X10"), 1)
    assert.deepStrictEqual(catalogue(0.1).find(({ id }) => id === "S15")?.calls, { count: 20, everyMillis: 400 })
  })
})

describe("the report of the wall", () => {
  const results: ReadonlyArray<Result> = [
    {
      fault: plain,
      observation: seen({ primary: [0, 500, 1500], fallback: [1600] }),
      judgement: { verdict: "pass", reasons: [] }
    },
    {
      fault: { ...plain, id: "T02" },
      observation: seen({ calls: [failed()] }),
      judgement: { verdict: "fail", reasons: ["no", "never"] }
    }
  ]

  it("is a table with attempts, gaps and seconds", () => {
    assert.strictEqual(
      plainTable(results),
      `id   the primary  verdict  attempts  gaps, s  took, s  why
T01  a fault      pass     3 / 1     0.5 1.0  0.1
T02  a fault      fail     1 / 0              0.1      no; never`
    )
  })

  it("is Markdown with the right conduct", () => {
    assert.strictEqual(
      markdownTable(results),
      `| id | the primary | right conduct | verdict | attempts | seconds |
| --- | --- | --- | --- | --- | --- |
| T01 | a fault | right conduct | pass | 3 / 1 | 0.1 |
| T02 | a fault | right conduct | fail | 1 / 0 | 0.1 |`
    )
  })

  it("counts the verdicts of each system", () => {
    assert.strictEqual(scoreLine(results), "1 pass, 0 partial, 0 safe, 1 fail")
    assert.strictEqual(
      scoreTable([{ system: { name: "LlmFuse", version: "1.2.3" }, results }]),
      `| system | pass | partial | safe | fail | fails |
| --- | --- | --- | --- | --- | --- |
| LlmFuse 1.2.3 | 1 | 0 | 0 | 1 | T02 |`
    )
  })
})
