/** What tests of the whole pipeline share: a service of fakes, calls that move the clock, and events in short. */
import { Cause, Effect, Exit, Fiber, Stream, TestClock } from "effect"
import { type ChatEvent, type FuseEvent, LlmFuse, type LlmFuseError, type Options, type Provider } from "llmfuse"
import type { FakeProvider, ScriptedProvider } from "llmfuse/testing"

/** Options with providers that need nothing. */
export type TestOptions = Options<ReadonlyArray<FakeProvider | ScriptedProvider | Provider.Provider>>

/** Waits without jitter: 1 s, 2 s, ... so that a test knows when what happens. */
export const exactRetry = { baseDelay: "1 second", multiplier: 2, maxDelay: "10 seconds", jitter: "none" } as const

/** A service, what it has told, and calls that move the clock until the answer is there. */
export const makeFuse = (options: TestOptions) =>
  Effect.gen(function* () {
    const events: Array<FuseEvent> = []
    const fuse = yield* Effect.provide(
      LlmFuse,
      LlmFuse.layer({ retry: exactRetry, onEvent: (event) => void events.push(event), ...options })
    )
    return {
      ...fuse,
      events,
      eventStream: fuse.events,
      ask: (...call: Parameters<typeof fuse.complete>) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(fuse.complete(...call))
          yield* TestClock.adjust("2 minutes")
          return yield* Fiber.join(fiber)
        })
    }
  })

/** Runs a stream to its end, moving the clock until it is there. */
export const collect = (stream: Stream.Stream<ChatEvent, LlmFuseError>) =>
  Effect.gen(function* () {
    const events: Array<ChatEvent> = []
    const fiber = yield* Effect.fork(Stream.runForEach(stream, (event) => Effect.sync(() => events.push(event))))
    yield* TestClock.adjust("5 minutes")
    const exit = yield* Fiber.await(fiber)
    return { events: events.map(inShort), error: Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined }
  })

/** An event in short. */
export const inShort = (event: ChatEvent): string => {
  switch (event._tag) {
    case "Started":
      return `started ${event.provider}`
    case "TextDelta":
    case "ReasoningDelta":
      return event.text
    case "ToolCallDelta":
      return `call ${event.index} ${event.arguments}`
    case "ToolCall":
      return `call ${event.id} ${JSON.stringify(event.arguments)}`
    case "Restarted":
      return `restarted ${event.provider}: ${event.discarded}`
    case "Finished":
      return `finished ${event.response.provider}: ${event.response.text}`
  }
}

/** The names of events. */
export const tagsOf = (events: ReadonlyArray<FuseEvent>): ReadonlyArray<string> => events.map(({ _tag }) => _tag)
