/** What an answer holds for its own vendor. */

/**
 * Something of an answer that only its own vendor understands, such as a signature over its reasoning. It is sent back
 * to the same wire and model family, and left out for all others.
 */
export interface OpaqueReasoning {
  /** The wire that it belongs to, as the adapter names it. */
  readonly wire: string
  /** The name of the provider that wrote it. */
  readonly provider: string
  readonly value: unknown
}
