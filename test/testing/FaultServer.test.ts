import { spawn } from "node:child_process"
import { once } from "node:events"
import { Agent, request } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import { FaultServer } from "llmfuse/testing"
import { ask, post, textOf } from "./faultClient.ts"

const sixtyWords = FaultServer.sixtyWords

/** Waits until something holds; a test that waits in vain runs into its time limit. */
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await sleep(5)
}

describe("FaultServer", () => {
  describe("follows a script", () => {
    it("that is one healthy behaviour for all where there is none", async () => {
      await using server = await FaultServer.start()

      const answer = await ask(server, { model: "whatever" })

      assert.strictEqual(textOf(answer.body), sixtyWords)
    })

    it("of one behaviour for each request of a model, of which the last repeats", async () => {
      await using server = await FaultServer.start({ a: [{ status: 500 }, { status: 503 }, {}], b: { status: 401 } })

      const statuses: Array<number> = []
      for (const model of ["a", "b", "a", "a", "b", "a"]) statuses.push((await ask(server, { model })).status)

      assert.deepStrictEqual(statuses, [500, 401, 503, 200, 401, 200])
    })

    it("that is a function of the request, for all models or for one", async () => {
      await using one = await FaultServer.start({ m: ({ number, stream }) => ({ text: `${number} ${stream}` }) })
      await using all = await FaultServer.start(({ model, wire, headers }) => ({
        text: `${model} ${wire} ${headers.authorization}`
      }))

      const first = await ask(one)
      const second = await ask(one)
      const headers = { Authorization: "Bearer key" }
      const other = await ask(all, { model: "x", wire: "anthropic-messages", headers })

      assert.deepStrictEqual([textOf(first.body), textOf(second.body)], ["1 true", "2 true"])
      assert.strictEqual(textOf(other.body), "x anthropic-messages Bearer key")
    })

    it("in phases of time: down, then up again", async () => {
      const outage = FaultServer.phases([{ status: 503 }, { from: "300 millis" }])
      await using server = await FaultServer.start({ m: outage })
      await using late = await FaultServer.start({ m: FaultServer.phases([{ from: "1 hour", status: 503 }]) })

      const during = await ask(server)
      await sleep(310)
      const after = await ask(server)

      assert.deepStrictEqual([during.status, after.status], [503, 200])
      assert.strictEqual((await ask(late)).status, 200)
    })

    it("and does not know a model that is not in it", async () => {
      await using server = await FaultServer.start({ m: {} })

      const unknown = await ask(server, { model: "toString" })

      assert.strictEqual(unknown.status, 404)
      assert.strictEqual(JSON.parse(unknown.body).error.code, "model_not_found")
    })

    it("and says so where it fails", async () => {
      await using server = await FaultServer.start(() => {
        throw new Error("no such luck")
      })

      const answer = await ask(server)

      assert.strictEqual(answer.status, 500)
      assert.include(answer.body, "the script failed: Error: no such luck")
    })
  })

  it("says so where a behaviour cannot be played, or cuts it off", async () => {
    const text = {
      *[Symbol.iterator]() {
        yield "One"
        throw new Error("no more words")
      }
    }
    await using server = await FaultServer.start({ header: { headers: { "no header": "x" } }, text: { text, gap: 1 } })

    const header = await ask(server, { model: "header" })
    const cut = await ask(server, { model: "text" })
    await server.idle()

    assert.strictEqual(header.status, 500)
    assert.match(header.body, /FaultServer: it cannot be played: TypeError.*no header/)
    assert.instanceOf(cut.error, TypeError)
    assert.deepStrictEqual(
      server.requests.map(({ ended }) => ended?.how),
      ["answered", "cut"]
    )
  })

  it("refuses every other path and method, and does not log it", async () => {
    await using server = await FaultServer.start()

    const models = await fetch(`${server.url}/models`)
    const get = await fetch(`${server.url}/chat/completions`)

    assert.deepStrictEqual([models.status, get.status], [404, 404])
    assert.include(await models.text(), "Unknown path.")
    assert.deepStrictEqual(server.requests, [])
  })

  describe("logs", () => {
    it("each request as it came", async () => {
      await using server = await FaultServer.start()

      await ask(server, { headers: { "X-Api-Key": "secret" } })
      await sleep(50)
      await ask(server, { wire: "anthropic-messages", stream: false })

      const [first, second] = server.requests
      assert.deepInclude(first, {
        model: "m",
        number: 1,
        wire: "openai-chat",
        path: "/v1/chat/completions",
        stream: true
      })
      assert.deepInclude(second, {
        model: "m",
        number: 2,
        wire: "anthropic-messages",
        path: "/v1/messages",
        stream: false
      })
      assert.strictEqual(first?.headers["x-api-key"], "secret")
      assert.deepInclude(first?.body, { messages: [{ role: "user", content: "hi" }] })
      assert.isAtLeast((second?.at ?? 0) - (first?.at ?? 0), 40)
    })

    it("a body that is no JSON as text", async () => {
      await using server = await FaultServer.start()

      await (await fetch(`${server.url}/chat/completions?x=1`, { method: "POST", body: "{" })).text()

      const [only] = server.requests
      assert.deepInclude(only, { body: "{", model: "", path: "/v1/chat/completions" })
    })

    it("that a request is under way, was answered, or was cut, and when", async () => {
      await using server = await FaultServer.start({ m: [{ gap: 5 }, { cut: { how: "reset" } }] })

      const response = await post(server)
      const endedAtFirst = server.requests[0]?.ended
      await response.text()
      await Promise.allSettled([ask(server)])
      await server.idle()

      assert.isUndefined(endedAtFirst)
      assert.deepStrictEqual(
        server.requests.map(({ ended }) => ended?.how),
        ["answered", "cut"]
      )
      assert.isAtLeast((server.requests[0]?.ended?.at ?? 0) - (server.requests[0]?.at ?? 0), 5 * 59 - 10)
    })

    it.each([
      ["before the headers", { cut: { how: "stall" } }],
      ["before the first token", { firstTokenDelay: "1 hour" }],
      ["between two words", { gap: "1 hour" }],
      ["while it stalls", { cut: { how: "stall", after: { words: 3 } } }],
      ["while the answer is held open", { holdOpen: Number.POSITIVE_INFINITY }]
    ] as const)("that the client closed %s, and when", async (_, behaviour) => {
      await using server = await FaultServer.start({ m: behaviour })
      const controller = new AbortController()

      const asking = Promise.allSettled([ask(server, { signal: controller.signal })])
      await until(() => server.requests.length === 1)
      await sleep(60)
      const { open } = server.connections
      controller.abort()
      await asking
      await server.idle()

      const [only] = server.requests
      assert.strictEqual(only?.ended?.how, "aborted")
      assert.isAtLeast((only?.ended?.at ?? 0) - (only?.at ?? 0), 50)
      assert.strictEqual(open, 1)
      await until(() => server.connections.open === 0)
    })

    it("nothing of a request that never came whole", async () => {
      await using server = await FaultServer.start()
      const half = request(`${server.url}/chat/completions`, { method: "POST", headers: { "content-length": 100 } })
      half.on("error", () => undefined)

      half.write("{")
      await until(() => server.connections.open === 1)
      half.destroy()
      await until(() => server.connections.open === 0)

      assert.deepStrictEqual(server.requests, [])
    })
  })

  it("counts connections: one that is kept alive serves many requests, until the client closes it", async () => {
    await using server = await FaultServer.start()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const get = async () => {
      const sending = request(`${server.url}/chat/completions`, { agent, method: "POST" }).end(`{"model":"m"}`)
      const [response] = await once(sending, "response")
      await once(response.resume(), "end")
    }

    for (let count = 0; count < 5; count++) await get()
    const before = server.connections
    agent.destroy()
    await until(() => server.connections.open === 0)

    assert.deepStrictEqual(before, { open: 1, accepted: 1 })
    assert.lengthOf(server.requests, 5)
  })

  describe("writes", () => {
    it("only as fast as the client reads", async () => {
      let taken = 0
      const text = {
        *[Symbol.iterator]() {
          for (; taken < 100_000; taken++) yield "x".repeat(1000)
        }
      }
      await using server = await FaultServer.start({ m: { text } })

      const response = await post(server)
      await until(() => taken > 0)
      let before = -1
      while (before !== taken) {
        before = taken
        await sleep(100)
      }
      const held = taken
      await response.body?.cancel()
      await server.idle()

      assert.isBelow(held, 50_000)
      assert.strictEqual(server.requests[0]?.ended?.how, "aborted")
    })

    it("a long answer whole", async () => {
      await using server = await FaultServer.start({ m: { words: 10_000 } })

      const stream = await ask(server)
      const whole = await ask(server, { stream: false })

      const words = textOf(stream.body).split(" ")
      assert.lengthOf(words, 10_000)
      assert.strictEqual(JSON.parse(whole.body).choices[0].message.content, words.join(" "))
      assert.isBelow(stream.endMillis, 10_000)
    })
  })

  describe("stops", () => {
    it("with everything cut that is open, and says so in the log", async () => {
      const server = await FaultServer.start({ m: { gap: "1 hour" } })
      const asking = ask(server)
      await until(() => server.requests.length === 1)

      await server.stop()
      const { error } = await asking

      assert.instanceOf(error, TypeError)
      assert.strictEqual(server.requests[0]?.ended?.how, "stopped")
      assert.strictEqual(server.connections.open, 0)
      await server.stop()
      assert.strictEqual((await Promise.allSettled([ask(server)]))[0].status, "rejected")
    })

    it("and then holds nothing: a process with nothing else to do exits", { timeout: 60_000 }, async () => {
      const script = fileURLToPath(new URL("faultServerProcess.ts", import.meta.url))
      const child = spawn(process.execPath, ["--import", "tsx", script], { stdio: ["ignore", "pipe", "inherit"] })
      let output = ""
      child.stdout.on("data", (data) => {
        output += data
      })

      const [code] = await once(child, "exit")

      assert.strictEqual(code, 0)
      assert.strictEqual(output, "stopped\n")
    })
  })

  describe("is a resource", () => {
    it("of a block", async () => {
      let server: FaultServer
      {
        await using started = await FaultServer.start()
        server = started
        assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+\/v1$/)
        await ask(server)
      }

      assert.strictEqual(server.connections.open, 0)
    })

    it.live("of an Effect program, whose scope stops it", () =>
      Effect.gen(function* () {
        const stopped = yield* Effect.scoped(
          Effect.gen(function* () {
            const server = yield* FaultServer.make({ m: { status: 503 } })
            const { status } = yield* Effect.promise(() => ask(server))
            assert.strictEqual(status, 503)
            return server
          })
        )

        const exit = yield* Effect.exit(Effect.tryPromise(() => ask(stopped)))
        assert.isTrue(Exit.isFailure(exit))
        assert.strictEqual(stopped.connections.open, 0)
      })
    )

    it.scoped("of a test on the simulated clock: the server's own time is real", () =>
      Effect.gen(function* () {
        const server = yield* FaultServer.make({ m: { headersDelay: Duration.millis(50) } })

        const { status } = yield* Effect.promise(() => ask(server))

        assert.strictEqual(status, 200)
      })
    )
  })
})
