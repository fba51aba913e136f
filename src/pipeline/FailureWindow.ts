/** Counts what happened lately, in time buckets: constant memory, and what is old is forgotten by its age. */

/** How a window is cut up. */
export interface Rules {
  /** How long one bucket is filled. */
  readonly bucketMillis: number
  readonly buckets: number
}

/** Calls, and those of them that are counted as bad. */
export interface Counts {
  readonly calls: number
  readonly bad: number
}

/** The window as one immutable value. Its buckets are copied once per bucket's time, not with each call. */
export interface Window {
  /** The number of the bucket that is being filled, counted from the beginning of time. */
  readonly slot: number
  /** What is in the bucket that is being filled. */
  readonly current: Counts
  /** The full buckets; number n is at n modulo their count. */
  readonly full: ReadonlyArray<Counts>
  /** The sum of all buckets. */
  readonly total: Counts
}

const none: Counts = { calls: 0, bad: 0 }

const plus = (a: Counts, b: Counts, sign: 1 | -1): Counts => ({
  calls: a.calls + sign * b.calls,
  bad: a.bad + sign * b.bad
})

/** A window in which nothing has happened yet. */
export const make = (rules: Rules, nowMillis: number): Window => ({
  slot: Math.floor(nowMillis / rules.bucketMillis),
  current: none,
  full: Array.from({ length: rules.buckets }, () => none),
  total: none
})

/** The window at a time: buckets that have become too old are forgotten. A time that steps back changes nothing. */
export const at = (window: Window, rules: Rules, nowMillis: number): Window => {
  const slot = Math.floor(nowMillis / rules.bucketMillis)
  const passed = slot - window.slot
  if (!(passed > 0)) return window
  if (passed >= rules.buckets) return { ...make(rules, nowMillis), slot }
  const full = [...window.full]
  full[window.slot % rules.buckets] = window.current
  let { total } = window
  for (let next = window.slot + 1; next <= slot; next++) {
    const index = next % rules.buckets
    total = plus(total, full[index] ?? none, -1)
    full[index] = none
  }
  return { slot, current: none, full, total }
}

/** The window after one call more. */
export const record = (window: Window, rules: Rules, nowMillis: number, isBad: boolean): Window => {
  const moved = at(window, rules, nowMillis)
  const one = { calls: 1, bad: isBad ? 1 : 0 }
  return { ...moved, current: plus(moved.current, one, 1), total: plus(moved.total, one, 1) }
}

/** The share of bad calls, from 0 to 1; 0 where there was no call. */
export const rate = ({ total }: Window): number => (total.calls === 0 ? 0 : total.bad / total.calls)
