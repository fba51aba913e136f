/** What a wire has to say to be played: answers as frames, errors, signs of life. */
import type { FaultError } from "./FaultBehaviour.ts"
import type { FaultWireName } from "./FaultScript.ts"

/** A piece of a body that is sent as one: an event of a stream, or a part of a JSON answer. */
export interface Frame {
  /** `"opening"`: comes before any content. `"word"`: carries a word of the text. `"rest"`: anything else. */
  readonly kind: "opening" | "word" | "rest"
  readonly data: string
}

/** A call of a tool, its arguments as a value and as text. */
export interface WireToolCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly json: string
}

/** An answer with all defaults in place. */
export interface WireAnswer {
  readonly id: string
  readonly model: string
  readonly words: Iterable<string>
  readonly reasoning: string | undefined
  readonly toolCalls: ReadonlyArray<WireToolCall>
  /** `undefined`: the wire's own; `null`: none. */
  readonly finishReason: string | null | undefined
  /** `undefined`: one token for each word. */
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number } | null | undefined
  /** Whether the request asked for usage in a stream. */
  readonly includeUsage: boolean
  readonly terminator: boolean
}

/** A language between client and provider. */
export interface FaultWire {
  readonly name: FaultWireName
  /** The end of the paths that speak it. */
  readonly path: string
  /** Headers of every response. */
  readonly headers: (id: string) => Readonly<Record<string, string>>
  /** The events of a stream. */
  readonly stream: (answer: WireAnswer) => Iterable<Frame>
  /** The parts of an answer in one body. */
  readonly json: (answer: WireAnswer) => Iterable<Frame>
  /** The body of an error. */
  readonly error: (status: number, error: FaultError) => unknown
  /** The events of an error within a stream. */
  readonly errorEvents: (error: FaultError, terminator: boolean) => ReadonlyArray<string>
  /** A sign of life within a stream. */
  readonly keepAlive: string
}

/** The tokens of an answer. */
export const usageOf = ({ usage }: WireAnswer, words: number) =>
  usage === undefined ? { inputTokens: 12, outputTokens: words } : usage

const placeholder = "\uE000text\uE000"

/**
 * A JSON answer with its text in pieces, so that a long one is never held whole. `build` makes the answer around the
 * text (`undefined` where it has no word); nothing before the text may depend on the number of words.
 */
export const jsonFrames = function* (
  words: Iterable<string>,
  build: (text: string | undefined, words: number) => unknown
): Iterable<Frame> {
  let count = 0
  for (const word of words) {
    if (count === 0) yield { kind: "rest", data: JSON.stringify(build(placeholder, 0)).split(placeholder)[0] ?? "" }
    count++
    yield { kind: "word", data: JSON.stringify(word).slice(1, -1) }
  }
  const whole = JSON.stringify(build(count === 0 ? undefined : placeholder, count))
  yield { kind: "rest", data: count === 0 ? whole : (whole.split(placeholder)[1] ?? "") }
}
