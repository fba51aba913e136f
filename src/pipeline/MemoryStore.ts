/** Keeps values in memory: the least recently used go first, by number and by bytes. */
import type { Kept } from "./CacheStore.ts"
import * as LinkedList from "./LinkedList.ts"

/** How much is kept. */
export interface Limits {
  readonly maxEntries: number
  readonly maxBytes: number
}

/** What a store holds. */
export interface Size {
  readonly entries: number
  /** Of keys and values together, as they were told. */
  readonly bytes: number
}

/**
 * A store whose every operation is one synchronous step of the same cost, however much it holds. The time is told to it,
 * in milliseconds of a monotonic clock.
 */
export interface MemoryStore<A> {
  /** What is kept, which makes it the most recently used. What has expired is dropped here. */
  readonly get: (key: string, nowMillis: number) => Kept<A> | undefined
  /**
   * Keeps a value for a while, in the place of an earlier one. What has expired makes room first, then what was used
   * least recently. A value that is larger than everything may be, or of no size at all (NaN, negative), changes nothing.
   */
  readonly set: (key: string, value: A, bytes: number, keepMillis: number, nowMillis: number) => void
  readonly remove: (key: string) => void
  readonly clear: () => void
  readonly size: () => Size
}

interface Entry<A> {
  readonly key: string
  readonly value: A
  readonly bytes: number
  readonly keptAtMillis: number
  readonly expiresAtMillis: number
  readonly use: LinkedList.Link<Entry<A>>
  readonly age: LinkedList.Link<Entry<A>>
}

/** An empty store. Expired entries are found in the order in which they were kept: keep all equally long. */
export const make = <A>({ maxEntries, maxBytes }: Limits): MemoryStore<A> => {
  const entries = new Map<string, Entry<A>>()
  /** Least recently used first. */
  let uses = LinkedList.make<Entry<A>>()
  /** Longest kept first. */
  let ages = LinkedList.make<Entry<A>>()
  let bytes = 0

  const drop = (entry: Entry<A>) => {
    entries.delete(entry.key)
    uses.remove(entry.use)
    ages.remove(entry.age)
    bytes -= entry.bytes
  }

  const makeRoom = (wanted: number, nowMillis: number) => {
    let oldest = ages.first()
    while (oldest !== undefined && oldest.expiresAtMillis <= nowMillis) {
      drop(oldest)
      oldest = ages.first()
    }
    let unused = uses.first()
    while (unused !== undefined && (entries.size >= maxEntries || bytes + wanted > maxBytes)) {
      drop(unused)
      unused = uses.first()
    }
  }

  return {
    get: (key, nowMillis) => {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (entry.expiresAtMillis <= nowMillis) {
        drop(entry)
        return undefined
      }
      uses.moveToEnd(entry.use)
      return { value: entry.value, ageMillis: Math.max(0, nowMillis - entry.keptAtMillis) }
    },
    set: (key, value, valueBytes, keepMillis, nowMillis) => {
      const wanted = valueBytes + 2 * key.length
      if (!(valueBytes >= 0 && wanted <= maxBytes)) return
      const earlier = entries.get(key)
      if (earlier !== undefined) drop(earlier)
      makeRoom(wanted, nowMillis)
      const entry: { -readonly [K in keyof Entry<A>]?: Entry<A>[K] } = {
        key,
        value,
        bytes: wanted,
        keptAtMillis: nowMillis,
        expiresAtMillis: nowMillis + keepMillis
      }
      entry.use = uses.append(entry as Entry<A>)
      entry.age = ages.append(entry as Entry<A>)
      entries.set(key, entry as Entry<A>)
      bytes += wanted
    },
    remove: (key) => {
      const entry = entries.get(key)
      if (entry !== undefined) drop(entry)
    },
    clear: () => {
      entries.clear()
      uses = LinkedList.make()
      ages = LinkedList.make()
      bytes = 0
    },
    size: () => ({ entries: entries.size, bytes })
  }
}
