/** What a program in plain JavaScript does with the package: failover, streams over a real socket, objects. */
import assert from "node:assert/strict"
import { Schema } from "effect"
import { FuseClient, OpenAiCompatible, Provider, StreamInterruptedError } from "llmfuse"
import { FaultServer } from "llmfuse/testing"

const down = Provider.fromPromise({
  name: "down",
  complete: async () => {
    throw Object.assign(new Error("down"), { status: 400 })
  }
})
const up = Provider.fromPromise({ name: "up", complete: async () => `{"answer":42}` })

const client = FuseClient.make({ providers: [down, up] })
const response = await client.complete("hi")
assert.equal(response.text, `{"answer":42}`)
assert.equal(response.provider, "up")
assert.equal(response.attempts.length, 2)
const { object } = await client.object(Schema.Struct({ answer: Schema.Number }), "hi")
assert.deepEqual(object, { answer: 42 })
await client.close()

const server = await FaultServer.start({ cut: { cut: { how: "close", after: { words: 7 } } }, whole: {} })
const provider = (model) => OpenAiCompatible.make({ name: model, baseUrl: server.url, model })
const streaming = FuseClient.make({ providers: [provider("cut"), provider("whole")], recovery: "restart" })
let text = ""
for await (const event of streaming.stream("hi")) {
  if (event._tag === "TextDelta") text += event.text
  if (event._tag === "Restarted") text = ""
}
assert.equal(text, FaultServer.sixtyWords)
await assert.rejects(async () => {
  for await (const piece of streaming.text("hi")) assert.notEqual(piece, "")
}, StreamInterruptedError)
await streaming.close()
await server.stop()
