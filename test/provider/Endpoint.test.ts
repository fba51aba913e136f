import { assert, describe, it } from "@effect/vitest"
import { ConfigError, Effect, Redacted } from "effect"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { answering } from "./fakeClient.ts"

const right = { name: "mine", model: "m", baseUrl: "https://llm.example.test/v1" }

const refusal = (options: object) =>
  OpenAiCompatible.make({ ...right, ...options }).pipe(Effect.provide(answering({}).layer), Effect.flip)

describe("wrong options", () => {
  it.effect.each([
    [{ baseUrl: "ftp://x.test" }, ["mine", "baseUrl"], '"ftp://x.test"', "http or https URL"],
    [{ baseUrl: "llm.example.test" }, ["mine", "baseUrl"], '"llm.example.test"', "http or https URL"],
    [{ baseUrl: "" }, ["mine", "baseUrl"], '""', "http or https URL"],
    [{ baseUrl: undefined }, ["mine", "baseUrl"], "undefined", "http or https URL"],
    [{ baseUrl: "https://me:pass@x.test" }, ["mine", "baseUrl"], "<redacted>@x.test", "without user name"],
    [{ baseUrl: "https://me@x.test" }, ["mine", "baseUrl"], "<redacted>@x.test", "without user name"],
    [{ model: "" }, ["mine", "model"], '""', "a text"],
    [{ model: undefined }, ["mine", "model"], "undefined", "a text"],
    [{ name: "" }, ["name"], '""', "a text"],
    [{ maxTokens: 0 }, ["mine", "maxTokens"], "0", "a whole number from 1"],
    [{ maxTokens: 1.5 }, ["mine", "maxTokens"], "1.5", "a whole number from 1"],
    [{ maxTokens: Number.NaN }, ["mine", "maxTokens"], "NaN", "a whole number from 1"],
    [{ apiKey: "" }, ["mine", "apiKey"], "empty", "an API key"],
    [{ apiKey: Redacted.make("  ") }, ["mine", "apiKey"], "empty", "an API key"],
    [{ apiKey: 42 }, ["mine", "apiKey"], "no text", "an API key"],
    [{ apiKey: "two words" }, ["mine", "apiKey"], "blanks", "an API key"],
    [{ headers: { "x y": "v" } }, ["mine", "headers", "x y"], '"x y"', "visible"],
    [{ headers: { "x-y": "a\nb" } }, ["mine", "headers", "x-y"], '"x-y"', "visible"],
    [{ headers: { "x-y": 1 } }, ["mine", "headers", "x-y"], '"x-y"', "visible"]
  ] as const)("%j", ([options, path, value, allowed]) =>
    Effect.gen(function* () {
      const error = yield* refusal(options)

      assert.isTrue(ConfigError.isConfigError(error))
      assert.strictEqual(error._op, "InvalidData")
      assert.deepStrictEqual("path" in error ? error.path : [], [...path])
      for (const part of [value, allowed]) assert.include(String(error), part)
      assert.notMatch(String(error), /pass@|two words|a\\nb/)
    })
  )

  it.effect("are refused for Anthropic too", () =>
    Effect.gen(function* () {
      const error = yield* Anthropic.make({ model: "", apiKey: "k" }).pipe(
        Effect.provide(answering({}).layer),
        Effect.flip
      )

      assert.include(String(error), "anthropic.model")
    })
  )
})
