import { assert, describe, it } from "@effect/vitest"
import { SpanKind, SpanStatusCode } from "@opentelemetry/api"
import { Effect } from "effect"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"
import { exportedSpans } from "./exportedSpans.ts"

describe("the spans in OpenTelemetry", () => {
  it.effect("are a tree of the call and its attempts, the failed one with its status", () =>
    Effect.gen(function* () {
      const { traced, spans: finished } = exportedSpans()
      const fuse = yield* makeFuse({
        providers: [
          FakeProvider.make("groq", { model: "llama", errors: outage("groq", 9) }),
          FakeProvider.make("gemini", { reply: { text: "ok", usage: { inputTokens: 3, outputTokens: 4 } } })
        ],
        retry: { maxAttempts: 1 }
      })

      yield* traced(fuse.ask("hi"))

      const spans = finished()
      const call = spans.find(({ name }) => name === "chat llama") ?? assert.fail("no call")
      const attempts = spans.filter(({ name }) => name.startsWith("attempt "))
      assert.strictEqual(call.kind, SpanKind.CLIENT)
      assert.strictEqual(call.attributes["gen_ai.provider.name"], "gemini")
      assert.strictEqual(call.attributes["gen_ai.usage.output_tokens"], 4)
      assert.deepStrictEqual(
        attempts.map(({ name, status, parentSpanContext, attributes }) => [
          name,
          status.code,
          parentSpanContext?.spanId === call.spanContext().spanId,
          attributes["error.type"]
        ]),
        [
          ["attempt groq", SpanStatusCode.ERROR, true, "OverloadedError"],
          ["attempt gemini", SpanStatusCode.OK, true, undefined]
        ]
      )
    })
  )
})
