/** A line in which the waiters of each key stand in order, and the keys take turns. */

/** Who waits, and under which key. */
export interface Keyed {
  readonly key: string | undefined
}

interface Queue<A> {
  readonly key: string | undefined
  readonly waiters: ReadonlyArray<A>
}

/** The queues in the order of their turns; none of them is empty. Waiters that name no key share one. */
export type Line<A> = ReadonlyArray<Queue<A>>

/** The waiter whose turn it is. */
export const first = <A>(line: Line<A>): A | undefined => line[0]?.waiters[0]

/** How many wait under a key. */
export const sizeOf = <A>(line: Line<A>, key: string | undefined): number =>
  line.find((queue) => queue.key === key)?.waiters.length ?? 0

/** How many wait. */
export const size = <A>(line: Line<A>): number => line.reduce((total, { waiters }) => total + waiters.length, 0)

/** All who wait, in no particular order. */
export const all = <A>(line: Line<A>): ReadonlyArray<A> => line.flatMap(({ waiters }) => waiters)

/** The same line with the waiter at the end of its key's queue. A key that is new has its turn after all others. */
export const join = <A extends Keyed>(line: Line<A>, waiter: A): Line<A> => {
  const index = line.findIndex(({ key }) => key === waiter.key)
  const queue = line[index]
  return queue === undefined
    ? [...line, { key: waiter.key, waiters: [waiter] }]
    : line.with(index, { ...queue, waiters: [...queue.waiters, waiter] })
}

/** The waiters who are served before this one, in that order, if nobody else comes. */
export const ahead = <A extends Keyed>(line: Line<A>, waiter: A): ReadonlyArray<A> => {
  const turn = line.findIndex(({ key }) => key === waiter.key)
  const round = line[turn]?.waiters.indexOf(waiter) ?? -1
  if (line.length === 1) return line[0]?.waiters.slice(0, Math.max(0, round)) ?? []
  return Array.from({ length: round + 1 }, (_, index) =>
    line.slice(0, index === round ? turn : line.length).flatMap(({ waiters }) => waiters.slice(index, index + 1))
  ).flat()
}

/** The line without a waiter that gave up. */
export const leave = <A extends Keyed>(line: Line<A>, waiter: A): Line<A> =>
  line.flatMap((queue) => {
    if (queue.key !== waiter.key) return [queue]
    const waiters = queue.waiters.filter((other) => other !== waiter)
    return waiters.length === 0 ? [] : [{ ...queue, waiters }]
  })

/** The line after its first waiter was served: its key's next turn comes after all others. */
export const shift = <A>(line: Line<A>): Line<A> => {
  const [served, ...others] = line
  if (served === undefined || served.waiters.length === 1) return others
  return [...others, { ...served, waiters: served.waiters.slice(1) }]
}
