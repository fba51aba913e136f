/** What a call used, in one meaning for every vendor. */

/** Tokens of one answer. A number that the vendor did not send is absent, never zero. */
export interface Usage {
  /** Tokens read, those from the vendor's cache and those written to it included. */
  readonly inputTokens: number
  /** Tokens written, reasoning included. */
  readonly outputTokens: number
  /** The part of `inputTokens` that came from the vendor's cache. */
  readonly cachedInputTokens?: number | undefined
  /** The part of `inputTokens` that was written to the vendor's cache. Absent where the vendor does not say. */
  readonly cacheWriteInputTokens?: number | undefined
  /** The part of `cacheWriteInputTokens` that the vendor keeps for an hour, which is dearer. Absent where there is none. */
  readonly cacheWrite1hInputTokens?: number | undefined
  /** The part of `outputTokens` that was reasoning. */
  readonly reasoningTokens?: number | undefined
}

/** Whether a value counts tokens. */
export const isUsage = (input: unknown): input is Usage =>
  typeof input === "object" &&
  input !== null &&
  typeof (input as Partial<Usage>).inputTokens === "number" &&
  typeof (input as Partial<Usage>).outputTokens === "number"
