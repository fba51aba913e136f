/** What a fault server can be told to do with a request: plain data, every field optional, `{}` is a healthy answer. */
import type { Duration } from "effect"

/** An error in words that a vendor would use. What is not set follows from the status. */
export interface FaultError {
  readonly message?: string | undefined
  /** Default: the wire's own for the status, such as `server_error` or `overloaded_error`. */
  readonly type?: string | undefined
  /** OpenAI's wire only; `null`: none. Default: the wire's own for the status. */
  readonly code?: string | null | undefined
}

/** A call of a tool in an answer. */
export interface FaultToolCall {
  readonly name: string
  /** A string is sent as it is, so that it may be invalid JSON; anything else is sent as JSON. Default: `{}`. */
  readonly arguments?: unknown
  /** Default: `call_1`, `call_2`, ... */
  readonly id?: string | undefined
}

/** How an exchange breaks off. */
export interface FaultCut {
  /**
   * `"end"`: the body ends as if it were complete. `"close"`: the connection is closed in the middle of the body.
   * `"reset"`: it is reset. `"stall"`: it stays open and silent.
   */
  readonly how: "end" | "close" | "reset" | "stall"
  /**
   * After how many words of the text, or bytes of the body; with 0 words, when the content would begin.
   * An answer that is shorter is not cut. Default: before the headers.
   */
  readonly after?: { readonly words: number } | { readonly bytes: number } | undefined
  /** `"stall"` only: how long until the connection is closed. Default: never. */
  readonly closeAfter?: Duration.DurationInput | undefined
}

/** Signs of life without content: comments, on Anthropic's wire pings, in an answer that is no stream blank lines. */
export interface FaultKeepAlive {
  /** The time before each of them. */
  readonly every: Duration.DurationInput
  /** How many, then the content follows. Default: for ever, and no content follows. */
  readonly count?: number | undefined
}

/**
 * What a fault server does with a request. In order of time: `headersDelay`, the headers, the opening of the stream,
 * `keepAlive`, `firstTokenDelay`, the words with a `gap` between them, the end, `holdOpen`.
 */
export interface FaultBehaviour {
  /** Default: 200. From 400 on the body is an error. */
  readonly status?: number | undefined
  /** Added to the wire's own, and they win. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The body instead of an answer: a string as it is, anything else as JSON. Default: an answer, or an error. */
  readonly body?: unknown
  /** An error body, under any status. Default: none below 400, and the wire's own for the status from 400 on. */
  readonly error?: FaultError | undefined
  /** Whether a request for a stream is answered by one JSON body. Default: `false`. */
  readonly json?: boolean | undefined

  /** From the request to the headers. Default: no time. */
  readonly headersDelay?: Duration.DurationInput | undefined
  /** From the headers (and keep-alives) to the first content, or to the body where it is no stream. Default: no time. */
  readonly firstTokenDelay?: Duration.DurationInput | undefined
  /** Between two words. Default: no time. */
  readonly gap?: Duration.DurationInput | undefined
  /** Before the content. Default: none. */
  readonly keepAlive?: FaultKeepAlive | undefined
  /** How long the answer stays open after all is sent. Default: no time; `Infinity`: until the client closes it. */
  readonly holdOpen?: Duration.DurationInput | undefined

  /** The model that answers. Default: the one that was asked for. */
  readonly model?: string | undefined
  /**
   * The text; a stream has one event for each word. An iterable gives the words itself, white space included, and is
   * read as fast as the client reads. Default: `FaultServer.sixtyWords`.
   */
  readonly text?: string | Iterable<string> | undefined
  /** How many words of the text are sent; it is repeated if that is more. Default: all, once. */
  readonly words?: number | undefined
  /** The model's reasoning, before the text. Default: none. */
  readonly reasoning?: string | undefined
  /** Calls of tools, after the text. Default: none. */
  readonly toolCalls?: ReadonlyArray<FaultToolCall> | undefined
  /** In the words of the wire; `null`: none is sent. Default: the wire's own for an end, or for calls of tools. */
  readonly finishReason?: string | null | undefined
  /** Tokens; `null`: not sent. Default: 12 read, and one written for each word. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } | null | undefined

  /**
   * When the event that opens a stream goes out (OpenAI's chunk with the role, Anthropic's `message_start`): with the
   * headers, or with the first content. Default: `"early"`.
   */
  readonly opening?: "early" | "late" | undefined
  /** Whether a stream ends with `[DONE]` or `message_stop`. Default: `true`. */
  readonly terminator?: boolean | undefined
  /**
   * An error event after so many words of a stream. Default of `afterWords`: 0, when the content would begin. The
   * stream ends with it; on OpenAI's wire the terminator follows.
   */
  readonly errorEvent?: (FaultError & { readonly afterWords?: number | undefined }) | undefined
  /** Which event of a stream, from 1, is cut in half, so that it is no JSON. Default: none. */
  readonly malformedEvent?: number | undefined
  /** Raw text in a stream before an event, counted from 1. Default: none. */
  readonly inject?: { readonly beforeEvent: number; readonly raw: string } | undefined

  /** Where and how the exchange breaks off. Default: it does not. */
  readonly cut?: FaultCut | undefined
  /** The most bytes in one packet of the body. Default: as many as there are. */
  readonly chunkBytes?: number | undefined
}
