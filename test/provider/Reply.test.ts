import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ProviderAnswer } from "../../src/model/ChatResponse.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import type { Provider } from "../../src/provider/Provider.ts"
import { answering } from "./fakeClient.ts"
import { drained, only } from "./streaming.ts"

const key = "fx-key-0123456789"

const answerOf = (provider: Provider) => Effect.map(provider.complete(hello), (answer) => answer as ProviderAnswer)

const hello = { messages: [{ role: "user", content: "hello" }] } as const

const made = (answer: Parameters<typeof answering>[0]) =>
  Effect.provide(GeminiNative.make({ model: "m", apiKey: key }), answering(answer).layer)

const body = (responseId: string, text?: string) =>
  JSON.stringify({
    candidates: [{ content: { parts: text === undefined ? [] : [{ text }] }, finishReason: "STOP" }],
    responseId
  })

describe("the id of an exchange", () => {
  it.effect("that the body says is short and on one line, however long it is", () =>
    Effect.gen(function* () {
      const endless = `a\n${"x".repeat(5000)}`
      const full = yield* made({ body: body(endless, "a") })
      const empty = yield* made({ body: body(endless) })
      const streaming = { headers: { "content-type": "text/event-stream" }, body: `data: ${body(endless, "a")}\n\n` }

      const ids = [
        (yield* answerOf(full)).requestId,
        (yield* Effect.flip(answerOf(empty))).requestId,
        ...only(yield* drained(yield* made(streaming)), "End").map(({ requestId }) => requestId)
      ]

      assert.deepStrictEqual(
        ids,
        ids.map(() => `a ${"x".repeat(197)}…`)
      )
    })
  )

  it.effect.each([
    { status: 200, body: body("r", "a") },
    { status: 200, body: body("r") },
    { status: 500, body: "{}" }
  ])("that a header says holds no half of a key where it is cut: %j", (answer) =>
    Effect.gen(function* () {
      const headers = { "x-request-id": `${"x".repeat(190)}${key}` }

      const provider = yield* made({ ...answer, headers })

      const { requestId } = yield* Effect.merge(answerOf(provider))
      assert.strictEqual(requestId, `${"x".repeat(190)}<redacted>`)
    })
  )
})
