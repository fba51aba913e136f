/** Measures how many calls an interval has seen, in constant memory: a pure count over two windows. */

/** Calls of the present window and of the one before. */
export interface Meter {
  readonly startMillis: number
  readonly current: number
  /** Absent in the first window. */
  readonly previous: number | undefined
}

/** Nothing measured yet. */
export const empty = (now: number): Meter => ({ startMillis: now, current: 0, previous: undefined })

const roll = (meter: Meter, intervalMillis: number, now: number): Meter => {
  const windows = Math.floor((now - meter.startMillis) / intervalMillis)
  if (windows === 0) return meter
  // A clock that steps back starts the measuring anew.
  if (windows < 0) return empty(now)
  const startMillis = meter.startMillis + windows * intervalMillis
  return { startMillis, current: 0, previous: windows === 1 ? meter.current : 0 }
}

/** Counts a call. */
export const count = (meter: Meter, intervalMillis: number, now: number): Meter => {
  const rolled = roll(meter, intervalMillis, now)
  return { ...rolled, current: rolled.current + 1 }
}

/** Calls in the last interval. In the first it is extrapolated, from a sixth of it at least. */
export const perInterval = (meter: Meter, intervalMillis: number, now: number): number => {
  const { startMillis, current, previous } = roll(meter, intervalMillis, now)
  const share = (now - startMillis) / intervalMillis
  return previous === undefined ? current / Math.max(share, 1 / 6) : previous * (1 - share) + current
}
