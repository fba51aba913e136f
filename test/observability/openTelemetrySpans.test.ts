import * as Resource from "@effect/opentelemetry/Resource"
import * as OtelTracer from "@effect/opentelemetry/Tracer"
import { assert, describe, it } from "@effect/vitest"
import { SpanKind, SpanStatusCode } from "@opentelemetry/api"
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, Layer } from "effect"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"

describe("the spans in OpenTelemetry", () => {
  it.effect("are a tree of the call and its attempts, the failed one with its status", () =>
    Effect.gen(function* () {
      const exporter = new InMemorySpanExporter()
      const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
      const tracing = OtelTracer.layerWithoutOtelTracer.pipe(
        Layer.provide(Layer.succeed(OtelTracer.OtelTracer, provider.getTracer("test"))),
        Layer.provide(Resource.layer({ serviceName: "test" }))
      )
      const fuse = yield* makeFuse({
        providers: [
          FakeProvider.make("groq", { model: "llama", errors: outage("groq", 9) }),
          FakeProvider.make("gemini", { reply: { text: "ok", usage: { inputTokens: 3, outputTokens: 4 } } })
        ],
        retry: { maxAttempts: 1 }
      })

      yield* Effect.provide(fuse.ask("hi"), tracing)

      const spans = exporter.getFinishedSpans()
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
