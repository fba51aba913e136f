/** Times of the wall, which its tests compress. */

/** What durations become at a time scale. */
export interface Timing {
  readonly scale: number
  /** A time that something takes, in milliseconds. */
  readonly seconds: (count: number) => number
  /** A time that something may take: compressed time gets a margin, since the machine is not faster. */
  readonly limit: (count: number) => number
}

/** Times multiplied by a scale. */
export const timing = (scale: number): Timing => {
  const seconds = (count: number) => count * 1000 * scale
  return { scale, seconds, limit: (count) => seconds(count) + (scale < 1 ? 500 : 0) }
}

/** For faults whose times cannot be compressed, such as whole seconds in an HTTP date. */
export const realTime = timing(1)
