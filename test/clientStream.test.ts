import { getEventListeners } from "node:events"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import {
  AllProvidersFailedError,
  type ChatEvent,
  ClientClosedError,
  FuseClient,
  OpenAiCompatible,
  type Provider,
  StreamInterruptedError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { badRequest } from "./errors.ts"

const quick = { baseDelay: 1, jitter: "none" } as const

const cut = (provider: string) => new StreamInterruptedError({ provider, partial: "" })

const hanging = { wait: "1 hour" } as const

const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  const [result] = await Promise.allSettled([promise])
  assert(result?.status === "rejected", "it did not reject")
  return result.reason
}

const toArray = async <A>(iterable: AsyncIterable<A>): Promise<Array<A>> => {
  const all: Array<A> = []
  for await (const element of iterable) all.push(element)
  return all
}

const eventually = async (what: string, holds: () => boolean): Promise<void> => {
  for (let i = 0; i < 200; i++) {
    if (holds()) return
    await sleep(10)
  }
  assert.fail(`${what}: not within two seconds`)
}

describe("FuseClient.stream", () => {
  it("is an async iterable of events that ends with the response", async () => {
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq", { reply: "One two." })] })

    const events = await toArray(client.stream("hi"))

    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["Started", "TextDelta", "TextDelta", "Finished"]
    )
  })

  it("throws the typed error itself, after what came before it, and is over then", async () => {
    await using client = FuseClient.make({
      providers: [FakeProvider.make("groq", { streams: [["One ", cut("groq")]] })],
      retry: quick
    })
    const events: Array<ChatEvent> = []
    const iterator = client.stream("hi")

    const error = await rejection(
      (async () => {
        for await (const event of iterator) events.push(event)
      })()
    )

    assert.instanceOf(error, StreamInterruptedError)
    assert.strictEqual(error.partial, "One ")
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["Started", "TextDelta"]
    )
    assert.deepStrictEqual(await iterator.next(), { done: true, value: undefined })
  })

  it("sends nothing before the first event is asked for", async () => {
    const groq = FakeProvider.make("groq")
    await using client = FuseClient.make({ providers: [groq] })

    const iterator = client.stream("hi")
    await sleep(5)
    const before = groq.calls
    await iterator.next()
    await iterator.return()

    assert.strictEqual(before, 0)
    assert.strictEqual(groq.calls, 1)
  })

  it("keeps the order when several events are asked for at once", async () => {
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq", { reply: "a b c d" })] })
    const iterator = client.stream("hi")

    const results = await Promise.all(Array.from({ length: 8 }, () => iterator.next()))

    assert.deepStrictEqual(
      results.map(({ value }) => (value?._tag === "TextDelta" ? value.text : value?._tag)),
      ["Started", "a ", "b ", "c ", "d", "Finished", undefined, undefined]
    )
  })

  it("leaving the loop stops the provider before the next statement runs", async () => {
    const groq = FakeProvider.make("groq", { streams: [["One ", "two ", hanging]] })
    await using client = FuseClient.make({ providers: [groq] })

    for await (const event of client.stream("hi")) {
      if (event._tag === "TextDelta") break
    }

    assert.deepStrictEqual(groq.streamed, { opened: 1, closed: 1 })
  })

  it("return() ends a wait for an event that does not come", async () => {
    const groq = FakeProvider.make("groq", { streams: [[hanging]] })
    await using client = FuseClient.make({ providers: [groq] })
    const iterator = client.stream("hi")

    const waiting = iterator.next()
    await sleep(5)
    await iterator.return()

    assert.deepStrictEqual(await waiting, { done: true, value: undefined })
    assert.deepStrictEqual(groq.streamed, { opened: 1, closed: 1 })
  })

  it("await using disposes of a stream", async () => {
    const groq = FakeProvider.make("groq", { streams: [["One ", hanging]] })
    await using client = FuseClient.make({ providers: [groq] })

    {
      await using stream = client.stream("hi")
      await stream.next()
    }

    assert.deepStrictEqual(groq.streamed, { opened: 1, closed: 1 })
  })

  it("an abort rejects the wait with the signal's reason, and leaves no listener", async () => {
    const groq = FakeProvider.make("groq", { streams: [["One ", hanging]] })
    await using client = FuseClient.make({ providers: [groq] })
    const controller = new AbortController()
    const iterator = client.stream("hi", { signal: controller.signal })

    await iterator.next()
    await iterator.next()
    const waiting = iterator.next()
    controller.abort(new Error("enough"))
    const reason = await rejection(waiting)

    assert.strictEqual((reason as Error).message, "enough")
    assert.deepStrictEqual(await iterator.next(), { done: true, value: undefined })
    assert.strictEqual(getEventListeners(controller.signal, "abort").length, 0)
    await eventually("closed", () => groq.streamed.closed === 1)
  })

  it("after an abort nothing is handed out any more, what has already come included", async () => {
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq", { reply: "a b c d e f" })] })
    const controller = new AbortController()
    const iterator = client.stream("hi", { signal: controller.signal })

    await iterator.next()
    controller.abort(new Error("enough"))
    const reason = await rejection(iterator.next())

    assert.strictEqual((reason as Error).message, "enough")
  })

  it("with a signal that has aborted nothing is sent", async () => {
    const groq = FakeProvider.make("groq")
    await using client = FuseClient.make({ providers: [groq] })

    const reason = await rejection(client.stream("hi", { signal: AbortSignal.abort("no") }).next())

    assert.strictEqual(reason, "no")
    assert.strictEqual(groq.calls, 0)
  })

  it("closing the client ends streams under way, and refuses new ones", async () => {
    const groq = FakeProvider.make("groq", { streams: [["One ", hanging]] })
    const client = FuseClient.make({ providers: [groq] })
    const iterator = client.stream("hi")

    await iterator.next()
    await iterator.next()
    const waiting = rejection(iterator.next())
    await client.close()

    assert.instanceOf(await waiting, ClientClosedError)
    assert.deepStrictEqual(groq.streamed, { opened: 1, closed: 1 })
    assert.instanceOf(await rejection(client.stream("hi").next()), ClientClosedError)
  })

  it("waits for a provider that takes time to be built", async () => {
    const slow = Effect.delay(Effect.succeed(FakeProvider.make("slow", { reply: "hello" })), 10)
    await using client = FuseClient.make({ providers: [slow] })

    assert.strictEqual((await toArray(client.text("hi"))).join(""), "hello")
  })
})

describe("FuseClient.text", () => {
  it("is the text alone", async () => {
    const reply = { text: "One two.", reasoning: "Hm.", toolCalls: [{ id: "a", name: "add", arguments: {} }] }
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq", { reply })] })

    assert.deepStrictEqual(await toArray(client.text("hi")), ["One ", "two."])
  })

  it("fails over before the first word, and never restarts after it", async () => {
    const gemini = FakeProvider.make("gemini", { reply: "hello" })
    const groq = FakeProvider.make("groq", { errors: [badRequest("groq")], streams: [["One ", cut("groq")]] })
    await using client = FuseClient.make({ providers: [groq, gemini], recovery: "restart", retry: quick })

    const first = await toArray(client.text("hi"))
    const pieces: Array<string> = []
    const error = await rejection(
      (async () => {
        for await (const piece of client.text("hi", { recovery: "restart" })) pieces.push(piece)
      })()
    )

    assert.deepStrictEqual(first, ["hello"])
    assert.deepStrictEqual(pieces, ["One "])
    assert.instanceOf(error, StreamInterruptedError)
    assert.strictEqual(gemini.calls, 1)
  })

  it("throws when nobody answers", async () => {
    await using client = FuseClient.make({ providers: [FakeProvider.make("groq", { errors: [badRequest("groq")] })] })

    assert.instanceOf(await rejection(toArray(client.text("hi"))), AllProvidersFailedError)
  })
})

describe("over a real socket", () => {
  const servers: Array<Server> = []
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      server.close()
    }
  })

  /** A server that sends two words and then goes on or stays silent; counts requests and those the client closed. */
  const start = async (after: (response: ServerResponse) => void) => {
    const seen = { requests: 0, closed: 0, sockets: 0 }
    const server = createServer((request, response) => {
      seen.requests += 1
      response.on("close", () => {
        if (!response.writableEnded) seen.closed += 1
      })
      request.resume()
      response.writeHead(200, { "content-type": "text/event-stream" })
      for (const word of ["One ", "two "]) {
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: word } }] })}\n\n`)
      }
      after(response)
    })
    server.on("connection", (socket) => {
      seen.sockets += 1
      socket.on("close", () => {
        seen.sockets -= 1
      })
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    return { seen, provider: OpenAiCompatible.make({ name: "loopback", model: "m", baseUrl }) }
  }

  const silent = () => undefined

  it("leaving the loop closes the socket", async () => {
    const { seen, provider } = await start(silent)
    await using client = FuseClient.make({ providers: [provider] })

    for await (const event of client.stream("hi")) {
      if (event._tag === "TextDelta") break
    }

    await eventually("the server sees it", () => seen.closed === 1)
    assert.strictEqual(seen.requests, 1)
  })

  it("an abort closes the socket, and nothing more is sent", async () => {
    const { seen, provider } = await start(silent)
    await using client = FuseClient.make({ providers: [provider], retry: quick })
    const controller = new AbortController()

    const reading = rejection(toArray(client.stream("hi", { signal: controller.signal })))
    await eventually("asked", () => seen.requests === 1)
    await sleep(20)
    controller.abort()
    await reading

    await eventually("the server sees it", () => seen.closed === 1)
    await sleep(20)
    assert.strictEqual(seen.requests, 1)
  })

  it("hundreds of aborted streams leave every request closed, and no listener", { timeout: 60_000 }, async () => {
    const { seen, provider } = await start(silent)
    await using client = FuseClient.make({ providers: [provider] })
    const [total, atOnce] = [400, 50]

    for (let done = 0; done < total; done += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, (_, nth) => abandon(client, nth)))
    }

    await eventually("every request is closed", () => seen.closed === total)
    // What is left are the connections that fetch keeps for the next request.
    assert.isAtMost(seen.sockets, atOnce + 10)
  })
})

/** Begins a stream and leaves it: by abort or by return, in turn. */
const abandon = async (client: FuseClient, nth: number) => {
  const controller = new AbortController()
  const iterator = client.stream("hi", { signal: controller.signal })
  await iterator.next()
  if (nth % 2 === 0) {
    controller.abort()
    await rejection(iterator.next())
  } else {
    await iterator.return()
  }
  assert.strictEqual(getEventListeners(controller.signal, "abort").length, 0)
}

describe("thousands of aborted streams", () => {
  it("leave no timer, stream or memory behind", { timeout: 120_000 }, async () => {
    const open = { now: 0 }
    const provider: Provider.Provider = {
      name: "own",
      complete: () => Effect.never,
      stream: () =>
        Effect.as(
          Effect.acquireRelease(
            Effect.sync(() => {
              open.now += 1
            }),
            () =>
              Effect.sync(() => {
                open.now -= 1
              })
          ),
          Stream.concat(Stream.make("One "), Stream.never)
        )
    }
    const client = FuseClient.make({ providers: [provider] })
    const some = async (count: number) => {
      for (let nth = 0; nth < count; nth += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, index) => abandon(client, index)))
      }
    }
    await some(500)
    const before = heapAfterCollection()

    await some(2000)

    const grown = heapAfterCollection() - before
    const timers = process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length
    await client.close()
    assert.strictEqual(open.now, 0)
    assert.isBelow(grown, 1_000_000)
    assert.isBelow(timers, 10)
  })
})

const heapAfterCollection = (): number => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  collect()
  collect()
  return process.memoryUsage().heapUsed
}
