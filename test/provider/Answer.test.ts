import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import * as Answer from "../../src/provider/Answer.ts"

const head = {
  provider: "p",
  headers: {},
  nowMillis: 0,
  redact: (text: string) => text,
  status: 200,
  requestId: undefined,
  maxBytes: 1000
}

const draft = {
  text: "a",
  model: undefined,
  toolCalls: [],
  reasoning: "",
  refusal: undefined
}

const outcome = (stopped: string | undefined): string =>
  Either.match(Answer.settle(head, { ...draft, stopped }), {
    onLeft: (error) => (error._tag === "ContentPolicyError" ? `${error._tag}:${error.stage}` : error._tag),
    onRight: ({ finishReason }) => `${finishReason}`
  })

describe("the vendors' words for why a model stopped", () => {
  it.each([
    ["stop", "stop eos end_turn stop_sequence completed STOP stop:stranger"],
    ["length", "length max_tokens model_length model_context_window_exceeded MAX_TOKENS"],
    ["tool-calls", "tool_calls tool_use function_call"],
    [
      "ContentPolicyError:response",
      `content_filter safety recitation language blocklist prohibited_content spii model_armor image_safety
      image_prohibited_content image_recitation refusal`
    ],
    [
      "InvalidResponseError",
      `malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response missing_thought_signature
      function_call_filter`
    ],
    ["ServerError", "error abort"],
    ["OverloadedError", "insufficient_system_resource"],
    ["unknown", "stranger undefined"]
  ])("%s", (expected, words) => {
    const others = words.split(/\s+/).filter((word) => outcome(word) !== expected)

    assert.deepStrictEqual(others, [])
    assert.strictEqual(outcome(undefined), "unknown")
  })

  it("may come with blanks, and with the vendor's own word behind that of its wire", () => {
    assert.strictEqual(outcome(" stop "), "stop")
    assert.strictEqual(outcome("stop : SPII"), "ContentPolicyError:response")
    assert.strictEqual(outcome("length : stranger"), "length")
  })

  it("are told as they are, a refusal with what the model said", () => {
    const said = (stopped: string, text = "a") =>
      Either.getOrThrow(Either.flip(Answer.settle(head, { ...draft, text, stopped }))).message

    assert.strictEqual(said("refusal"), "p: the model refused: a")
    assert.strictEqual(said("refusal", ""), "p: the model refused")
    assert.strictEqual(said("SPII"), "p: the answer was stopped (SPII)")
    assert.strictEqual(said("error"), 'p: the model stopped with "error"')
  })
})

it("an answer is told what was changed of its request, and is as it was where that is nothing", () => {
  const answer = Answer.settle(head, { ...draft, stopped: "stop" })

  assert.deepStrictEqual(
    Answer.withChanges(answer, ["b"]),
    Either.map(answer, (it) => ({ ...it, changes: ["b"] }))
  )
  assert.strictEqual(Answer.withChanges(answer, []), answer)
  assert.strictEqual(Answer.withChanges(answer, undefined), answer)
})
