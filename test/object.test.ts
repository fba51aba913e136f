import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Schema } from "effect"
import {
  AllProvidersFailedError,
  type ChatRequest,
  FailoverPolicy,
  FuseClient,
  InvalidRequestError,
  InvalidResponseError,
  LlmFuse,
  type Options
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import * as ObjectAnswer from "../src/fuse/ObjectAnswer.ts"

class Person extends Schema.Class<Person>("Person")({ name: Schema.String, age: Schema.NumberFromString }) {}

const make = (options: Options<ReadonlyArray<FakeProvider>>) =>
  Effect.provide(LlmFuse, LlmFuse.layer({ retry: { baseDelay: 0 }, ...options }))

const json = '{"name":"Ada","age":"36"}'

describe("object", () => {
  it.effect("decodes the answer with the schema, and its type is the schema's", () =>
    Effect.gen(function* () {
      const fuse = yield* make({ providers: [FakeProvider.make("groq", { reply: json })] })

      const response = yield* fuse.object(Person, "Who wrote the first program?")
      const person: Person = response.object

      assert.instanceOf(person, Person)
      assert.strictEqual(person.age, 36)
      assert.strictEqual(response.text, json)
      assert.strictEqual(response.provider, "groq")
    })
  )

  it.effect("asks for the schema, and keeps the rest of the request", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: json })
      const fuse = yield* make({ providers: [groq] })

      yield* fuse.object(Person, { messages: [{ role: "user", content: "Who?" }], maxTokens: 100 })

      assert.strictEqual(groq.requests[0]?.maxTokens, 100)
      assert.deepStrictEqual(groq.requests[0]?.responseFormat, { schema: Person })
    })
  )

  for (const reply of [
    `\`\`\`json\n${json}\n\`\`\`\n`,
    `\n \`\`\`\n${json}\`\`\``,
    `\`\`\`JSON \r\n\r\n${json}\r\n \`\`\``
  ]) {
    it.effect(`takes JSON out of a fence: ${JSON.stringify(reply)}`, () =>
      Effect.gen(function* () {
        const fuse = yield* make({ providers: [FakeProvider.make("groq", { reply })] })

        assert.strictEqual((yield* fuse.object(Person, "Who?")).object.name, "Ada")
      })
    )
  }

  for (const reply of [`\`\`\`${json}\`\`\``, `\`\`\`json\n${json}`, `\`\`\`yaml\n${json}\n\`\`\``, "```\n```"]) {
    it.effect(`what is in no fence of JSON does not fit: ${JSON.stringify(reply)}`, () =>
      Effect.gen(function* () {
        const fuse = yield* make({ providers: [FakeProvider.make("groq", { reply })] })

        const error = yield* Effect.flip(fuse.object(Person, "Who?"))

        assert.include(String(error), "it is no JSON")
      })
    )
  }

  it("a fence with a million blanks is read as fast as any text of that length", () => {
    const blanks = `${" ".repeat(99)}\n`.repeat(10_000)
    const read = ObjectAnswer.reader(Person)
    const begun = performance.now()

    const isRead = [`${blanks}${json}${blanks}\`\`\``, blanks, `${json}${blanks}x`, `${json}${blanks}\`\``].map(
      (rest) => Either.isRight(read(`${blanks}\`\`\`json\n${rest}`))
    )

    assert.deepStrictEqual(isRead, [true, false, false, false])
    assert.isBelow(performance.now() - begun, 2000)
  })

  for (const reply of ["Ada, 36.", '{"name":"Ada"}', '{"name":"Ada","age":"old"}', "[]", '{"name":']) {
    it.effect(`what does not fit goes to the next provider, without a second try: ${reply}`, () =>
      Effect.gen(function* () {
        const groq = FakeProvider.make("groq", { reply })
        const fuse = yield* make({
          providers: [groq, FakeProvider.make("gemini", { reply: json })],
          breaker: { failureThreshold: 1 }
        })

        const response = yield* fuse.object(Person, "Who?")

        assert.strictEqual(response.provider, "gemini")
        assert.strictEqual(groq.calls, 1)
        const error = response.attempts[0]?.error
        assert.instanceOf(error, InvalidResponseError)
        assert.strictEqual(error.reason, "schema")
        assert.strictEqual(response.attempts[0]?.outcome, "failure")
        assert.strictEqual(yield* fuse.circuitState("groq"), "Closed")
      })
    )
  }

  it.effect("says where an answer does not fit", () =>
    Effect.gen(function* () {
      const fuse = yield* make({ providers: [FakeProvider.make("groq", { reply: '{"name":"Ada","age":7}' })] })

      const error = yield* Effect.flip(fuse.object(Person, "Who?"))

      assert.instanceOf(error, AllProvidersFailedError)
      assert.include(error.errors.groq?.message, '["age"]')
      assert.include(error.errors.groq?.message, "groq: the answer does not fit the schema")
    })
  )

  it.effect("with repair the same provider is shown once what is wrong", () =>
    Effect.gen(function* () {
      const replies = ['{"name":"Ada"}', json]
      const groq = FakeProvider.make("groq", { reply: () => replies.shift() ?? "no more" })
      const gemini = FakeProvider.make("gemini", { reply: json })
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.object(Person, "Who?", { repair: true })

      assert.strictEqual(response.provider, "groq")
      assert.strictEqual(gemini.calls, 0)
      const shown = groq.requests[1]?.messages ?? []
      assert.deepStrictEqual(shown[1], { role: "assistant", content: '{"name":"Ada"}' })
      assert.include(JSON.stringify(shown[2]), "age")
    })
  )

  it.effect("with repair a second misfit goes to the next provider, which is asked the question as it was", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { reply: "no" })
      const gemini = FakeProvider.make("gemini", { reply: json })
      const fuse = yield* make({ providers: [groq, gemini] })

      const response = yield* fuse.object(Person, "Who?", { repair: true })

      assert.strictEqual(response.provider, "gemini")
      assert.strictEqual(groq.calls, 2)
      assert.strictEqual(gemini.requests[0]?.messages.length, 1)
    })
  )

  it.effect("what was cut off at the token limit ends the call", () =>
    Effect.gen(function* () {
      const gemini = FakeProvider.make("gemini", { reply: json })
      const groq = FakeProvider.make("groq", { reply: { text: '{"name":"A', finishReason: "length" } })
      const fuse = yield* make({ providers: [groq, gemini] })

      const error = yield* Effect.flip(fuse.object(Person, "Who?", { repair: true }))

      assert.instanceOf(error, InvalidResponseError)
      assert.strictEqual(error.reason, "length")
      assert.strictEqual(groq.calls, 1)
      assert.strictEqual(gemini.calls, 0)
    })
  )

  it.effect("a schema without a JSON schema is refused before anybody is asked", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq")
      const fuse = yield* make({ providers: [groq] })

      const error = yield* Effect.flip(fuse.object(Schema.Struct({ at: Schema.DateFromSelf }), "When?"))

      assert.instanceOf(error, InvalidRequestError)
      assert.include(error.message, "responseFormat.schema has no JSON schema")
      assert.strictEqual(groq.calls, 0)
    })
  )

  it("is a promise of the client", async () => {
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq", { reply: json })] })

    const { object } = await client.object(Person, "Who?", { deadline: "1 minute" })

    assert.strictEqual(object.age, 36)
  })
})

describe("what a provider cannot do", () => {
  const hi = { role: "user", content: "hi" } as const
  const image = { type: "image", url: "https://example.com/cat.png" } as const
  const file = { type: "file", data: "aGk=", mediaType: "application/pdf" } as const
  const cases: ReadonlyArray<readonly [string, FakeProvider, ChatRequest]> = [
    [
      "cannot call tools",
      FakeProvider.make("a", { capabilities: { tools: false } }),
      { messages: [hi], tools: [{ name: "t" }] }
    ],
    [
      "cannot read images",
      FakeProvider.make("a", { capabilities: { images: false } }),
      { messages: [{ role: "user", content: [image] }] }
    ],
    [
      "cannot read files",
      FakeProvider.make("a", { capabilities: { files: false } }),
      { messages: [{ role: "user", content: [file] }] }
    ],
    [
      "cannot go on from an assistant message",
      FakeProvider.make("a", { capabilities: { prefill: false } }),
      { messages: [hi, { role: "assistant", content: "Well," }] }
    ],
    [
      "do not fit its context window of 100",
      FakeProvider.make("a", { capabilities: { contextWindow: 100 } }),
      { messages: [{ role: "user", content: "word ".repeat(200) }] }
    ]
  ]

  for (const [what, provider, request] of cases) {
    it.effect(`is known before: it is passed over with the reason, under the strict policy too: ${what}`, () =>
      Effect.gen(function* () {
        const fuse = yield* make({ providers: [provider, FakeProvider.make("b")], failover: FailoverPolicy.strict })

        const response = yield* fuse.complete(request)

        assert.strictEqual(response.provider, "b")
        assert.strictEqual(provider.calls, 0)
        const [first] = response.attempts
        assert.strictEqual(first?.outcome, "rejected")
        assert.include(first?.error?.message, what)
      })
    )
  }

  it.effect("what it can do is asked of it", () =>
    Effect.gen(function* () {
      const able = FakeProvider.make("a", { capabilities: { tools: true, images: false, contextWindow: 1000 } })
      const fuse = yield* make({ providers: [able] })

      yield* fuse.complete({ messages: [hi], tools: [{ name: "t" }] })

      assert.strictEqual(able.calls, 1)
    })
  )

  it.effect("streaming: the answer is handed out in one piece", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { capabilities: { streaming: false }, reply: "one two" })
      const fuse = yield* make({ providers: [groq], timeouts: { firstToken: "5 seconds" } })

      const response = yield* fuse.complete("hi")

      assert.strictEqual(response.text, "one two")
      assert.strictEqual(groq.streamed.opened, 0)
    })
  )
})
