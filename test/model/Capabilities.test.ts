import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import * as Capabilities from "../../src/model/Capabilities.ts"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"

const hello: ChatRequest = { messages: [{ role: "user", content: "hello" }] }

const tool = { name: "a", parameters: { type: "object" } } as const

const holding = (part: object): ChatRequest => ({ messages: [{ role: "user", content: [part as never] }] })

const image = holding({ type: "image", url: "https://x.test/a.png" })

const file = holding({ type: "file", url: "https://x.test/a.pdf" })

const prefilled: ChatRequest = { messages: [...hello.messages, { role: "assistant", content: "Well" }] }

const whatOf = (capabilities: Capabilities.Capabilities | undefined, request: ChatRequest) =>
  Capabilities.obstacle(capabilities, request)

const lacking = (what: string) => ({ isTooLong: false, what })

describe("an obstacle", () => {
  it.each([
    ["tools", { ...hello, tools: [tool as never] }, "cannot call tools"],
    ["images", image, "cannot read images"],
    ["files", file, "cannot read files"],
    ["prefill", prefilled, "cannot go on from an assistant message"]
  ] as const)("is what a request needs and a provider lacks: %s", (name, request, what) => {
    const others = [hello, { ...hello, tools: [] }, image, file, prefilled].filter((it) => it !== request)

    assert.deepStrictEqual(whatOf({ [name]: false }, request), lacking(what))
    for (const capabilities of [undefined, {}, { [name]: true }]) {
      assert.strictEqual(whatOf(capabilities, request), undefined)
    }
    for (const other of others) assert.strictEqual(whatOf({ [name]: false }, other), undefined)
  })

  it("is an image among other parts and messages", () => {
    const content = [{ type: "text", text: "a" } as const, { type: "image", url: "https://x.test/a.png" } as const]
    const request: ChatRequest = { messages: [...hello.messages, { role: "user", content }, ...hello.messages] }

    assert.deepStrictEqual(whatOf({ images: false }, request), lacking("cannot read images"))
  })

  it("is no assistant message before the last", () => {
    assert.strictEqual(whatOf({ prefill: false }, { messages: [...prefilled.messages, ...hello.messages] }), undefined)
  })

  it("is a request that does not fit, not one that just fits", () => {
    const request: ChatRequest = { ...hello, maxTokens: 99 }

    assert.strictEqual(whatOf({ contextWindow: 100 }, request), undefined)
    assert.deepStrictEqual(whatOf({ contextWindow: 99 }, request), {
      isTooLong: true,
      what: "about 100 tokens do not fit its context window of 99"
    })
  })
})

describe("an estimate", () => {
  it("counts the characters of the instructions and of every message, and the answer", () => {
    const request: ChatRequest = {
      system: "123456789",
      messages: [
        { role: "user", content: "1234567890" },
        { role: "user", content: [{ type: "text", text: "12345678" }] }
      ]
    }

    assert.strictEqual(Capabilities.estimateTokens(request), 6)
    assert.strictEqual(Capabilities.estimateTokens({ ...request, maxTokens: 10 }), 16)
    assert.strictEqual(Capabilities.estimateTokens({ messages: [{ role: "user", content: "12345678" }] }), 1)
  })
})

describe("what a provider says that it can do", () => {
  const isFine = (capabilities: object) => Either.isRight(Capabilities.check(capabilities, "p.capabilities"))

  it.each(["tools", "images", "files", "jsonSchema", "streaming", "prefill"])("%s is true, false or absent", (flag) => {
    assert.deepStrictEqual(
      [true, false, undefined].map((value) => isFine({ [flag]: value })),
      [true, true, true]
    )
    assert.isFalse(isFine({ [flag]: "yes" }))
  })

  it("the context window is a whole number from 1, and nothing else is said", () => {
    assert.deepStrictEqual(
      [1, undefined, 0, 1.5, "1"].map((contextWindow) => isFine({ contextWindow })),
      [true, true, false, false, false]
    )
    assert.isFalse(isFine({ video: true }))
  })

  it("is refused by its path", () => {
    const error = Either.getOrThrow(Either.flip(Capabilities.check({ tools: 1 as never }, "p.capabilities")))

    assert.include(String(error), "p.capabilities.tools")
  })
})
