import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { Part } from "../../src/model/Message.ts"
import { normalize } from "../../src/model/RequestCheck.ts"

const problemOf = (request: ChatRequest) =>
  Either.match(normalize(request), { onLeft: ({ message }) => message, onRight: () => undefined })

const asked = (more: Partial<ChatRequest>): ChatRequest => ({ messages: [{ role: "user", content: "hi" }], ...more })

const circle: Record<string, unknown> = { type: "object" }
circle.circle = circle

describe("what cannot be written as JSON", () => {
  it.each([
    [
      "messages[0].toolCalls[0].arguments",
      { messages: [{ role: "assistant", content: "", toolCalls: [{ id: "1", name: "f", arguments: { a: 1n } }] }] }
    ],
    ["tools[0].parameters", { tools: [{ name: "f", parameters: circle }] }],
    ["responseFormat.schema", { responseFormat: { schema: circle } }],
    ["extra", { extra: { circle } }]
  ] as ReadonlyArray<readonly [string, Partial<ChatRequest>]>)("is refused: %s", (at, more) => {
    assert.include(problemOf(asked(more)), `${at} cannot be written as JSON`)
  })

  it("is no matter where there is nothing", () => {
    const toolCalls = [{ id: "1", name: "f" }]

    assert.isUndefined(problemOf(asked({ messages: [{ role: "assistant", content: "", toolCalls }], extra: {} })))
  })
})

describe("the media type of", () => {
  const bytes = new Uint8Array([1])

  it.each([
    ["an image that is a file", { type: "image", data: bytes, mediaType: "application/pdf" }, '"application/pdf"'],
    ["an image without one", { type: "image", data: "AQID" }, "undefined"],
    ["an image's address", { type: "image", url: "https://x.test/a", mediaType: "png" }, '"png"'],
    ["an address with the bytes", { type: "image", url: "data:text/html;base64,AQID" }, '"text/html"'],
    ["an address with bytes of no type", { type: "image", url: "data:;base64,AQID" }, '""'],
    ["an address without bytes", { type: "image", url: "data:image/png;base64" }, '"data:image/png;base64"'],
    [
      "an address that was given as bytes",
      { type: "image", data: "data:image/png;base64,AQ", mediaType: "image/png" },
      '"data:image/png;base64,AQ"'
    ]
  ] as ReadonlyArray<readonly [string, Part, string]>)("%s is refused by its name", (_, part, value) => {
    const problem = problemOf({ messages: [{ role: "user", content: [part] }] })

    assert.match(problem ?? "", /^messages\[0\]\.content\[0\]\./)
    assert.include(problem, value)
  })

  it.each([
    { type: "image", data: bytes, mediaType: "image/png" },
    { type: "image", url: "data:image/png;base64,AQID" },
    { type: "image", url: "https://x.test/a" },
    { type: "image", url: "gs://bucket/a", mediaType: "image/webp" },
    { type: "file", url: "data:,hello" },
    { type: "file", data: "AQID", mediaType: "text/csv" }
  ] as ReadonlyArray<Part>)("$type is taken as it is", (part) => {
    assert.isUndefined(problemOf({ messages: [{ role: "user", content: [part] }] }))
  })
})
