/** Bodies that come in packets, and what a provider makes of them. */
import { Effect, Either, Stream } from "effect"
import type { StreamPart } from "../../src/model/ChatEvent.ts"
import type { ChatRequest } from "../../src/model/ChatRequest.ts"
import type { ProviderError } from "../../src/model/LlmError.ts"
import type { Provider } from "../../src/provider/Provider.ts"

/** How a body ends after its packets: as it should, with a broken connection, or not at all. */
export type BodyEnd = "close" | "reset" | "open"

const hello: ChatRequest = { messages: [{ role: "user", content: "hello" }] }

/** A body of packets. Nothing is made before it is read. */
export const bodyIn = (
  packets: ReadonlyArray<string | Uint8Array>,
  end: BodyEnd = "close",
  onPull: () => void = () => {}
): ReadableStream<Uint8Array> => {
  const left = [...packets]
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        onPull()
        const packet = left.shift()
        if (packet !== undefined) {
          return controller.enqueue(typeof packet === "string" ? new TextEncoder().encode(packet) : packet)
        }
        if (end === "close") return controller.close()
        if (end === "reset") {
          const cause = Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" })
          return controller.error(new TypeError("terminated", { cause }))
        }
      }
    },
    { highWaterMark: 0 }
  )
}

/** An event of a stream. */
export const event = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`

/** The stream of a provider, opened. */
export const opened = (provider: Provider, request = hello) => {
  const opening = provider.stream?.(request) ?? Stream.empty
  return Effect.isEffect(opening) ? opening : Effect.succeed(opening)
}

/** What came of a stream: the parts, and the error after them if it failed. */
export interface Drained {
  readonly parts: ReadonlyArray<StreamPart | string>
  readonly error: ProviderError | undefined
}

/** Reads a provider's stream to its end. */
export const drained = (provider: Provider, request = hello): Effect.Effect<Drained> =>
  Effect.gen(function* () {
    const parts: Array<StreamPart | string> = []
    const end = yield* opened(provider, request).pipe(
      Effect.flatMap(Stream.runForEach((part) => Effect.sync(() => parts.push(part)))),
      Effect.scoped,
      Effect.either
    )
    return { parts, error: Either.isLeft(end) ? end.left : undefined }
  })

const isPart = (part: StreamPart | string): part is StreamPart => typeof part !== "string"

/** The parts of one kind. */
export const only = <Tag extends StreamPart["_tag"]>(
  { parts }: Drained,
  tag: Tag
): ReadonlyArray<Extract<StreamPart, { readonly _tag: Tag }>> =>
  parts.filter((part): part is Extract<StreamPart, { readonly _tag: Tag }> => isPart(part) && part._tag === tag)

/** The pieces of text of one kind. */
export const textsOf = (from: Drained, tag: "TextDelta" | "ReasoningDelta" = "TextDelta"): ReadonlyArray<string> =>
  only(from, tag).map(({ text }) => text)
