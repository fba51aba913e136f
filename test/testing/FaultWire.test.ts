import { assert, describe, it } from "@effect/vitest"
import { Anthropic, type ChatResponse, FuseClient, OpenAiCompatible } from "llmfuse"
import { type FaultBehaviour, FaultServer, type FaultWireName } from "llmfuse/testing"
import { ask, eventsOf, textOf } from "./faultClient.ts"

const sixtyWords = FaultServer.sixtyWords

const wires = ["openai-chat", "anthropic-messages"] as const

const weather: FaultBehaviour = {
  text: "Let me see.",
  reasoning: "hm",
  toolCalls: [{ name: "weather", arguments: { city: "Oslo" } }]
}

/** What a stream is made of, in short. */
const kindsOf = (body: string): ReadonlyArray<string> =>
  eventsOf(body).map((event) => {
    if (typeof event === "string") return event
    // biome-ignore lint/suspicious/noExplicitAny: events are whatever the server sent
    const { type, delta, choices, usage } = event as any
    if (type !== undefined) return delta?.type === undefined ? type : delta.type
    const [choice] = choices
    return choice === undefined ? (usage ? "usage" : "empty") : (choice.finish_reason ?? Object.keys(choice.delta)[0])
  })

/** What our own adapter makes of an answer in one body. */
const readByAdapter = async (wire: FaultWireName, behaviour: FaultBehaviour): Promise<ChatResponse> => {
  await using server = await FaultServer.start({ m: behaviour })
  const endpoint = { name: "fault", baseUrl: server.url, model: "m", apiKey: "key" }
  const provider = wire === "openai-chat" ? OpenAiCompatible.make(endpoint) : Anthropic.make(endpoint)
  await using client = FuseClient.make({ providers: [provider], retry: { maxAttempts: 1 } })
  return await client.complete("hi")
}

describe("the answers of a FaultServer", () => {
  it("have sixty words unless told otherwise", () => {
    assert.lengthOf(sixtyWords.split(" "), 60)
    assert.lengthOf(new Set(sixtyWords.match(/[^.]+\./g)), 3)
  })

  it.each(wires)("%s: in one body are read by the adapter of the wire", async (wire) => {
    const response = await readByAdapter(wire, {})

    assert.strictEqual(response.text, sixtyWords)
    assert.strictEqual(response.model, "m")
    assert.strictEqual(response.finishReason, "stop")
    assert.deepInclude(response.usage, { inputTokens: 12, outputTokens: 60 })
  })

  it.each(wires)("%s: have reasoning, calls of tools and usage as told", async (wire) => {
    const response = await readByAdapter(wire, {
      ...weather,
      model: "other",
      usage: { inputTokens: 5, outputTokens: 7 }
    })

    assert.strictEqual(response.text, "Let me see.")
    assert.strictEqual(response.model, "other")
    assert.strictEqual(response.reasoning, "hm")
    assert.strictEqual(response.finishReason, "tool-calls")
    assert.deepStrictEqual(response.toolCalls, [{ id: "call_1", name: "weather", arguments: { city: "Oslo" } }])
    assert.deepInclude(response.usage, { inputTokens: 5, outputTokens: 7 })
  })

  it("openai-chat: stream as role, words, finish, usage, [DONE]", async () => {
    await using server = await FaultServer.start({ m: { text: "One two  three." } })

    const { status, headers, body } = await ask(server)

    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/event-stream; charset=utf-8")
    assert.strictEqual(headers.get("x-request-id"), "req_fault_1")
    assert.deepStrictEqual(kindsOf(body), ["role", "content", "content", "content", "stop", "usage", "[DONE]"])
    assert.strictEqual(textOf(body), "One two  three.")
    assert.deepInclude(eventsOf(body)[5], { usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 } })
    assert.deepInclude(eventsOf(body)[0], { object: "chat.completion.chunk", model: "m", usage: null })
  })

  it("openai-chat: send usage in a stream only if it is asked for", async () => {
    await using server = await FaultServer.start({ m: { text: "One." } })

    const response = await fetch(`${server.url}/chat/completions`, {
      method: "POST",
      body: `{"model":"m","stream":true}`
    })
    const body = await response.text()

    assert.deepStrictEqual(kindsOf(body), ["role", "content", "stop", "[DONE]"])
    assert.notInclude(body, "usage")
  })

  it("anthropic-messages: stream as blocks between message_start and message_stop, usage cumulative", async () => {
    await using server = await FaultServer.start({ m: { text: "One two." } })

    const { headers, body } = await ask(server, { wire: "anthropic-messages" })

    assert.strictEqual(headers.get("request-id"), "req_fault_1")
    assert.deepStrictEqual(kindsOf(body), [
      "message_start",
      "ping",
      "content_block_start",
      "text_delta",
      "text_delta",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
    assert.strictEqual(textOf(body), "One two.")
    assert.include(body, `"output_tokens":1}}}`)
    assert.deepStrictEqual(eventsOf(body)[6], {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 2 }
    })
    assert.match(body, /^event: message_start\ndata: {"type":"message_start"/)
  })

  it("stream reasoning before the text and calls of tools after it", async () => {
    await using server = await FaultServer.start({ m: weather })

    const openAi = await ask(server)
    const anthropic = await ask(server, { wire: "anthropic-messages" })

    assert.deepStrictEqual(
      kindsOf(openAi.body).filter((kind) => kind !== "content"),
      ["role", "reasoning_content", "tool_calls", "tool_calls", "tool_calls", "usage", "[DONE]"]
    )
    assert.include(openAi.body, `"arguments":"{\\"city\\":\\"Oslo\\"}"`)
    assert.deepStrictEqual(
      kindsOf(anthropic.body).filter((kind) => kind.endsWith("_delta")),
      [
        "thinking_delta",
        "signature_delta",
        "text_delta",
        "text_delta",
        "text_delta",
        "input_json_delta",
        "message_delta"
      ]
    )
    assert.deepInclude(eventsOf(anthropic.body).at(-2), { delta: { stop_reason: "tool_use", stop_sequence: null } })
  })

  it("send a tool's arguments as they are where they are a string", async () => {
    await using server = await FaultServer.start({ m: { toolCalls: [{ name: "f", arguments: "{broken" }] } })

    const openAi = await ask(server)
    const anthropic = await ask(server, { wire: "anthropic-messages" })

    assert.include(openAi.body, `{"arguments":"{broken"}`)
    assert.include(anthropic.body, `"partial_json":"{broken"`)
  })

  it.each([
    ["openai-chat", ["role", "content", "[DONE]"]],
    [
      "anthropic-messages",
      ["message_start", "ping", "content_block_start", "text_delta", "content_block_stop", "message_stop"]
    ]
  ] as const)("%s: leave out the finish reason and the usage if told", async (wire, kinds) => {
    await using server = await FaultServer.start({ m: { text: "One.", finishReason: null, usage: null } })

    const { body } = await ask(server, { wire })

    assert.deepStrictEqual(kindsOf(body), kinds)
    assert.notInclude(body, "_tokens")
  })

  it.each([
    ["openai-chat", "[DONE]"],
    ["anthropic-messages", "message_stop"]
  ] as const)("%s: leave out %s if told", async (wire, terminator) => {
    await using server = await FaultServer.start({ m: { terminator: false } })

    const { body, error } = await ask(server, { wire })

    assert.strictEqual(textOf(body), sixtyWords)
    assert.notInclude(body, terminator)
    assert.isUndefined(error)
  })

  it.each(wires)("%s: name another finish reason in the words of the wire", async (wire) => {
    await using server = await FaultServer.start({ m: { finishReason: "max_tokens" } })

    assert.include((await ask(server, { wire })).body, `_reason":"max_tokens"`)
    assert.include((await ask(server, { wire, stream: false })).body, `_reason":"max_tokens"`)
  })

  it.each(wires)("%s: may have no content at all", async (wire) => {
    await using server = await FaultServer.start({ m: { text: "" } })

    const { body } = await ask(server, { wire })

    assert.strictEqual(textOf(body), "")
    assert.notInclude(kindsOf(body), "content_block_start")
  })

  it("repeat the text, or cut it short, to the number of words", async () => {
    await using server = await FaultServer.start({ more: { text: "One two.", words: 5 }, less: { words: 2 } })

    assert.strictEqual(textOf((await ask(server, { model: "more" })).body), "One two. One two. One")
    assert.strictEqual(textOf((await ask(server, { model: "less" })).body), "A program")
  })

  it.each(wires)("%s: take the words of an iterable as they are, in a stream and in one body", async (wire) => {
    const words = ["He", "said ", '"\u{1F600}"', "\n"]
    await using server = await FaultServer.start({ m: { text: words } })

    const stream = await ask(server, { wire })
    const whole = await ask(server, { wire, stream: false })

    assert.strictEqual(textOf(stream.body), words.join(""))
    assert.include(whole.body, JSON.stringify(words.join("")))
    assert.doesNotThrow(() => JSON.parse(whole.body))
  })
})
