/** What a call used, in one meaning for every vendor. */

/** Tokens of one answer. A number that the vendor did not send is absent, never zero. */
export interface Usage {
  /** Tokens read, those from the vendor's cache included. */
  readonly inputTokens: number
  /** Tokens written, reasoning included. */
  readonly outputTokens: number
  /** The part of `inputTokens` that came from the vendor's cache. */
  readonly cachedInputTokens?: number | undefined
  /** The part of `outputTokens` that was reasoning. */
  readonly reasoningTokens?: number | undefined
}
