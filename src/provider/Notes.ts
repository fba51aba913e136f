/** What becomes known while a request is written: what had to give way, and why it cannot be sent. */

/** Gathered on the way through a request. */
export interface Notes {
  /** What was left out or changed, one sentence each, beginning with the field. */
  readonly changes: Set<string>
  /** Why the vendor cannot take the request at all, in words that follow its name. */
  obstacle: string | undefined
}

/** Nothing yet. */
export const make = (): Notes => ({ changes: new Set(), obstacle: undefined })
