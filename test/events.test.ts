import { assert, describe, it, vi } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, Stream, TestClock } from "effect"
import {
  FuseClient,
  type FuseEvent,
  InvalidRequestError,
  type LlmFuse,
  type ObservedEvent,
  Provider,
  StreamInterruptedError
} from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import * as EventHub from "../src/observability/EventHub.ts"
import { outage } from "./errors.ts"
import { collect, makeFuse, tagsOf } from "./fuse.ts"

/** Lets what was forked begin. */
const begun = Effect.repeatN(Effect.yieldNow(), 9)

const retry = { maxAttempts: 2, baseDelay: "1 second", jitter: "none" } as const

describe("the events of a call", () => {
  it.effect("have one id and their time, and begin and end once", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9), latency: "2 seconds" })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini", { model: "flash" })], retry })

      yield* fuse.ask("hi", { tag: "tenant" })

      assert.deepStrictEqual(tagsOf(fuse.events), [
        "CallStarted",
        "AttemptStarted",
        "AttemptFailed",
        "RetryScheduled",
        "AttemptStarted",
        "AttemptFailed",
        "FailedOver",
        "AttemptStarted",
        "AttemptSucceeded",
        "CallSucceeded"
      ])
      const ids = new Set(fuse.events.map(({ callId }) => callId))
      assert.strictEqual(ids.size, 1)
      assert.match([...ids][0] ?? "", /^[0-9a-z]{6}-1$/)
      assert.deepStrictEqual(
        fuse.events.map(({ at }) => DateTime.toEpochMillis(at)),
        [0, 0, 2000, 2000, 3000, 5000, 5000, 5000, 5000, 5000]
      )
      assert.deepInclude(fuse.events[0], { operation: "complete", tag: "tenant" })
      assert.deepInclude(fuse.events.at(-1) ?? {}, { provider: "gemini", model: "flash", attempt: 1 })
    })
  )

  it.effect("of two calls have two ids", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")] })

      yield* fuse.ask("one")
      yield* fuse.ask("two")

      assert.strictEqual(new Set(fuse.events.map(({ callId }) => callId)).size, 2)
    })
  )

  it.effect("say which call has opened a circuit", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 1) })],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1 }
      })
      yield* Effect.exit(fuse.ask("hi"))
      yield* fuse.ask("hi")

      const [first, second] = fuse.events.flatMap((event) => (event._tag === "CallStarted" ? [event.callId] : []))
      const told = fuse.events.flatMap((event) =>
        event._tag.startsWith("Circuit") ? [[event._tag, event.callId]] : []
      )
      assert.deepStrictEqual(told, [
        ["CircuitOpened", first],
        ["CircuitHalfOpened", second],
        ["CircuitClosed", second]
      ])
    })
  )

  it.effect("come in the order in which one thing led to the other, with circuits and whom they reject", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 9) }), FakeProvider.make("gemini")],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1 }
      })

      yield* fuse.complete("hi")
      yield* fuse.complete("hi")
      yield* Effect.exit(fuse.complete("hi", { providers: ["groq"] }))

      const failure = ["AttemptStarted", "AttemptFailed", "CircuitOpened"]
      const answer = ["AttemptStarted", "AttemptSucceeded", "CallSucceeded"]
      assert.deepStrictEqual(tagsOf(fuse.events), [
        ...["CallStarted", ...failure, "FailedOver", ...answer],
        ...["CallStarted", "AttemptRejected", "FailedOver", ...answer],
        ...["CallStarted", "AttemptRejected", "CallFailed"]
      ])
    })
  )

  it.effect("a whole answer that takes the place of a stream is told after the restart", () =>
    Effect.gen(function* () {
      const whole = Provider.make({ name: "whole", complete: () => Effect.succeed("all of it") })
      const cut = new StreamInterruptedError({ provider: "groq", partial: "" })
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { streams: [["half ", cut]] }), whole],
        recovery: "restart",
        retry: { maxAttempts: 1 }
      })

      yield* collect(fuse.stream("hi"))

      assert.deepStrictEqual(tagsOf(fuse.events).slice(-4), [
        "AttemptStarted",
        "StreamRestarted",
        "AttemptSucceeded",
        "CallSucceeded"
      ])
    })
  )

  it.effect("of an interrupted call end too", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq", { latency: "1 hour" })] })
      const fiber = yield* Effect.fork(fuse.complete("hi"))
      yield* begun

      yield* Fiber.interrupt(fiber)

      assert.deepStrictEqual(tagsOf(fuse.events), [
        "CallStarted",
        "AttemptStarted",
        "AttemptInterrupted",
        "CallInterrupted"
      ])
    })
  )

  it.effect("of a call that a defect ended say so, and what kind of value it was", () =>
    Effect.gen(function* () {
      const broken = { name: "broken", complete: () => Effect.die(new TypeError("secret")) }
      const fuse = yield* makeFuse({ providers: [broken] })

      yield* Effect.exit(fuse.complete("hi"))

      assert.deepStrictEqual(tagsOf(fuse.events), ["CallStarted", "AttemptStarted", "AttemptInterrupted", "CallDied"])
      const died = fuse.events.at(-1)
      assert.deepStrictEqual(died?._tag === "CallDied" && died.error, { _tag: "TypeError" })
    })
  )

  it.effect("hold the defect itself where that is wanted", () =>
    Effect.gen(function* () {
      const defect = new TypeError("secret")
      const broken = { name: "broken", complete: () => Effect.die(defect) }
      const fuse = yield* makeFuse({ providers: [broken], captureContent: true })

      yield* Effect.exit(fuse.complete("hi"))

      const died = fuse.events.at(-1)
      assert.strictEqual(died?._tag === "CallDied" && died.error, defect)
    })
  )

  it.effect("of a call that is refused are its beginning and its failure", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")] })

      yield* Effect.exit(fuse.complete("hi", { deadline: -1 }))

      assert.deepStrictEqual(tagsOf(fuse.events), ["CallStarted", "CallFailed"])
      const [, failed] = fuse.events
      assert.isTrue(failed?._tag === "CallFailed" && failed.error instanceof InvalidRequestError)
    })
  )

  it.effect("a listener that throws harms no call, and not the other listeners", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq")],
        onEvent: () => {
          throw new Error("a bug")
        }
      })
      const seen = yield* Effect.fork(Stream.runCollect(Stream.take(fuse.eventStream, 4)))
      yield* begun

      const response = yield* fuse.ask("hi")

      assert.strictEqual(response.text, "ok")
      assert.strictEqual((yield* Fiber.join(seen)).length, 4)
    })
  )

  it("a listener whose promise rejects harms nobody", async () => {
    const unhandled: Array<unknown> = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on("unhandledRejection", note)
    const client = FuseClient.make({
      providers: [FakeProvider.make("groq")],
      onEvent: async () => {
        throw new Error("a bug")
      }
    })

    const { text } = await client.complete("hi")
    await new Promise((resolve) => setTimeout(resolve, 5))
    await client.close()
    process.off("unhandledRejection", note)

    assert.strictEqual(text, "ok")
    assert.deepStrictEqual(unhandled, [])
  })

  it.effect("come in one order to all who listen, also when one of them brings about the next", () =>
    Effect.gen(function* () {
      let restore: LlmFuse["Type"]["restore"] | undefined
      const fuse = yield* makeFuse({
        providers: [FakeProvider.make("groq", { errors: outage("groq", 1) })],
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1 },
        onEvent: (event) => {
          if (event._tag === "CircuitOpened" && restore !== undefined) Effect.runSync(restore("groq"))
        }
      })
      restore = fuse.restore
      const seen: Array<string> = []
      yield* Effect.fork(Stream.runForEach(fuse.eventStream, ({ _tag }) => Effect.sync(() => seen.push(_tag))))
      yield* begun

      yield* Effect.exit(fuse.complete("hi"))
      yield* begun

      assert.deepStrictEqual(
        seen.filter((tag) => tag.startsWith("Circuit")),
        ["CircuitOpened", "CircuitClosed"]
      )
    })
  )

  it.effect("nobody listens: no event is built, and no id is made", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")], onEvent: undefined })

      yield* fuse.ask("unheard")
      const seen = yield* Effect.fork(Stream.runCollect(Stream.take(fuse.eventStream, 1)))
      yield* begun
      yield* fuse.ask("heard")

      const [first] = yield* Fiber.join(seen)
      assert.isTrue(first?._tag === "CallStarted" && first.callId.endsWith("-1"))
    })
  )
})

describe("the stream of events", () => {
  const words = (events: Iterable<ObservedEvent>) => [...events].map(({ _tag }) => _tag)

  it.effect("begins when it is run; each reader has its own", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")] })
      yield* fuse.ask("before")
      const readers = yield* Effect.fork(
        Effect.all(
          [1, 2].map(() => Stream.runCollect(Stream.take(fuse.eventStream, 4))),
          { concurrency: 2 }
        )
      )
      yield* begun

      yield* fuse.ask("now")

      const [one, other] = yield* Fiber.join(readers)
      assert.deepStrictEqual(words(one ?? []), ["CallStarted", "AttemptStarted", "AttemptSucceeded", "CallSucceeded"])
      assert.deepStrictEqual(words(other ?? []), words(one ?? []))
    })
  )

  it.effect("a slow reader holds no call up, and is told how much it has missed", () =>
    Effect.gen(function* () {
      const fuse = yield* makeFuse({ providers: [FakeProvider.make("groq")], onEvent: undefined })
      const seen: Array<ObservedEvent> = []
      const slow = yield* Effect.fork(
        Stream.runForEach(fuse.eventStream, (event) =>
          Effect.zipRight(
            Effect.sync(() => seen.push(event)),
            seen.length === 1 ? Effect.sleep("1 hour") : Effect.void
          )
        )
      )
      yield* begun

      yield* Effect.repeatN(fuse.complete("hi"), 499)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.interrupt(slow)

      const dropped = seen.reduce((sum, event) => (event._tag === "EventsDropped" ? sum + event.count : sum), 0)
      const got = seen.filter(({ _tag }) => _tag !== "EventsDropped").length
      assert.isAbove(dropped, 0)
      assert.strictEqual(dropped + got, 2000)
    })
  )

  it.effect("what a reader has missed is counted at once, even if it never goes on", () =>
    Effect.gen(function* () {
      const hub = yield* EventHub.make(false)
      let dropped = 0
      hub.listen(
        () => {},
        (count) => {
          dropped += count
        }
      )
      yield* Effect.fork(Stream.runForEach(hub.events, () => Effect.never))
      yield* begun
      hub.tell(isolated(hub))
      yield* begun

      for (let n = 0; n < EventHub.bufferSize + 3; n++) hub.tell(isolated(hub))

      assert.strictEqual(dropped, 3)
    })
  )

  it("a client's events are an async iterable, which ends when the client is closed", async () => {
    const client = FuseClient.make({ providers: [FakeProvider.make("groq")] })
    const seen: Array<string> = []
    const reading = (async () => {
      for await (const event of client.events()) seen.push(event._tag)
    })()
    await new Promise((resolve) => setTimeout(resolve, 0))

    await client.complete("hi")
    await new Promise((resolve) => setTimeout(resolve, 0))
    await client.close()
    await reading

    assert.deepStrictEqual(seen, ["CallStarted", "AttemptStarted", "AttemptSucceeded", "CallSucceeded"])
  })

  it("a listener that asks again and again leaves others time", async () => {
    let asked = 0
    const client = FuseClient.make({
      providers: [FakeProvider.make("groq")],
      onEvent: ({ _tag }) => {
        if (_tag !== "CallSucceeded" || asked === 3000) return
        asked += 1
        void client.complete("again")
      }
    })

    await client.complete("hi")
    await new Promise((resolve) => setTimeout(resolve, 0))
    const then = asked
    await vi.waitUntil(() => asked === 3000)
    await client.close()

    assert.isBelow(then, 3000)
  })

  it("leaving the loop takes the listener away", async () => {
    const client = FuseClient.make({ providers: [FakeProvider.make("groq")] })
    const events = client.events()
    const first = events.next()
    await new Promise((resolve) => setTimeout(resolve, 0))
    await client.complete("hi")
    assert.strictEqual((await first).value?._tag, "CallStarted")

    await events.return()
    await client.complete("hi")

    assert.isTrue((await events.next()).done)
    await client.close()
  })
})

/** An event, whichever. */
const isolated = (hub: EventHub.EventHub): FuseEvent => ({
  _tag: "CircuitIsolated",
  at: hub.now(),
  callId: undefined,
  provider: "groq"
})

describe("who comes and goes while an event is told", () => {
  it.effect("is told from the next event on, or no more at all", () =>
    Effect.gen(function* () {
      const hub = yield* EventHub.make(false)
      const seen: Array<string> = []
      const leave: { second?: () => void } = {}
      let isFirst = true
      hub.listen(() => {
        if (isFirst) {
          isFirst = false
          // Told before the third listens, so it is none of its own.
          hub.tell(isolated(hub))
          hub.listen(() => seen.push("third"))
          leave.second?.()
        }
        seen.push("first")
      })
      leave.second = hub.listen(() => seen.push("second"))

      hub.tell(isolated(hub))
      hub.tell(isolated(hub))

      assert.deepStrictEqual(seen, ["first", "first", "first", "third"])
    })
  )
})

describe("the events of a call and its attempts", () => {
  it.effect("tell the same story", () =>
    Effect.gen(function* () {
      const groq = FakeProvider.make("groq", { errors: outage("groq", 9), latency: "2 seconds" })
      const fuse = yield* makeFuse({ providers: [groq, FakeProvider.make("gemini")], retry })

      const { attempts } = yield* fuse.ask("hi")

      assert.deepStrictEqual(
        retold(fuse.events),
        attempts.map(({ provider, number, outcome }) => `${provider} ${number} ${outcome}`)
      )
      const waits = fuse.events.flatMap((event) =>
        event._tag === "AttemptStarted" ? [Duration.toMillis(event.waited)] : []
      )
      assert.deepStrictEqual(
        waits,
        attempts.map(({ waited = Duration.zero }) => Duration.toMillis(waited))
      )
    })
  )

  const retold = (events: ReadonlyArray<FuseEvent>): ReadonlyArray<string> =>
    events.flatMap((event) => {
      switch (event._tag) {
        case "AttemptFailed":
          return [`${event.provider} ${event.attempt} failure`]
        case "CallSucceeded":
          return [`${event.provider} ${event.attempt} success`]
        default:
          return []
      }
    })
})
