import { assert, describe, it } from "@effect/vitest"
import * as AnthropicAnswerText from "../../src/provider/AnthropicAnswerText.ts"

const taken = (pieces: ReadonlyArray<string>): string => {
  const text = AnthropicAnswerText.make("answer")
  return pieces.map(text.take).join("") + text.end()
}

const cut = (whole: string, size: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(whole.length / size) }, (_, index) => whole.slice(index * size, (index + 1) * size))

describe("an answer under a key", () => {
  it.each([1, 2, 3, 7, 100])("is what stands there, in pieces of %i", (size) => {
    for (const answer of ['["a"]', "7", '{"a":{"b":"}  }"}}', '" } "', "null"]) {
      assert.strictEqual(taken(cut(` { "answer" : ${answer} } `, size)).trim(), answer)
    }
  })

  it("that is not there is all of it", () => {
    assert.strictEqual(taken(cut('{"other":1}', 2)), '{"other":1}')
    const long = `{"${"x".repeat(3000)}":1}`
    assert.strictEqual(taken(cut(long, 100)), long)
  })

  it("that has not begun after 1024 characters is all of it, and no longer kept back", () => {
    assert.strictEqual(taken([" ".repeat(1024), '{"answer":1}']), "1")
    assert.strictEqual(taken([" ".repeat(1025), '{"answer":1}']), `${" ".repeat(1025)}{"answer":1}`)
    assert.lengthOf(AnthropicAnswerText.make("answer").take(`${"x".repeat(1024)}}`), 1025)
  })

  it("is read in an instant, however many blanks and braces there are", () => {
    const flood = `${" }".repeat(200_000)}x`
    const begunMillis = performance.now()

    assert.lengthOf(taken(['{"answer":', flood, flood, " ".repeat(400_000), "}"]), 2 * flood.length)
    assert.lengthOf(taken(['{"answer":1', ...Array<string>(50_000).fill("  "), "}"]), 1)
    assert.isBelow(performance.now() - begunMillis, 5000)
  })
})
