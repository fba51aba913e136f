import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { Message, Part } from "../../src/model/Message.ts"
import { asked, refusals, said, text, user } from "./anthropic.ts"

const answer = (content: string, ...ids: ReadonlyArray<string>): Message => ({
  role: "assistant",
  content,
  toolCalls: ids.map((id) => ({ id, name: "f", arguments: {} }))
})

const result = (toolCallId: string, content: Message["content"] = "1", isError?: boolean): Message => ({
  role: "tool",
  toolCallId,
  content,
  isError
})

const call = (id: string, input: object = {}) => ({ type: "tool_use", id, name: "f", input })

const given = (id: string, content: unknown = "1", more: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  content,
  ...more
})

const none = (id: string) => given(id, "There is no result.", { is_error: true })

const turnsOf = (...messages: ReadonlyArray<Message>) =>
  Effect.map(asked(said(...messages)), ({ body, answer }) => ({ turns: body.messages, changes: answer.changes, body }))

describe("what is said", () => {
  it.effect("in a row by one side becomes one turn", () =>
    Effect.gen(function* () {
      const { turns, changes } = yield* turnsOf(
        user("a"),
        user([text("b"), text("c")]),
        answer("d"),
        answer("e"),
        user("f")
      )

      assert.deepStrictEqual(turns, [
        { role: "user", content: [text("a"), text("bc")] },
        { role: "assistant", content: [text("d"), text("e")] },
        { role: "user", content: "f" }
      ])
      assert.strictEqual(changes, undefined)
    })
  )

  it.effect("without words is left out", () =>
    Effect.gen(function* () {
      const { turns } = yield* turnsOf(user("a"), answer(""), user([text(" "), text("\n")]), user("b"), answer(" c \n"))

      assert.deepStrictEqual(turns, [
        { role: "user", content: [text("a"), text("b")] },
        { role: "assistant", content: " c" }
      ])
    })
  )

  it.effect("by the user last keeps its blanks", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* turnsOf(user(" c \n"))).turns, [{ role: "user", content: " c \n" }])
    })
  )

  it.effect("by the system alone is said by the user", () =>
    Effect.gen(function* () {
      const { turns, body, changes } = yield* turnsOf({ role: "system", content: "Say hi." })

      assert.deepStrictEqual(turns, [{ role: "user", content: "Say hi." }])
      assert.notProperty(body, "system")
      assert.strictEqual(changes?.length, 1)
    })
  )
})

const picture: Part = { type: "image", data: "aGk=", mediaType: "image/webp" }
const webp = { type: "image", source: { type: "base64", media_type: "image/webp", data: "aGk=" } }

describe("images and files", () => {
  it.effect.each([
    ["base64", picture, webp],
    ["base64 in lines", { ...picture, data: "aG\nk=\n" }, webp],
    ["bytes", { ...picture, data: Uint8Array.of(104, 105) }, webp],
    ["a data: address", { type: "image", url: "data:image/webp;base64,aGk=" }, webp],
    ["a data: address with escapes", { type: "image", url: "DATA:image/webp;charset=x;base64,aGk%3D" }, webp],
    ["a data: address with blanks", { type: "image", url: "data: Image/WEBP ; base64,aGk=" }, webp],
    ["an image called a file", { ...picture, type: "file", name: "x.webp" }, webp],
    [
      "jpg",
      { ...picture, mediaType: "image/jpg" },
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "aGk=" } }
    ],
    [
      "an address",
      { type: "image", url: "https://x.test/a" },
      { type: "image", source: { type: "url", url: "https://x.test/a" } }
    ],
    [
      "a PDF",
      { type: "file", data: "aGk=", mediaType: "application/pdf", name: "a.pdf" },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "aGk=" }, title: "a.pdf" }
    ],
    [
      "a PDF at an address",
      { type: "file", url: "https://x.test/a.pdf" },
      { type: "document", source: { type: "url", url: "https://x.test/a.pdf" } }
    ],
    [
      "a text",
      { type: "file", data: new TextEncoder().encode("grüß"), mediaType: "text/csv", name: "a.csv" },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "grüß" }, title: "a.csv" }
    ],
    [
      "a text in an address",
      { type: "file", url: "data:,a%20b" },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "a b" } }
    ],
    [
      "JSON",
      { type: "file", data: "e30=", mediaType: "application/ld+json" },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "{}" } }
    ]
  ] as const)("%s", ([, part, block]) =>
    Effect.gen(function* () {
      const { turns } = yield* turnsOf(user([text("See:"), part as Part]))

      assert.deepStrictEqual(turns[0].content, [text("See:"), block])
    })
  )

  it.effect.each([
    ["an image of another type", { ...picture, mediaType: "image/tiff" }, "images of the type image/tiff"],
    ["a file of another type", { type: "file", data: "aGk=", mediaType: "audio/wav" }, "files of the type audio/wav"],
    ["a file at another vendor", { type: "file", url: "gs://bucket/a.pdf" }, "gs: addresses"],
    ["a text at an address", { type: "file", url: "https://x.test/a.txt", mediaType: "text/plain" }, "fetch texts"],
    ["a text that is no base64", { type: "file", data: "%", mediaType: "text/plain" }, "no base64"],
    ["an address without content", { type: "image", url: "data:image/png" }, "images"]
  ] as const)("nobody is asked for %s", ([, part, words]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(turnsOf(user([part as Part])))

      assert.strictEqual(error._tag, "InvalidRequestError")
      assert.include(error, { reason: "capability", provider: "anthropic" })
      assert.include(error.message, words)
    })
  )

  it.effect("of the assistant and the system are left out", () =>
    Effect.gen(function* () {
      const { turns, changes } = yield* turnsOf(
        { role: "system", content: [picture] },
        user(),
        { role: "assistant", content: [text("a"), picture] },
        user()
      )

      assert.deepStrictEqual(turns[1], { role: "assistant", content: "a" })
      assert.strictEqual(changes?.length, 2)
    })
  )
})

describe("results of tools", () => {
  it.effect("stand first in one turn, whatever was said before them", () =>
    Effect.gen(function* () {
      const { turns, changes } = yield* turnsOf(
        user(),
        answer("", "a", "b"),
        user("Wait."),
        result("b"),
        result("a", "2")
      )

      assert.deepStrictEqual(turns.slice(1), [
        { role: "assistant", content: [call("a"), call("b")] },
        { role: "user", content: [given("b"), given("a", "2"), text("Wait.")] }
      ])
      assert.strictEqual(changes, undefined)
    })
  )

  it.effect("of calls in several answers in a row stand behind all of them", () =>
    Effect.gen(function* () {
      const { turns, changes } = yield* turnsOf(user(), answer("", "a"), answer("", "b"), result("a"), result("b"))

      assert.deepStrictEqual(turns.slice(1), [
        { role: "assistant", content: [call("a"), call("b")] },
        { role: "user", content: [given("a"), given("b")] }
      ])
      assert.strictEqual(changes, undefined)
    })
  )

  it.effect("may show images, may be empty, and an error says something", () =>
    Effect.gen(function* () {
      const { turns } = yield* turnsOf(
        user(),
        answer("", "a", "b", "c", "d"),
        result("a", [text("See:"), picture]),
        result("b", ""),
        result("c", "", true),
        result("d", [text("Bad:"), picture], true)
      )

      assert.deepStrictEqual(turns[2].content, [
        given("a", [text("See:"), webp]),
        { type: "tool_result", tool_use_id: "b" },
        given("c", "The tool failed.", { is_error: true }),
        given("d", "Bad:", { is_error: true }),
        webp
      ])
    })
  )

  it.effect("that are missing are stood in for, at the end too", () =>
    Effect.gen(function* () {
      const { turns, changes } = yield* turnsOf(user(), answer("", "a"), user("Never mind."), answer("Well:", "b"))

      assert.deepStrictEqual(turns.slice(2), [
        { role: "user", content: [none("a"), text("Never mind.")] },
        { role: "assistant", content: [text("Well:"), call("b")] },
        { role: "user", content: [none("b")] }
      ])
      assert.strictEqual(changes?.length, 1)
    })
  )

  it.effect("that come late are words of the user", () =>
    Effect.gen(function* () {
      const { turns, changes } = yield* turnsOf(
        user(),
        answer("", "a"),
        user("And?"),
        answer("Soon."),
        result("a", "42")
      )

      assert.deepStrictEqual(turns.slice(2), [
        { role: "user", content: [none("a"), text("And?")] },
        { role: "assistant", content: "Soon." },
        { role: "user", content: [text("Result of the tool call a:"), text("42")] }
      ])
      assert.strictEqual(changes?.length, 2)
    })
  )
})

describe("tool calls of other vendors", () => {
  it.effect("get ids that the wire takes, the same in their results, and none twice", () =>
    Effect.gen(function* () {
      const { turns } = yield* turnsOf(
        user(),
        answer("", "call:0", "call.0"),
        result("call.0", "dot"),
        result("call:0", "colon"),
        answer("", "call:0"),
        result("call:0", "again")
      )

      assert.deepStrictEqual(turns.slice(1), [
        { role: "assistant", content: [call("call_0"), call("call_0_2")] },
        { role: "user", content: [given("call_0_2", "dot"), given("call_0", "colon")] },
        { role: "assistant", content: [call("call_0_3")] },
        { role: "user", content: [given("call_0_3", "again")] }
      ])
    })
  )

  it.effect("have an object as input", () =>
    Effect.gen(function* () {
      const toolCalls = [
        { id: "a", name: "functions.f", arguments: { x: 1 } },
        { id: "b", name: "f", arguments: [1] },
        { id: "c", name: "f", rawArguments: "{" },
        { id: "d", name: "f" }
      ]

      const { turns, changes } = yield* turnsOf(user(), { role: "assistant", content: "", toolCalls })

      assert.deepStrictEqual(turns[1].content, [
        { ...call("a", { x: 1 }), name: "functions_f" },
        call("b"),
        call("c"),
        call("d")
      ])
      assert.include(changes?.join(), "arguments of a call of f")
    })
  )

  it.effect("without arguments lose none", () =>
    Effect.gen(function* () {
      const toolCalls = [{ id: "a", name: "f" }]

      const { changes } = yield* turnsOf(user(), { role: "assistant", content: "", toolCalls }, result("a"))

      assert.strictEqual(changes, undefined)
    })
  )
})

const ids = fc.constantFrom("a", "b", "call:0", "call.0", "ü")

const words = fc.constantFrom("", " ", "x", " y \n")

const messages: fc.Arbitrary<ReadonlyArray<Message>> = fc
  .array(
    fc.oneof(
      fc.record({ role: fc.constantFrom("user" as const, "system" as const), content: words }),
      fc.record({ role: fc.constant("user" as const), content: fc.constant([text("z"), picture]) }),
      fc.tuple(words, fc.array(ids, { maxLength: 3 })).map(([content, calls]) => answer(content, ...calls)),
      fc.tuple(ids, words, fc.boolean()).map(([id, content, isError]) => result(id, content, isError))
    ),
    { maxLength: 12 }
  )
  .map((all) => [user("begin"), ...all])

describe("any conversation", () => {
  it.effect("becomes one that Anthropic takes, the same each time", () =>
    Effect.gen(function* () {
      const isTaken = fc.asyncProperty(messages, async (conversation) => {
        const { turns } = await Effect.runPromise(turnsOf(...conversation))
        const again = await Effect.runPromise(turnsOf(...conversation))

        assert.deepStrictEqual(refusals(turns), [])
        assert.deepStrictEqual(again.turns, turns)
      })

      yield* Effect.promise(() => fc.assert(isTaken, { numRuns: 300 }))
    })
  )

  it("is refused by the rules of this test where it should be", () => {
    const broken = [
      { role: "assistant", content: [call("a"), call("a"), call("ü"), text(" ")] },
      { role: "assistant", content: [] },
      { role: "user", content: [text("x"), given("a")] },
      { role: "assistant", content: "x " }
    ]

    assert.isAtLeast(refusals(broken).length, 7)
    assert.deepStrictEqual(refusals([]), ["no messages"])
  })
})
