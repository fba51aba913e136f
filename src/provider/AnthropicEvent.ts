/** The events of a stream in Anthropic's Messages. */

/** An event as far as it is looked at. Nobody promises the shape: what does not fit throws, and is malformed. */
export interface StreamEvent {
  readonly type?: unknown
  readonly index?: unknown
  readonly message?: { readonly id?: unknown; readonly model?: unknown; readonly usage?: unknown } | null
  readonly content_block?: Block | null
  readonly delta?: Delta | null
  readonly usage?: unknown
}

/** The beginning of a block. */
export interface Block {
  readonly type?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
  readonly id?: unknown
  readonly name?: unknown
  readonly input?: unknown
}

/** More of a block, or the end of the message. */
export interface Delta {
  readonly type?: unknown
  readonly text?: unknown
  readonly thinking?: unknown
  readonly signature?: unknown
  readonly partial_json?: unknown
  readonly stop_reason?: unknown
  readonly stop_details?: unknown
}
