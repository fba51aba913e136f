/** What a program in plain JavaScript does with the package: the first provider fails, the second answers. */
import assert from "node:assert/strict"
import { FuseClient, Provider } from "llmfuse"
import * as testing from "llmfuse/testing"

const down = Provider.fromPromise({
  name: "down",
  complete: async () => {
    throw Object.assign(new Error("down"), { status: 400 })
  }
})
const up = Provider.fromPromise({ name: "up", complete: async () => "hello" })

const client = FuseClient.make({ providers: [down, up] })
const response = await client.complete("hi")
await client.close()

assert.equal(response.text, "hello")
assert.equal(response.provider, "up")
assert.equal(response.attempts.length, 2)
assert.notEqual(Object.keys(testing).length, 0)
