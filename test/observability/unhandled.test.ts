import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Layer, Logger, LogLevel, Schema } from "effect"
import { type ClientOptions, FuseClient, OpenAiCompatible, Provider, ServerError } from "llmfuse"
import { FakeHttp, FakeProvider } from "llmfuse/testing"

const secret = "SECRET PROMPT"

/** All that is logged from debug level on, by Effect itself too, while a client is used. */
const loggedBy = async (options: Partial<ClientOptions>, use: (client: FuseClient) => Promise<unknown>) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message, cause }) => void lines.push(`${String(message)} ${Cause.pretty(cause)}`))
  const body = { error: { message: `cannot process '${secret}'` } }
  const http = FakeHttp.make(() => ({ status: 500, body }))
  const down = OpenAiCompatible.make({ name: "down", baseUrl: "http://x/v1", model: "m", apiKey: "k" })
  const client = FuseClient.make({
    providers: [down],
    retry: { maxAttempts: 1 },
    httpClient: http.layer,
    layer: Layer.merge(Logger.replace(Logger.defaultLogger, logger), Logger.minimumLogLevel(LogLevel.All)),
    ...options
  })
  await use(client)
  await client.close()
  return lines
}

const read = async (events: AsyncIterable<unknown>) => {
  for await (const _ of events);
}

describe("what fails and is told to the caller", () => {
  it("is not logged as unhandled, and so quotes no prompt", async () => {
    const lines = await loggedBy({}, async (client) => {
      await client.complete(secret).catch(() => undefined)
      await read(client.stream(secret)).catch(() => undefined)
      await read(client.text(secret)).catch(() => undefined)
      await client.object(Schema.Struct({}), secret).catch(() => undefined)
    })

    assert.deepStrictEqual(lines, [])
  })

  it("nor where another provider answers, a hedge is asked, or an answer is shared", async () => {
    const late = Provider.make({
      name: "late",
      complete: () => Effect.delay(Effect.fail(new ServerError({ provider: "late", message: `late: ${secret}` })), 5)
    })
    const use = async (client: FuseClient) => {
      await Promise.all([1, 2].map(() => client.complete(secret).catch(() => undefined)))
      await read(client.stream(secret)).catch(() => undefined)
    }
    const more = { cache: { ttl: "1 minute" }, deadline: "1 second", limits: { concurrency: 3 } } as const

    assert.deepStrictEqual(await loggedBy({ providers: [late, FakeProvider.make("ok")], ...more }, use), [])
    assert.deepStrictEqual(await loggedBy({ providers: [late], ...more, hedge: { delay: 1 } }, use), [])
    assert.deepStrictEqual(await loggedBy({ providers: [late, late2(late)], ...more, hedge: { delay: 1 } }, use), [])
  })
})

const late2 = (late: Provider.Provider) => Provider.make({ ...late, name: "later", complete: late.complete })
