import { createServer, type Server } from "node:http"
import { inspect } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  AllProvidersFailedError,
  ClientClosedError,
  ConfigurationError,
  ConnectionError,
  FuseClient,
  Groq,
  OpenAiCompatible,
  OverloadedError,
  Provider,
  UnknownProviderError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "./errors.ts"

const quick = { baseDelay: 1, maxDelay: "10 seconds" } as const

const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  const [result] = await Promise.allSettled([promise])
  assert(result?.status === "rejected", "it did not reject")
  return result.reason
}

describe("FuseClient", () => {
  it("answers with promises, and fails over", async () => {
    const client = FuseClient.make({
      providers: [
        Provider.fromPromise({ name: "down", complete: () => Promise.reject(new Error("down")) }),
        Provider.fromPromise({ name: "up", complete: async ({ messages }) => `you said: ${messages[0]?.content}` })
      ],
      retry: { ...quick, maxAttempts: 2 }
    })

    const response = await client.complete("hi")
    await client.close()

    assert.strictEqual(response.provider, "up")
    assert.strictEqual(response.text, "you said: hi")
    assert.deepStrictEqual(
      response.attempts.map(({ provider, outcome }) => `${provider} ${outcome}`),
      ["down failure", "down failure", "up success"]
    )
  })

  it("rejects with the typed error itself: instanceof and _tag both work", async () => {
    await using client = FuseClient.make({
      providers: [FakeProvider.make("groq", { errors: outage("groq", 9) })],
      retry: quick
    })

    const error = await rejection(client.complete("hi"))

    assert.instanceOf(error, AllProvidersFailedError)
    assert.instanceOf(error, Error)
    assert.strictEqual(error._tag, "AllProvidersFailedError")
    assert.instanceOf(error.errors.groq, OverloadedError)
    assert.strictEqual(error.errors.groq.attemptCount, 3)
  })

  it("remembers between calls: a circuit that one call opened makes the next one skip the provider", async () => {
    const groq = FakeProvider.make("groq", { errors: outage("groq", 9) })
    await using client = FuseClient.make({
      providers: [groq, FakeProvider.make("gemini")],
      retry: { maxAttempts: 1 },
      breaker: { failureThreshold: 1 }
    })

    await client.complete("one")
    const response = await client.complete("two")

    assert.strictEqual(groq.calls, 1)
    assert.strictEqual(response.attempts[0]?.outcome, "rejected")
    assert.strictEqual(await client.circuitState("groq"), "Open")
    assert.instanceOf(await rejection(client.circuitState("nobody")), UnknownProviderError)
  })

  it("an abort ends the call at once, with the signal's reason, and reaches the provider", async () => {
    let isAborted = false
    let started: () => void = () => undefined
    const hasStarted = new Promise<void>((resolve) => {
      started = resolve
    })
    const hanging = Provider.fromPromise({
      name: "hanging",
      complete: (_, { signal }) =>
        new Promise<string>(() => {
          signal.addEventListener("abort", () => {
            isAborted = true
          })
          started()
        })
    })
    const backup = FakeProvider.make("backup")
    await using client = FuseClient.make({ providers: [hanging, backup] })
    const controller = new AbortController()
    const reason = new Error("the user left")

    const pending = rejection(client.complete("hi", { signal: controller.signal }))
    await hasStarted
    controller.abort(reason)

    assert.strictEqual(await pending, reason)
    assert.isTrue(isAborted)
    assert.strictEqual(backup.calls, 0)
    assert.strictEqual(await client.circuitState("hanging"), "Closed")
  })

  it("a signal that has aborted already sends nothing", async () => {
    const groq = FakeProvider.make("groq")
    await using client = FuseClient.make({ providers: [groq] })

    const error = await rejection(client.complete("hi", { signal: AbortSignal.abort("too late") }))

    assert.strictEqual(error, "too late")
    assert.strictEqual(groq.calls, 0)
  })

  it("leaves no listener on a signal that outlives its calls", async () => {
    let listeners = 0
    const controller = new AbortController()
    const { signal } = controller
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1
      remove(...args)
    }
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq")] })

    for (let call = 0; call < 1000; call++) await client.complete("hi", { signal })

    assert.strictEqual(listeners, 0)
  })

  it("a promise that never settles is left when its time is up, and its signal aborts", async () => {
    let isAborted = false
    const silent = Provider.fromPromise({
      name: "silent",
      timeout: 20,
      complete: (_, { signal }) =>
        new Promise<string>(() =>
          signal.addEventListener("abort", () => {
            isAborted = true
          })
        )
    })
    await using client = FuseClient.make({ providers: [silent, FakeProvider.make("gemini")] })

    const response = await client.complete("hi")

    assert.strictEqual(response.provider, "gemini")
    assert.strictEqual(response.attempts[0]?.error?._tag, "TimeoutError")
    assert.isTrue(isAborted)
  })

  it("close ends the calls that are under way, is safe to repeat, and later calls say so", async () => {
    const client = FuseClient.make({ providers: [{ name: "never", complete: () => Effect.never }] })
    const pending = rejection(client.complete("hi"))

    await client.close()
    await client.close()

    assert.instanceOf(await pending, ClientClosedError)
    assert.instanceOf(await rejection(client.complete("hi")), ClientClosedError)
  })

  it("a wrong option or a missing key is thrown at once, as an Error that names it", () => {
    const make = (options: object) => () => FuseClient.make(options as Parameters<typeof FuseClient.make>[0])

    assert.throws(make({ providers: [] }), ConfigurationError, /providers is an empty list/)
    assert.throws(make({ providers: [FakeProvider.make("a")], retry: { maxAttempts: 0 } }), /retry.maxAttempts is 0/)
    assert.throws(make({ providers: [Groq.make({ model: "", apiKey: "k" })] }), /groq.model is ""/)
  })

  it("a provider that takes time to build is waited for, and its failure rejects every call", async () => {
    const late = Effect.delay(Effect.succeed(FakeProvider.make("late")), 5)
    const broken = Effect.delay(Effect.fail("no vault" as const), 5)
    await using client = FuseClient.make({ providers: [late] })
    await using failing = FuseClient.make({ providers: [broken] })

    assert.strictEqual((await client.complete("hi")).provider, "late")
    assert.include(String(await rejection(failing.complete("hi"))), "no vault")
    assert.include(String(await rejection(failing.complete("hi"))), "no vault")
  })

  it("a defect in a provider is rejected as it is", async () => {
    const bug = new TypeError("bug")
    await using client = FuseClient.make({ providers: [{ name: "a", complete: () => Effect.die(bug) }] })

    assert.strictEqual(await rejection(client.complete("hi")), bug)
  })
})

describe("FuseClient over real HTTP", () => {
  let server: Server
  let baseUrl: string
  const seen: Array<string | undefined> = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      seen.push(request.headers.authorization)
      if (request.url?.startsWith("/down")) {
        response.writeHead(503, { "content-type": "application/json" })
        return response.end(JSON.stringify({ error: { message: "overloaded" } }))
      }
      if (request.url?.startsWith("/reset")) return request.socket.destroy()
      if (request.url?.startsWith("/silent")) return undefined
      response.writeHead(200, { "content-type": "application/json", "x-request-id": "req_1" })
      return response.end(
        JSON.stringify({
          model: "m-1",
          choices: [{ message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
          usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
        })
      )
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    assert(typeof address === "object" && address !== null)
    baseUrl = `http://127.0.0.1:${address.port}`
  })

  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  const host = (name: string) =>
    OpenAiCompatible.make({ name, baseUrl: `${baseUrl}/${name}`, model: "m", apiKey: "sk-secret-123456" })

  it("brings its own HTTP client: an outage and a broken connection fail over to the one that works", async () => {
    await using client = FuseClient.make({
      providers: [host("down"), host("reset"), host("up")],
      retry: { ...quick, maxAttempts: 2 }
    })

    const response = await client.complete("hi")

    assert.strictEqual(response.text, "hello")
    assert.deepStrictEqual(
      [response.provider, response.model, response.requestId, response.finishReason],
      ["up", "m-1", "req_1", "stop"]
    )
    assert.deepStrictEqual(response.usage, { inputTokens: 3, outputTokens: 1 })
    assert.deepStrictEqual(
      response.attempts.map(({ provider, error }) => `${provider} ${error?._tag}`),
      ["down OverloadedError", "down OverloadedError", "reset ConnectionError", "reset ConnectionError", "up undefined"]
    )
    assert.include(seen, "Bearer sk-secret-123456")
    assert.notInclude(inspect(response, { depth: 20, showHidden: true }), "sk-secret")
    assert.instanceOf(response.attempts[2]?.error, ConnectionError)
  })

  it("an abort closes the connection", async () => {
    const closed = new Promise<void>((resolve) => {
      server.once("connection", (socket) => socket.once("close", resolve))
    })
    await using client = FuseClient.make({ providers: [host("silent")] })
    const controller = new AbortController()
    const pending = rejection(client.complete("hi", { signal: controller.signal }))
    setTimeout(() => controller.abort(), 50)

    await pending
    server.closeIdleConnections()
    await closed
  })
})
