import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, type Exit, Fiber, Layer, Option, Schema, Stream, TestClock, Tracer } from "effect"
import { ContentPolicyError, FuseClient } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"
import { makeFuse } from "../fuse.ts"

interface Recorded {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly parent: string | undefined
  readonly attributes: Map<string, unknown>
  exit: Exit.Exit<unknown, unknown> | undefined
}

/** A tracer that keeps its spans. */
const recording = () => {
  const spans: Array<Recorded> = []
  const tracer = Tracer.make({
    span: (name, parent, context, links, startTime, kind) => {
      const attributes = new Map<string, unknown>()
      const recorded: Recorded = {
        name,
        kind,
        parent: Option.getOrUndefined(Option.map(parent, (it) => (it._tag === "Span" ? it.name : it.spanId))),
        attributes,
        exit: undefined
      }
      spans.push(recorded)
      return {
        _tag: "Span",
        name,
        spanId: `${spans.length}`,
        traceId: "trace",
        parent,
        context,
        status: { _tag: "Started", startTime },
        attributes,
        links: [...links],
        sampled: true,
        kind,
        end: (_, exit) => {
          recorded.exit = exit
        },
        attribute: (key, value) => void attributes.set(key, value),
        event: () => undefined,
        addLinks: () => undefined
      }
    },
    context: (execution) => execution()
  })
  return { spans, tracer }
}

const tree = (spans: ReadonlyArray<Recorded>) =>
  spans.map(({ name, parent, attributes, exit }) => [
    parent === undefined ? name : `${parent} > ${name}`,
    attributes.get("llmfuse.attempt.outcome"),
    exit === undefined ? "open" : exit._tag
  ])

describe("spans", () => {
  it.effect("are one for a call and a child for each attempt, failed ones with their error", () =>
    Effect.gen(function* () {
      const { spans, tracer } = recording()
      const fuse = yield* makeFuse({
        providers: [
          FakeProvider.make("groq", { model: "llama", errors: outage("groq", 9) }),
          FakeProvider.make("gemini", {
            reply: {
              text: "secret answer",
              model: "flash-1",
              finishReason: "stop",
              usage: { inputTokens: 3, outputTokens: 4 }
            }
          })
        ],
        retry: { maxAttempts: 2, baseDelay: "1 second", jitter: "none" }
      })

      yield* Effect.withTracer(fuse.ask("secret prompt"), tracer)

      assert.deepStrictEqual(tree(spans), [
        ["chat llama", undefined, "Success"],
        ["chat llama > attempt groq", "failure", "Failure"],
        ["chat llama > attempt groq", "failure", "Failure"],
        ["chat llama > attempt gemini", "success", "Success"]
      ])
      const [call, first, second] = spans
      assert.strictEqual(call?.kind, "client")
      const { "llmfuse.call.id": id, ...attributes } = Object.fromEntries(call?.attributes ?? [])
      assert.match(String(id), /-1$/)
      assert.deepStrictEqual(attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gemini",
        "gen_ai.request.model": "llama",
        "gen_ai.response.model": "flash-1",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
        "llmfuse.operation": "complete",
        "llmfuse.attempts": 3
      })
      assert.deepStrictEqual(
        [first?.attributes.get("error.type"), second?.attributes.get("llmfuse.attempt.waited_ms")],
        ["OverloadedError", 1000]
      )
    })
  )

  it.effect("hold nothing of prompts and answers", () =>
    Effect.gen(function* () {
      const { spans, tracer } = recording()
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq", { reply: "secret answer" })] })

      yield* Effect.withTracer(
        fuse.ask({ system: "secret system", messages: [{ role: "user", content: "secret prompt" }] }),
        tracer
      )

      const written = JSON.stringify(spans.map(({ name, attributes }) => [name, ...attributes]))
      assert.notInclude(written, "secret")
    })
  )

  it.effect("hold nothing of a refusal or of an answer that does not fit, which the caller's error quotes", () =>
    Effect.gen(function* () {
      const { spans, tracer } = recording()
      const groq = FakeProvider.make("groq", {
        reply: "secret answer",
        errors: [new ContentPolicyError({ provider: "groq", stage: "response", message: "groq: secret refusal" })]
      })
      const fuse = yield* makeFuse({ providers: [groq], retry: { maxAttempts: 1 } })
      const traced = <A, E>(effect: Effect.Effect<A, E>) => Effect.flip(Effect.withTracer(effect, tracer))

      const refused = yield* traced(fuse.complete("hi"))
      const misfit = yield* traced(fuse.object(Schema.Struct({ a: Schema.Number }), "hi"))

      assert.include(String(refused), "secret")
      assert.include(String(misfit), "secret")
      assert.notInclude(
        JSON.stringify(spans.map(({ name, attributes, exit }) => [name, ...attributes, exit])),
        "secret"
      )
    })
  )

  it.effect("of streams, objects and embeddings are made too", () =>
    Effect.gen(function* () {
      const { spans, tracer } = recording()
      const groq = FakeProvider.make("groq", { embed: ({ input }) => ({ embeddings: input.map(() => [1]) }) })
      const fuse = yield* makeFuse({ providers: [groq] })

      yield* Effect.withTracer(Stream.runDrain(fuse.stream("hi")), tracer)
      yield* Effect.withTracer(fuse.embed("hi"), tracer)

      assert.deepStrictEqual(
        spans.map(({ name, attributes }) => [name, attributes.get("gen_ai.operation.name")]),
        [
          ["chat", "chat"],
          ["attempt groq", "chat"],
          ["embeddings", "embeddings"],
          ["attempt groq", "embeddings"]
        ]
      )
    })
  )

  it.effect("of a hedge that lost say so, and those of an interrupted call are ended", () =>
    Effect.gen(function* () {
      const { spans, tracer } = recording()
      const slow = FakeProvider.make("slow", { latency: "1 hour" })
      const fuse = yield* makeFuse({ providers: [slow, FakeProvider.make("quick")], hedge: { delay: "1 second" } })

      yield* Effect.withTracer(fuse.ask("hi"), tracer)
      const fiber = yield* Effect.fork(Effect.withTracer(fuse.complete("hi", { providers: ["slow"] }), tracer))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)

      assert.deepStrictEqual(
        tree(spans).map(([name, outcome, end]) => `${name} ${outcome} ${end}`),
        [
          "chat undefined Success",
          "chat > attempt slow hedge-lost Failure",
          "chat > attempt quick success Success",
          "chat undefined Failure",
          "chat > attempt slow interrupted Failure"
        ]
      )
    })
  )

  it.effect("are not made without a tracer", () =>
    Effect.gen(function* () {
      let seen: Option.Option<Tracer.AnySpan> = Option.none()
      const fuse = yield* makeFuse({
        providers: [
          {
            name: "groq",
            complete: () =>
              Effect.map(Effect.context<never>(), (context) => {
                seen = Context.getOption(context as Context.Context<Tracer.ParentSpan>, Tracer.ParentSpan)
                return "ok"
              })
          }
        ]
      })

      yield* fuse.ask("hi")

      assert.isTrue(Option.isNone(seen) || (seen.value._tag === "Span" && !seen.value.name.startsWith("chat")))
    })
  )

  it("a client traces with a layer of its own", async () => {
    const { spans, tracer } = recording()
    const client = FuseClient.make({ providers: [FakeProvider.make("groq")], layer: Layer.setTracer(tracer) })

    await client.complete("hi")
    await client.close()

    assert.deepStrictEqual(
      spans.map(({ name }) => name),
      ["chat", "attempt groq"]
    )
  })
})
