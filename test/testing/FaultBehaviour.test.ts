import { assert, describe, it } from "@effect/vitest"
import { type FaultBehaviour, FaultServer, type FaultWireName } from "llmfuse/testing"
import { ask, eventsOf, firstWords, packetsOf, textOf } from "./faultClient.ts"

const sixtyWords = FaultServer.sixtyWords

const wires = ["openai-chat", "anthropic-messages"] as const

/** What a client gets from a server that behaves so. */
const got = async (behaviour: FaultBehaviour, wire: FaultWireName = "openai-chat", stream = true) => {
  await using server = await FaultServer.start({ m: behaviour })
  const answer = await ask(server, { wire, stream })
  await server.idle()
  return { ...answer, ended: server.requests[0]?.ended?.how }
}

/** Real timers may fire a little early, and never so late that a test could tell. */
const assertWaited = (millis: number, atLeast: number) => assert.isAtLeast(millis, atLeast - 10)

describe("a FaultServer", () => {
  describe("answers with errors", () => {
    it.each([
      [400, "invalid_request_error", null],
      [401, "invalid_request_error", "invalid_api_key"],
      [429, "requests", "rate_limit_exceeded"],
      [500, "server_error", null],
      [503, "service_unavailable_error", "server_is_overloaded"],
      [529, "overloaded_error", "server_is_overloaded"]
    ])("%i in the words of OpenAI", async (status, type, code) => {
      const answer = await got({ status })

      assert.strictEqual(answer.status, status)
      assert.strictEqual(answer.headers.get("content-type"), "application/json")
      const { error } = JSON.parse(answer.body)
      assert.deepStrictEqual({ type: error.type, code: error.code, param: error.param }, { type, code, param: null })
      assert.isNotEmpty(error.message)
    })

    it.each([
      [400, "invalid_request_error"],
      [401, "authentication_error"],
      [429, "rate_limit_error"],
      [500, "api_error"],
      [529, "overloaded_error"]
    ])("%i in the words of Anthropic", async (status, type) => {
      const answer = await got({ status }, "anthropic-messages")

      assert.strictEqual(answer.status, status)
      const body = JSON.parse(answer.body)
      assert.deepStrictEqual([body.type, body.error.type], ["error", type])
    })

    it("in words of one's own, with headers", async () => {
      const error = { type: "insufficient_quota", code: "insufficient_quota", message: "You ran out." }

      const answer = await got({ status: 429, headers: { "Retry-After": "7" }, error })

      assert.strictEqual(answer.headers.get("retry-after"), "7")
      assert.deepStrictEqual(JSON.parse(answer.body), { error: { ...error, param: null } })
    })

    it.each(wires)("%s: under a status of success too, as JSON, although a stream was asked for", async (wire) => {
      const answer = await got({ error: { message: "Not really." } }, wire)

      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.get("content-type"), "application/json")
      assert.strictEqual(JSON.parse(answer.body).error.message, "Not really.")
    })

    it("with a body of one's own: a string as it is, anything else as JSON", async () => {
      const html = await got({ status: 502, headers: { "content-type": "text/html" }, body: "<h1>Bad Gateway</h1>" })
      const plain = await got({ status: 502, body: "" })
      const json = await got({ status: 422, body: { detail: [{ loc: ["body"] }] } })

      assert.deepStrictEqual([html.headers.get("content-type"), html.body], ["text/html", "<h1>Bad Gateway</h1>"])
      assert.deepStrictEqual([plain.headers.get("content-type"), plain.body], ["text/plain; charset=utf-8", ""])
      assert.deepStrictEqual(JSON.parse(json.body), { detail: [{ loc: ["body"] }] })
    })
  })

  it("answers a request for a stream by one JSON body if told", async () => {
    const answer = await got({ json: true })

    assert.strictEqual(answer.headers.get("content-type"), "application/json")
    assert.strictEqual(JSON.parse(answer.body).choices[0].message.content, sixtyWords)
  })

  describe("takes its time", () => {
    it("before the headers", async () => {
      const answer = await got({ headersDelay: "120 millis" })

      assertWaited(answer.headersMillis, 120)
      assert.strictEqual(textOf(answer.body), sixtyWords)
    })

    it.each(wires)("%s: before the first token, with the headers and the opening at once", async (wire) => {
      await using server = await FaultServer.start({ m: { firstTokenDelay: "20 seconds" } })
      const controller = new AbortController()
      const start = performance.now()

      const response = await fetch(`${server.url}${wire === "openai-chat" ? "/chat/completions" : "/messages"}`, {
        method: "POST",
        body: `{"model":"m","stream":true}`,
        signal: controller.signal
      })
      const opening = await response.body?.getReader().read()
      controller.abort()

      assert.isBelow(performance.now() - start, 10_000)
      assert.match(new TextDecoder().decode(opening?.value), /"role":"assistant"/)
    })

    it("before the first token, with the opening late if told", async () => {
      const answer = await got({ firstTokenDelay: "120 millis", opening: "late" })

      assertWaited(answer.textMillis, 120)
      assert.strictEqual(textOf(answer.body), sixtyWords)
    })

    it("between the words", async () => {
      const answer = await got({ gap: 30, words: 5 })

      assertWaited(answer.endMillis, 120)
      assert.isBelow(answer.textMillis, answer.endMillis - 60)
    })

    it("between the words of a JSON body, and before it", async () => {
      const answer = await got({ gap: 20, words: 4, firstTokenDelay: 50 }, "openai-chat", false)

      assertWaited(answer.endMillis, 110)
      assert.isBelow(answer.headersMillis, answer.endMillis - 60)
      assert.strictEqual(JSON.parse(answer.body).choices[0].message.content, firstWords(sixtyWords, 4))
    })

    it("after the end, with the answer still open", async () => {
      const answer = await got({ holdOpen: "150 millis" })

      assertWaited(answer.endMillis, 150)
      assert.isBelow(answer.textMillis, answer.endMillis - 60)
      assert.strictEqual(answer.ended, "answered")
    })
  })

  describe("gives signs of life", () => {
    it.each([
      ["openai-chat", true, ": keep-alive\n\n"],
      ["anthropic-messages", true, `event: ping\ndata: {"type":"ping"}\n\n`],
      ["openai-chat", false, "\n"]
    ] as const)("%s, stream %s: before the content", async (wire, stream, sign) => {
      const answer = await got({ keepAlive: { every: 40, count: 3 }, opening: "late" }, wire, stream)

      assert.isTrue(answer.body.startsWith(sign.repeat(3)))
      assertWaited(answer.endMillis, 120)
      assert.include(answer.body, "whole.")
    })

    it("for ever, instead of content", async () => {
      await using server = await FaultServer.start({ m: { keepAlive: { every: 10 } } })

      const answer = await ask(server, { signal: AbortSignal.timeout(300) })

      assert.isAbove(answer.body.split(": keep-alive").length, 3)
      assert.strictEqual(textOf(answer.body), "")
      assert.strictEqual((answer.error as Error).name, "TimeoutError")
    })
  })

  describe("sends errors within a stream", () => {
    it.each([
      [
        "openai-chat",
        `data: {"error":{"message":"Boom.","type":"server_error","param":null,"code":null}}\n\ndata: [DONE]\n\n`
      ],
      ["anthropic-messages", `event: error\ndata: {"type":"error","error":{"type":"api_error","message":"Boom."}}\n\n`]
    ] as const)("%s: before any content, as the first event where the opening is late", async (wire, error) => {
      const late = await got({ errorEvent: { message: "Boom." }, opening: "late" }, wire)
      const early = await got({ errorEvent: { message: "Boom." } }, wire)

      assert.strictEqual(late.status, 200)
      assert.strictEqual(late.body, error)
      assert.isTrue(early.body.endsWith(error))
      assert.include(early.body, `"role":"assistant"`)
      assert.strictEqual(textOf(early.body), "")
    })

    it.each(wires)("%s: after some words, and then the stream ends", async (wire) => {
      const error = { afterWords: 40, type: "overloaded_error", message: "Overloaded" }

      const answer = await got({ errorEvent: error, terminator: false }, wire)

      assert.strictEqual(textOf(answer.body), firstWords(sixtyWords, 40))
      assert.deepInclude(eventsOf(answer.body).at(-1) as object, {
        error:
          wire === "openai-chat"
            ? { message: "Overloaded", type: "overloaded_error", param: null, code: null }
            : { type: "overloaded_error", message: "Overloaded" }
      })
      assert.isUndefined(answer.error)
    })

    it("not at all where the answer is shorter", async () => {
      const answer = await got({ errorEvent: { afterWords: 61 } })

      assert.strictEqual(textOf(answer.body), sixtyWords)
      assert.notInclude(answer.body, "error")
    })
  })

  it.each([
    ["openai-chat", 8],
    ["anthropic-messages", 6]
  ] as const)("%s: cuts an event in half, and all others are whole", async (wire, wordsBefore) => {
    const answer = await got({ malformedEvent: 10 }, wire)

    const broken = eventsOf(answer.body).filter((event) => typeof event === "string" && event !== "[DONE]")
    assert.lengthOf(broken, 1)
    assert.strictEqual(eventsOf(answer.body).indexOf(broken[0]), 9)
    assert.match(String(broken[0]), /^\{"/)
    const words = sixtyWords.split(" ")
    const missing = words.filter((_, index) => index !== wordsBefore).join(" ")
    assert.strictEqual(textOf(answer.body), missing)
  })

  it("puts raw text before an event", async () => {
    const answer = await got({ inject: { beforeEvent: 2, raw: "retry: 5\nid: 7\n\n" } })

    assert.match(answer.body, /^data: .*\n\nretry: 5\nid: 7\n\ndata: .*"A"/)
    assert.strictEqual(textOf(answer.body), sixtyWords)
  })

  describe("breaks off", () => {
    it.each(wires)("%s: after some words, as if the answer were complete", async (wire) => {
      const answer = await got({ cut: { how: "end", after: { words: 40 } } }, wire)

      assert.strictEqual(textOf(answer.body), firstWords(sixtyWords, 40))
      assert.isUndefined(answer.error)
      assert.notMatch(answer.body, /\[DONE\]|message_stop|"stop"|end_turn/)
      assert.strictEqual(answer.ended, "cut")
    })

    it.each(["close", "reset"] as const)("after some words, by a %s of the connection", async (how) => {
      const answer = await got({ cut: { how, after: { words: 40 } } })

      assert.strictEqual(textOf(answer.body), firstWords(sixtyWords, 40))
      assert.instanceOf(answer.error, TypeError)
      assert.strictEqual(answer.ended, "cut")
    })

    it("after some words, by silence, and closes after a while", async () => {
      const answer = await got({ cut: { how: "stall", after: { words: 20 }, closeAfter: "150 millis" } })

      assert.strictEqual(textOf(answer.body), firstWords(sixtyWords, 20))
      assertWaited(answer.endMillis, 150)
      assert.instanceOf(answer.error, TypeError)
      assert.strictEqual(answer.ended, "cut")
    })

    it("by silence for ever", async () => {
      await using server = await FaultServer.start({ m: { cut: { how: "stall", after: { words: 20 } } } })

      const answer = await ask(server, { signal: AbortSignal.timeout(300) })

      assert.strictEqual(textOf(answer.body), firstWords(sixtyWords, 20))
      assert.strictEqual((answer.error as Error).name, "TimeoutError")
    })

    it("before the content, with the opening sent or not", async () => {
      const early = await got({ cut: { how: "close", after: { words: 0 } } })
      const late = await got({ opening: "late", cut: { how: "close", after: { words: 0 } } })

      assert.lengthOf(eventsOf(early.body), 1)
      assert.strictEqual(late.body, "")
      assert.strictEqual(late.status, 200)
    })

    it("after signs of life, before the content", async () => {
      const cut = { how: "close", after: { words: 0 } } as const

      const answer = await got({ opening: "late", keepAlive: { every: 5, count: 2 }, cut })

      assert.strictEqual(answer.body, ": keep-alive\n\n".repeat(2))
      assert.instanceOf(answer.error, TypeError)
    })

    it.each([1, 70, 400])("after %i bytes", async (bytes) => {
      const whole = await got({})

      const stream = await got({ cut: { how: "close", after: { bytes } } })
      const json = await got({ cut: { how: "end", after: { bytes } } }, "openai-chat", false)

      assert.strictEqual(stream.body, whole.body.slice(0, bytes))
      assert.lengthOf(json.body, bytes)
      assert.isUndefined(json.error)
    })

    it("before the first byte of the body", async () => {
      const answer = await got({ status: 500, cut: { how: "close", after: { bytes: 0 } } })

      assert.strictEqual(answer.status, 500)
      assert.strictEqual(answer.body, "")
      assert.instanceOf(answer.error, TypeError)
    })

    it("not at all where the answer is shorter", async () => {
      const words = await got({ cut: { how: "close", after: { words: 61 } } })
      const bytes = await got({ cut: { how: "close", after: { bytes: 1e6 } } })

      assert.deepStrictEqual([textOf(words.body), words.ended], [sixtyWords, "answered"])
      assert.deepStrictEqual([textOf(bytes.body), bytes.ended], [sixtyWords, "answered"])
    })

    it.each(["end", "close", "reset"] as const)("before the headers, by %s", async (how) => {
      await using server = await FaultServer.start({ m: [{ cut: { how } }, {}] })

      const [first] = await Promise.allSettled([ask(server)])
      const second = await ask(server)

      assert.strictEqual(first.status, "rejected")
      assert.strictEqual(textOf(second.body), sixtyWords)
      assert.deepStrictEqual(
        server.requests.map(({ ended }) => ended?.how),
        ["cut", "answered"]
      )
    })

    it("before the headers, by silence: it accepts and never answers", async () => {
      await using server = await FaultServer.start({ m: { cut: { how: "stall" } } })

      const [result] = await Promise.allSettled([ask(server, { signal: AbortSignal.timeout(200) })])

      assert.strictEqual(result.status === "rejected" && result.reason.name, "TimeoutError")
    })
  })

  it("splits packets where it is told, even within a line", async () => {
    await using server = await FaultServer.start({ m: { words: 3, chunkBytes: 7 } })

    const packets = await packetsOf(server, "m")
    const { body } = await ask(server)

    // In chunked encoding each piece is announced by its size.
    const pieces = packets.join("").match(/\r\n7\r\n[^\r]{7}/g)
    assert.isAbove(pieces?.length ?? 0, 20)
    assert.isAbove(packets.length, 20)
    assert.strictEqual(textOf(body), firstWords(sixtyWords, 3))
  })
})
