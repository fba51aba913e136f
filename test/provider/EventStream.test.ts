import * as HttpClient from "@effect/platform/HttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Exit, Fiber, Scope, Stream, TestClock } from "effect"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import { maxEventLength } from "../../src/provider/Sse.ts"
import { type Answer, answering, completion } from "./fakeClient.ts"
import { bodyIn, type Drained, drained, event, only, opened, textsOf } from "./streaming.ts"

const asStream = { "content-type": "text/event-stream" }

const made = (answer: Answer) =>
  OpenAiCompatible.make({ name: "p", model: "m", baseUrl: "https://llm.example.test/v1" }).pipe(
    Effect.provideService(HttpClient.HttpClient, answering({ headers: asStream, ...answer }).client)
  )

/** What becomes of a response. */
const read = (answer: Answer) => Effect.flatMap(made(answer), (provider) => drained(provider))

const text = (content: string) => event({ choices: [{ index: 0, delta: { content } }] })

const finish = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })

const usage = event({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })

const done = event("[DONE]")

const up = event({ error: { code: 503, message: "up" } })

const isWhole = (result: Drained, words: string) => {
  assert.strictEqual(result.error, undefined)
  assert.strictEqual(textsOf(result).join(""), words)
  assert.strictEqual(only(result, "End").length, 1)
}

describe("a cut", () => {
  it.effect.each([
    ["nothing at all", [], "[DONE]"],
    ["no end", [text("a")], "without a finish reason or [DONE]"],
    ["an end within an event", [text("a"), 'data: {"choices":[{"in'], "within an event"],
    ["a malformed event", [text("a"), event('{"choices":'), text("b"), finish, done], "malformed"],
    ["an event that is no object", [text("a"), event("null"), text("b"), finish, done], "malformed"],
    ["a chunk of another shape", [text("a"), event({ choices: [null] }), text("b"), finish, done], "malformed"]
  ] as const)("is %s", ([, packets, words]) =>
    Effect.gen(function* () {
      const result = yield* read({ body: bodyIn([packets.join("")]) })

      assert.strictEqual(result.error?._tag, "StreamInterruptedError")
      assert.include(result.error?.message, words)
      assert.deepStrictEqual(textsOf(result), packets.length === 0 ? [] : ["a"])
      assert.deepStrictEqual(only(result, "End"), [])
      assert.isTrue(result.error?.isRetryable)
    })
  )

  it.effect("by a connection that breaks says how", () =>
    Effect.gen(function* () {
      const { error } = yield* read({
        headers: { ...asStream, "x-request-id": "req_1" },
        body: bodyIn([text("a")], "reset")
      })

      assert.strictEqual(error?._tag, "StreamInterruptedError")
      assert.strictEqual(error?.message, "p: the connection broke: UND_ERR_SOCKET: other side closed")
      assert.deepStrictEqual(error?.cause, { name: "Error", message: "other side closed", code: "UND_ERR_SOCKET" })
      assert.strictEqual(error?.requestId, "req_1")
      assert.strictEqual(error?.statusCode, 200)
    })
  )
})

describe("after the finish reason", () => {
  it.effect.each([
    ["the body ends", [text("a"), finish], "close"],
    ["the connection breaks", [text("a"), finish], "reset"],
    ["it breaks after usage", [text("a"), finish, usage], "reset"],
    ["an event is malformed", [text("a"), finish, event("{")], "close"],
    ["the body ends within an event", [text("a"), finish, 'data: {"us'], "close"],
    ["an event is too long", [text("a"), finish, event("x".repeat(maxEventLength + 1))], "close"]
  ] as const)("the answer is whole though %s", ([, packets, end]) =>
    Effect.gen(function* () {
      isWhole(yield* read({ body: bodyIn(packets, end) }), "a")
    })
  )

  it.effect("two seconds are waited for usage and terminator", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(read({ body: bodyIn([text("a"), finish, usage, ": ping\n\n"], "open") }))
      yield* TestClock.adjust("1999 millis")
      const early = yield* Fiber.poll(fiber)

      yield* TestClock.adjust("1 millis")

      assert.strictEqual(early._tag, "None")
      const result = yield* Fiber.join(fiber)
      isWhole(result, "a")
      assert.deepStrictEqual(only(result, "End")[0]?.usage, { inputTokens: 5, outputTokens: 2 })
    })
  )

  it.effect("they are waited for anew where the model goes on", () =>
    Effect.gen(function* () {
      let send = (_packet: string) => {}
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          send = (packet) => controller.enqueue(new TextEncoder().encode(packet))
        }
      })
      const fiber = yield* Effect.fork(read({ body }))
      for (const packet of [finish, text("a"), text("b"), text("c")]) {
        yield* Effect.promise(() => new Promise(setImmediate))
        send(packet)
        yield* Effect.promise(() => new Promise(setImmediate))
        yield* TestClock.adjust("1500 millis")
      }
      yield* TestClock.adjust("500 millis")

      isWhole(yield* Fiber.join(fiber), "abc")
    })
  )
})

describe("a stream", () => {
  it.effect("may be called nothing", () =>
    Effect.gen(function* () {
      const body = bodyIn([text("a"), finish, done], "open")

      isWhole(yield* read({ headers: { "content-type": "" }, body }), "a")
    })
  )

  it.effect("may be cut where JSON would begin", () =>
    Effect.gen(function* () {
      const [before = "", after = ""] = text("a").split(/(?<=data: )/)

      isWhole(yield* read({ headers: { "content-type": "" }, body: bodyIn([before, after, finish, done]) }), "a")
    })
  )

  it.effect("may have events of blanks, which say nothing", () =>
    Effect.gen(function* () {
      isWhole(yield* read({ body: bodyIn([text("a"), event(" "), event(""), text("b"), finish, done]) }), "ab")
    })
  )
})

describe("after the terminator", () => {
  it.effect("nothing is waited for", () =>
    Effect.gen(function* () {
      isWhole(yield* read({ body: bodyIn([text("a"), finish, done], "open") }), "a")
    })
  )

  it.effect("nothing is read", () =>
    Effect.gen(function* () {
      const result = yield* read({ body: bodyIn([text("a") + finish + done + text("b") + up, text("c")]) })

      isWhole(result, "a")
    })
  )
})

describe("one packet", () => {
  it.effect("is handed out as one chunk, its last parts with it", () =>
    Effect.gen(function* () {
      const provider = yield* made({ body: bodyIn([text("a") + text("b"), text("c") + finish + done]) })

      const chunks = yield* opened(provider).pipe(
        Effect.flatMap((parts) => Stream.runCollect(Stream.chunks(parts))),
        Effect.scoped
      )

      assert.deepStrictEqual(
        Chunk.toReadonlyArray(chunks).map((chunk) => chunk.length),
        [2, 2]
      )
    })
  )

  it.effect("hands out what stands before an error, and then fails", () =>
    Effect.gen(function* () {
      const result = yield* read({ body: bodyIn([text("a") + text("b") + up + text("c") + done]) })

      assert.deepStrictEqual(textsOf(result), ["a", "b"])
      assert.strictEqual(result.error?._tag, "OverloadedError")
    })
  )

  it.effect("that brings no parts brings no chunk", () =>
    Effect.gen(function* () {
      const provider = yield* made({ body: bodyIn([": ping\n\n", text("a"), ": ping\n\n", text(""), finish, done]) })

      const chunks = yield* opened(provider).pipe(
        Effect.flatMap((parts) => Stream.runCollect(Stream.chunks(parts))),
        Effect.scoped
      )

      assert.strictEqual(chunks.length, 2)
    })
  )
})

describe("an event named error", () => {
  it.effect.each([
    ['{"error":{"message":"up","code":503}}', "OverloadedError"],
    ['{"message":"up","code":503}', "OverloadedError"],
    ["up", "InvalidResponseError"],
    ["", "InvalidResponseError"]
  ] as const)("is one whatever it holds: %s", ([data, tag]) =>
    Effect.gen(function* () {
      const result = yield* read({ body: bodyIn([text("a") + event(data, "error") + text("b") + finish + done]) })

      assert.strictEqual(result.error?._tag as string, tag)
      if (data !== "") assert.include(result.error?.message, "up")
      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )
})

describe("lines that belong to no event", () => {
  const raw = JSON.stringify({ error: { code: 503, message: "up", status: "UNAVAILABLE" } }, null, 2)

  it.effect.each([
    ["alone", [raw]],
    ["after text", [text("a"), raw]],
    ["after text, with a terminator", [text("a"), `${raw}\n\n`, done]],
    ["after text, before the connection breaks", [text("a"), `${raw}\n\n`]],
    ["in llama.cpp's old words", [`error: {"code":503,"message":"up"}\n\n`, done]]
  ] as const)("are the error of a stream without a finish: %s", ([name, packets]) =>
    Effect.gen(function* () {
      const { error } = yield* read({ body: bodyIn(packets, name.endsWith("breaks") ? "reset" : "close") })

      assert.strictEqual(error?._tag, "OverloadedError")
      assert.include(error?.message, "up")
    })
  )

  it.effect("are nothing after the finish reason", () =>
    Effect.gen(function* () {
      isWhole(yield* read({ body: bodyIn([text("a"), finish, raw]) }), "a")
    })
  )
})

describe("an event of more than 1 MiB", () => {
  it.effect.each([
    ["one packet", 1],
    ["many packets", 64]
  ] as const)("in %s ends the stream", ([, count]) =>
    Effect.gen(function* () {
      const bytes = new TextEncoder().encode(text("a") + text("x".repeat(maxEventLength)) + finish + done)
      const size = Math.ceil(bytes.length / count)
      const packets = Array.from({ length: count }, (_, index) => bytes.slice(index * size, (index + 1) * size))

      const result = yield* read({ body: bodyIn(packets) })

      assert.strictEqual(result.error?._tag, "InvalidResponseError")
      assert.include(result.error?.message, "longer than 1048576 characters")
      assert.deepStrictEqual(textsOf(result), ["a"])
    })
  )

  it.effect("that never ends is not read to its end", () =>
    Effect.gen(function* () {
      let pulled = 0
      const packets = Array.from({ length: 1000 }, () => "x".repeat(65_536))

      const { error } = yield* read({ body: bodyIn(["data: ", ...packets], "close", () => pulled++) })

      assert.strictEqual(error?._tag, "InvalidResponseError")
      assert.isBelow(pulled, 20)
    })
  )
})

describe("a body that is no stream", () => {
  const answer = JSON.stringify(JSON.parse(completion("whole")), null, 2)

  it.effect.each([
    ["called JSON", "application/json"],
    ["called a stream", "text/event-stream"],
    ["called nothing", ""]
  ] as const)("is read as an answer: %s", ([, type]) =>
    Effect.gen(function* () {
      const result = yield* read({ headers: { "content-type": type }, body: bodyIn(["\n\n  \n", answer]) })

      isWhole(result, "whole")
      assert.deepStrictEqual(only(result, "End"), [{ _tag: "End", finishReason: "stop", model: "m-1" }])
    })
  )

  it.effect("is handed out as no more parts than it has", () =>
    Effect.gen(function* () {
      const tool_calls = [{ id: "1", function: { name: "f", arguments: "{}" } }]

      const result = yield* read({ body: JSON.stringify({ choices: [{ message: { content: null, tool_calls } }] }) })

      assert.deepStrictEqual(result.parts, [
        { _tag: "ToolCall", id: "1", name: "f", arguments: {} },
        { _tag: "End", finishReason: "tool-calls" }
      ])
    })
  )

  it.effect("is handed out as parts", () =>
    Effect.gen(function* () {
      const tool_calls = [{ id: "1", function: { name: "f", arguments: "{}" } }]
      const message = { reasoning: "hm", content: "a", tool_calls }

      const result = yield* read({ body: JSON.stringify({ choices: [{ message, finish_reason: "tool_calls" }] }) })

      assert.deepStrictEqual(result.parts, [
        { _tag: "ReasoningDelta", text: "hm" },
        { _tag: "TextDelta", text: "a" },
        { _tag: "ToolCall", id: "1", name: "f", arguments: {} },
        { _tag: "End", finishReason: "tool-calls" }
      ])
    })
  )

  it.effect.each([
    ["an error", "application/json", '{"error":{"message":"up","code":503}}', "OverloadedError", "up"],
    ["an error called a stream", "text/event-stream", '{"error":{"message":"up","code":503}}', "OverloadedError", "up"],
    ["a flat error", "application/json", '{"message":"up","type":"server_error"}', "ServerError", "up"],
    [
      "xAI's",
      "application/json",
      '{"code":"The service is currently unavailable","error":"up"}',
      "OverloadedError",
      "up"
    ],
    ["a refusal", "application/json", '{"choices":[{"message":{"refusal":"No."}}]}', "ContentPolicyError", "No."],
    ["an empty answer", "application/json", '{"choices":[]}', "EmptyResponseError", "nothing"],
    ["another body", "application/json", '{"id":1}', "InvalidResponseError", "choices"],
    ["a body that was cut", "application/json", '{"choices":[{"mess', "InvalidResponseError", "no JSON"],
    ["a page", "text/html", "<html>\n<title>Sign in</title>\n</html>", "InvalidResponseError", "Sign in"],
    ["a page called a stream", "text/event-stream", "<html><title>Sign in</title>", "InvalidResponseError", "Sign in"],
    ["a text", "text/plain", "upstream connect error", "InvalidResponseError", "no JSON"],
    ["nothing", "application/json", "\n", "EmptyResponseError", "empty"]
  ] as const)("may be what is no answer: %s", ([, type, body, tag, words]) =>
    Effect.gen(function* () {
      const result = yield* read({ headers: { "content-type": type }, body })

      assert.strictEqual(result.error?._tag as string, tag)
      assert.include(result.error?.message, words)
      assert.deepStrictEqual(result.parts, [])
    })
  )

  it.effect("that is not there is empty", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* read({ status: 204 })).error?._tag, "EmptyResponseError")
    })
  )
})

describe("a failed response", () => {
  it.effect("is read before there is a stream", () =>
    Effect.gen(function* () {
      const provider = yield* made({
        status: 429,
        headers: { "retry-after": "7" },
        body: '{"error":{"message":"slow"}}'
      })

      const error = yield* Effect.flip(Effect.scoped(opened(provider)))

      assert.strictEqual(error._tag, "RateLimitError")
      assert.strictEqual(error.message, "p: HTTP 429: slow")
    })
  )
})

describe("reading", () => {
  it.effect("goes no further than is pulled", () =>
    Effect.gen(function* () {
      let pulled = 0
      const packets = Array.from({ length: 100 }, (_, index) => text(`${index}`))
      const provider = yield* made({ body: bodyIn(packets, "close", () => pulled++) })

      const [before, after] = yield* Effect.gen(function* () {
        const pull = yield* Effect.flatMap(opened(provider), Stream.toPull)
        const before = pulled
        yield* Effect.repeatN(pull, 2)
        return [before, pulled]
      }).pipe(Effect.scoped)

      assert.deepStrictEqual([before, after], [0, 3])
    })
  )

  it.effect("of a body that is slow to close does not keep the attempt open", () =>
    Effect.gen(function* () {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode(text("a"))),
        cancel: () => new Promise(() => {})
      })
      const provider = yield* made({ body })
      const scope = yield* Scope.make()
      const pull = yield* opened(provider).pipe(Effect.flatMap(Stream.toPull), Scope.extend(scope))
      yield* pull

      yield* Scope.close(scope, Exit.void)
    })
  )
})
