/** Where a cache keeps its values: in memory, or in a store that may fail, which is then as if it were empty. */
import { type Clock, Effect } from "effect"
import { attemptTimeout } from "./AttemptTimeout.ts"
import { type CacheStore, CacheStoreError, errorOf, type Kept, type Operation } from "./CacheStore.ts"
import * as MemoryStore from "./MemoryStore.ts"
import * as Monotonic from "./Monotonic.ts"

/** A place to keep values. Nothing here fails. */
export interface CachePlace<A> {
  /** The same as `find` in one step, where that can be. */
  readonly peek?: (key: string, clock: Clock.Clock) => Kept<A> | undefined
  readonly find: (key: string) => Effect.Effect<Kept<A> | undefined>
  /** Keeps a value; what is still to do for it, if it was not done at once. */
  readonly keep: (key: string, value: A, keepMillis: number, clock: Clock.Clock) => Effect.Effect<void> | undefined
  readonly remove: (key: string) => Effect.Effect<void>
  readonly clear: Effect.Effect<void>
  readonly size?: () => MemoryStore.Size
}

/** In memory, in the time of the monotonic clock. */
export const inMemory = <A>(sizeOf: (value: A) => number, limits: MemoryStore.Limits): CachePlace<A> => {
  const memory = MemoryStore.make<A>(limits)
  const peek = (key: string, clock: Clock.Clock) => memory.get(key, Monotonic.unsafeMillis(clock))
  return {
    peek,
    find: (key) => Effect.clockWith((clock) => Effect.succeed(peek(key, clock))),
    keep: (key, value, keepMillis, clock) => {
      memory.set(key, value, sizeOf(value), keepMillis, Monotonic.unsafeMillis(clock))
      return undefined
    },
    remove: (key) => Effect.sync(() => memory.remove(key)),
    clear: Effect.sync(() => memory.clear()),
    size: () => memory.size()
  }
}

/** In a store, which is waited for that long; what goes wrong there is told to `onError`, and ends nothing. */
export const elsewhere = <A>(
  store: CacheStore<A>,
  timeoutMillis: number,
  onError: (error: CacheStoreError) => Effect.Effect<void>
): CachePlace<A> => {
  const tooSlow = (operation: Operation) =>
    new CacheStoreError({ operation, message: `the store did not answer within ${timeoutMillis} ms` })

  const guarded = <B>(operation: Operation, ask: () => Effect.Effect<B, CacheStoreError>) =>
    Effect.matchCauseEffect(attemptTimeout(timeoutMillis, () => tooSlow(operation))(Effect.suspend(ask)), {
      onSuccess: (answer): Effect.Effect<B | undefined> => Effect.succeed(answer),
      onFailure: (cause) => Effect.as(Effect.exit(Effect.suspend(() => onError(errorOf(operation, cause)))), undefined)
    })

  return {
    find: (key) =>
      Effect.map(
        guarded("get", () => store.get(key)),
        withSaneAge
      ),
    keep: (key, value, keepMillis) => guarded("set", () => store.set(key, value, keepMillis)),
    remove: (key) => guarded("remove", () => store.remove(key)),
    clear: guarded("clear", () => store.clear)
  }
}

/** A value from the future counts as new; one of no age at all is none. */
const withSaneAge = <A>(kept: Kept<A> | null | undefined): Kept<A> | undefined =>
  kept === undefined || kept === null || !(kept.ageMillis >= -Infinity)
    ? undefined
    : { value: kept.value, ageMillis: Math.max(0, kept.ageMillis) }
