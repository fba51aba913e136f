/** What a cache asks of a place that keeps its values elsewhere: a file, a database, another machine. */
import { Cause, Effect, type Either, Option, Schema } from "effect"

/** A store has failed. It fails no call: the cache reports it through `onStoreError` and does without. */
export class CacheStoreError extends Schema.TaggedError<CacheStoreError>("llmfuse/CacheStoreError")("CacheStoreError", {
  /** What it was asked to do. */
  operation: Schema.Literal("get", "set", "remove", "clear"),
  message: Schema.String,
  cause: Schema.optional(Schema.Defect)
}) {}

/** What a store was asked to do. */
export type Operation = CacheStoreError["operation"]

/** A value that was kept, and how long ago. */
export interface Kept<A> {
  readonly value: A
  /** By the store's own clock, since the value was set: steps of the clocks of its users change nothing. */
  readonly ageMillis: number
}

/**
 * A place that keeps values. Each operation must let itself be interrupted; it is given up after the cache's
 * `storeTimeout`.
 */
export interface CacheStore<A> {
  /** What is kept under a key; `undefined` if nothing is. */
  readonly get: (key: string) => Effect.Effect<Kept<A> | undefined, CacheStoreError>
  /** Keeps a value for at most so many milliseconds, in the place of an earlier one. */
  readonly set: (key: string, value: A, keepMillis: number) => Effect.Effect<void, CacheStoreError>
  /** Forgets what is kept under a key. */
  readonly remove: (key: string) => Effect.Effect<void, CacheStoreError>
  /** Forgets everything that this cache has kept. */
  readonly clear: Effect.Effect<void, CacheStoreError>
}

/** How values become text and come back; the left side says why one cannot. */
export interface Codec<A> {
  readonly encode: (value: A) => Either.Either<string, unknown>
  readonly decode: (text: string) => Either.Either<A, unknown>
}

/** A store of values, from one that keeps text. What cannot be encoded is not kept; what cannot be decoded is a miss. */
export const encoded = <A>(store: CacheStore<string>, codec: Codec<A>): CacheStore<A> => ({
  ...store,
  get: (key) =>
    Effect.flatMap(store.get(key), (kept) =>
      kept === undefined
        ? Effect.succeed(undefined)
        : Effect.mapBoth(
            Effect.suspend(() => codec.decode(kept.value)),
            {
              onFailure: (cause) =>
                new CacheStoreError({ operation: "get", message: "the text that was kept is none of ours", cause }),
              onSuccess: (value) => ({ value, ageMillis: kept.ageMillis })
            }
          )
    ),
  set: (key, value, keepMillis) =>
    Effect.matchEffect(
      Effect.suspend(() => codec.encode(value)),
      {
        onFailure: (cause) =>
          Effect.fail(new CacheStoreError({ operation: "set", message: "the value cannot be written as text", cause })),
        onSuccess: (text) => store.set(key, text, keepMillis)
      }
    )
})

/** What went wrong in a store, whatever it was: a failure, a defect, or that it interrupted itself. */
export const errorOf = (operation: Operation, cause: Cause.Cause<CacheStoreError>): CacheStoreError =>
  Option.getOrElse(
    Cause.failureOption(cause),
    () =>
      new CacheStoreError({ operation, message: `the store broke down in ${operation}`, cause: Cause.squash(cause) })
  )
