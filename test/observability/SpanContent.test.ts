import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type ChatRequest, ContentPolicyError, Groq, InvalidRequestError, type ProviderAnswer } from "llmfuse"
import { FakeHttp, FakeProvider } from "llmfuse/testing"
import { collect, makeFuse } from "../fuse.ts"
import { exportedSpans } from "./exportedSpans.ts"

const parsed = (value: unknown): unknown => JSON.parse(String(value))

/** The attributes of a call that is asked and answered so. */
const captured = (request: string | ChatRequest, reply: string | ProviderAnswer = "ok") =>
  Effect.gen(function* () {
    const exported = exportedSpans()
    const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq", { reply })], captureContent: true })

    yield* exported.traced(fuse.ask(request))

    const { "gen_ai.input.messages": input, "gen_ai.output.messages": output, ...rest } = exported.ofCall()
    return { input: input && parsed(input), output: output && parsed(output), rest, written: exported.written() }
  })

const contentNames = ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"]

describe("content on spans", () => {
  it.effect("is a text of JSON: instructions, conversation and answer", () =>
    Effect.gen(function* () {
      const { input, output, rest } = yield* captured(
        {
          system: "Be brief.",
          messages: [
            { role: "system", content: "Today is Monday." },
            { role: "user", content: [{ type: "text", text: "Weather in Paris?" }] },
            { role: "assistant", content: "", toolCalls: [{ id: "1", name: "weather", arguments: { city: "Paris" } }] },
            { role: "tool", toolCallId: "1", content: "rainy" }
          ],
          stop: ["END"]
        },
        { text: "Rain.", reasoning: "It rains.", finishReason: "stop" }
      )

      assert.deepStrictEqual(parsed(rest["gen_ai.system_instructions"]), [{ type: "text", content: "Be brief." }])
      assert.deepStrictEqual(input, [
        { role: "system", parts: [{ type: "text", content: "Today is Monday." }] },
        { role: "user", parts: [{ type: "text", content: "Weather in Paris?" }] },
        { role: "assistant", parts: [{ type: "tool_call", id: "1", name: "weather", arguments: { city: "Paris" } }] },
        { role: "tool", parts: [{ type: "tool_call_response", id: "1", response: "rainy" }] }
      ])
      assert.deepStrictEqual(output, [
        {
          role: "assistant",
          parts: [
            { type: "reasoning", content: "It rains." },
            { type: "text", content: "Rain." }
          ],
          finish_reason: "stop"
        }
      ])
      assert.deepStrictEqual(parsed(rest["gen_ai.request.stop_sequences"]), ["END"])
    })
  )

  it.effect("holds the tools that the model calls, with what it wrote where that is no JSON", () =>
    Effect.gen(function* () {
      const { output, rest } = yield* captured("hi", {
        text: "",
        finishReason: "tool-calls",
        toolCalls: [
          { id: "1", name: "weather", arguments: { city: "Paris" } },
          { id: "2", name: "time", rawArguments: "{zone" }
        ]
      })

      assert.deepStrictEqual(output, [
        {
          role: "assistant",
          parts: [
            { type: "tool_call", id: "1", name: "weather", arguments: { city: "Paris" } },
            { type: "tool_call", id: "2", name: "time", arguments: "{zone" }
          ],
          finish_reason: "tool_call"
        }
      ])
      assert.deepStrictEqual(parsed(rest["gen_ai.response.finish_reasons"]), ["tool_call"])
    })
  )

  it.effect("names images and files, and leaves out their bytes and the credentials in their addresses", () =>
    Effect.gen(function* () {
      const { input, written } = yield* captured({
        messages: [
          {
            role: "user",
            content: [
              { type: "image", url: "https://me:hunter2@example.com/a.png" },
              { type: "image", url: "data:image/gif;base64,R0lGODlh" },
              { type: "file", data: "JVBERi0xLjc=", mediaType: "application/pdf" },
              { type: "file", data: new Uint8Array([1, 2]), mediaType: "audio/mpeg" }
            ]
          },
          { role: "assistant", content: "", toolCalls: [{ id: "1", name: "draw", arguments: {} }] },
          {
            role: "tool",
            toolCallId: "1",
            content: [{ type: "image", data: "iVBORw0KGgo=", mediaType: "image/png" }]
          }
        ]
      })

      const png = { type: "blob", modality: "image", mime_type: "image/png", content: "" }
      assert.deepStrictEqual(input, [
        {
          role: "user",
          parts: [
            { type: "uri", modality: "image", uri: "https://<redacted>@example.com/a.png" },
            { type: "blob", modality: "image", mime_type: "image/gif", content: "" },
            { type: "blob", modality: "document", mime_type: "application/pdf", content: "" },
            { type: "blob", modality: "audio", mime_type: "audio/mpeg", content: "" }
          ]
        },
        { role: "assistant", parts: [{ type: "tool_call", id: "1", name: "draw", arguments: {} }] },
        { role: "tool", parts: [{ type: "tool_call_response", id: "1", response: [png] }] }
      ])
      for (const bytes of ["R0lGODlh", "JVBERi0xLjc=", "iVBORw0KGgo=", "hunter2"]) assert.notInclude(written, bytes)
    })
  )

  it.effect("is on the spans of streams and objects too, once, on that of the call", () =>
    Effect.gen(function* () {
      const exported = exportedSpans()
      const groq = FakeProvider.make("groq", { reply: '{"answer":42}' })
      const fuse = yield* makeFuse({ providers: [groq], captureContent: true })

      yield* exported.traced(collect(fuse.stream("ask a stream")))
      yield* exported.traced(fuse.object(Schema.Struct({ answer: Schema.Number }), "ask an object"))

      const withContent = exported
        .spans()
        .filter(({ attributes }) => contentNames.some((name) => attributes[name] !== undefined))
      assert.deepStrictEqual(
        withContent.map(({ name, attributes }) => [name, attributes["gen_ai.input.messages"]]),
        ["ask a stream", "ask an object"].map((content) => [
          "chat",
          JSON.stringify([{ role: "user", parts: [{ type: "text", content }] }])
        ])
      )
      for (const { attributes } of withContent) {
        assert.include(String(attributes["gen_ai.output.messages"]), JSON.stringify('{"answer":42}'))
      }
    })
  )

  it.effect("of embeddings is not written: the conventions have no place for it", () =>
    Effect.gen(function* () {
      const exported = exportedSpans()
      const groq = FakeProvider.make("groq", { embed: ({ input }) => ({ embeddings: input.map(() => [0.5]) }) })
      const fuse = yield* makeFuse({ providers: [groq], captureContent: true })

      yield* exported.traced(fuse.embed("secret text"))

      assert.strictEqual(exported.spans().length, 2)
      assert.notInclude(exported.written(), "secret")
    })
  )

  it.effect("that no JSON can say is left out, and the call is answered", () =>
    Effect.gen(function* () {
      const { output } = yield* captured("hi", {
        text: "",
        toolCalls: [{ id: "1", name: "count", arguments: { to: 10n } }]
      })

      assert.isUndefined(output)
    })
  )

  const prompt = "secret prompt"
  const refused = new ContentPolicyError({ provider: "groq", stage: "response", message: "groq: secret refusal" })
  const request: ChatRequest = {
    system: "secret system",
    messages: [
      { role: "user", content: prompt },
      { role: "assistant", content: "secret turn", toolCalls: [{ id: "1", name: "f", arguments: { a: "secret" } }] },
      { role: "tool", toolCallId: "1", content: "secret result" },
      { role: "user", content: [{ type: "image", url: "https://example.com/secret.png" }] }
    ],
    stop: ["secret stop"],
    metadata: { a: "secret" }
  }

  /** Calls that are answered, refused, retried, broken off and rejected, with words that nobody is to read. */
  const everything = (captureContent: boolean) =>
    Effect.gen(function* () {
      const exported = exportedSpans()
      const quoting = new InvalidRequestError({ provider: "groq", statusCode: 400, message: `groq: no "${prompt}"` })
      const fuse = yield* makeFuse({
        providers: [
          FakeProvider.make("groq", { errors: [refused, quoting], reply: "secret answer" }),
          FakeProvider.make("blind", { capabilities: { images: false } }),
          FakeProvider.make("gemini", { reply: { text: "secret answer", refusal: "secret no", reasoning: "secret" } })
        ],
        fallback: "secret fallback",
        captureContent
      })
      const misfit = Schema.Struct({ answer: Schema.Number })

      yield* exported.traced(fuse.ask(request))
      yield* exported.traced(fuse.ask(request))
      yield* exported.traced(Effect.exit(fuse.ask(request, { providers: ["blind"] })))
      yield* exported.traced(Effect.exit(fuse.object(misfit, prompt, { providers: ["groq"] })))
      yield* exported.traced(collect(fuse.stream(request)))
      return exported
    })

  it.effect("is nowhere by default: not in attributes, events or statuses", () =>
    Effect.gen(function* () {
      const exported = yield* everything(false)

      assert.isAbove(exported.spans().length, 10)
      assert.isAbove(exported.spans().flatMap(({ events }) => events).length, 5)
      assert.notInclude(exported.written(), "secret")
      for (const name of contentNames) assert.notInclude(exported.written(), name)
    })
  )

  it.effect("is there with captureContent, in the words of errors too", () =>
    Effect.gen(function* () {
      const exported = yield* everything(true)

      for (const words of ["secret system", "secret answer", "secret refusal", "secret stop", prompt]) {
        assert.include(exported.written(), words)
      }
    })
  )

  it.effect("never holds a key, whoever quotes it", () =>
    Effect.gen(function* () {
      const key = "gsk_0123456789abcdefghijklmnop"
      const exported = exportedSpans()
      const http = FakeHttp.make(() => ({ status: 401, body: { error: { message: `Invalid API key: ${key}` } } }))
      const groq = yield* Effect.provide(Groq.make({ model: "llama", apiKey: key }), http.layer)
      const fuse = yield* makeFuse({ providers: [groq], captureContent: true })

      yield* exported.traced(Effect.exit(fuse.ask("hi")))

      assert.include(exported.written(), "Invalid API key")
      assert.notInclude(exported.written(), key)
    })
  )
})
