/** Keeps answers: fresh ones spare a run, stale ones help out when it fails, and a key is run once at a time. */
import { type ConfigError, type Duration, Effect, Either } from "effect"
import * as OptionCheck from "../model/OptionCheck.ts"
import { byteSize } from "./ByteSize.ts"
import * as CachePlace from "./CachePlace.ts"
import type { CacheStore, CacheStoreError, Kept } from "./CacheStore.ts"
import type { Size } from "./MemoryStore.ts"
import * as Monotonic from "./Monotonic.ts"
import * as SingleFlight from "./SingleFlight.ts"

export type { CacheStore, CacheStoreError, Kept } from "./CacheStore.ts"
export type { Size } from "./MemoryStore.ts"

/** What is kept, where, and for how long. */
export interface Options<A, E = never> {
  /** How long a value is fresh, and served without a run; above zero. */
  readonly ttl: Duration.DurationInput
  /** How long after that a stale value is served if the run fails. Default: 0, never. */
  readonly staleIfError?: Duration.DurationInput | undefined
  /** Whether a stale value may stand in for this failure. Default: for every one; never for a defect or interruption. */
  readonly mayServeStale?: ((error: E) => boolean) | undefined
  /** Whether a value may be kept. What was kept before it stays then. Default: every value is. */
  readonly isKept?: ((value: A) => boolean) | undefined
  /** The most entries in memory, a whole number from 1; beyond it the least recently used goes. Default: 1000. */
  readonly maxEntries?: number | undefined
  /** The most bytes in memory, keys included, a whole number from 1. A larger value is not kept. Default: 64 MiB. */
  readonly maxBytes?: number | undefined
  /** The bytes of a value; what is no number from 0 is not kept. Default: an estimate from what it holds. */
  readonly sizeOf?: ((value: A) => number) | undefined
  /** Where values are kept instead of in memory; the three limits above are then its own affair. Default: in memory. */
  readonly store?: CacheStore<A> | undefined
  /** How long such a store is waited for; above zero. A store that is slower counts as failed. Default: 250 ms. */
  readonly storeTimeout?: Duration.DurationInput | undefined
  /** Run when such a store has failed. A defect in it ends nothing. */
  readonly onStoreError?: ((error: CacheStoreError) => Effect.Effect<void>) | undefined
}

/** The names of the options. */
export const optionNames = [
  "ttl",
  "staleIfError",
  "mayServeStale",
  "isKept",
  "maxEntries",
  "maxBytes",
  "sizeOf",
  "store",
  "storeTimeout",
  "onStoreError"
] as const

/**
 * Where a value comes from: `"fresh"` was kept, `"stale"` was kept and stands in for a failure, `"shared"` comes from a
 * run that somebody else began, `"miss"` from one's own.
 */
export type Source = "fresh" | "stale" | "shared" | "miss"

/** A value, and how it was come by. */
export interface Served<A, E = never> {
  readonly value: A
  readonly source: Source
  /** Since the run that brought it; zero for one that was run now. */
  readonly ageMillis: number
  /** The failure that a stale value stands in for. */
  readonly error?: E | undefined
}

/** What a cache has done so far, and what it holds. */
export interface Snapshot {
  /** Callers who were served, by source. A miss that failed is in `runs` only. */
  readonly served: Readonly<Record<Source, number>>
  /** How often an effect was run. */
  readonly runs: number
  /** How many runs callers wait for now. */
  readonly flights: number
  readonly storeErrors: number
  /** What is in memory; absent with a store of one's own. */
  readonly size?: Size | undefined
}

/** A cache of values of type `A`, for effects that fail with `E`. */
export interface Cache<A, E> {
  /**
   * The value of a key: kept, shared, or run. Callers of a key must ask for the same thing: they get one another's
   * answers and failures. A deadline belongs around this effect and not within it, where it would be everybody's. Without
   * a key the effect is simply run. An effect that asks for its own key waits for itself. With a `party`, a run is shared
   * only by callers who name the same one; what is kept is everybody's.
   */
  readonly through: <R>(
    key: string | undefined,
    effect: Effect.Effect<A, E, R>,
    party?: string
  ) => Effect.Effect<Served<A, E>, E, R>
  /** Forgets the value of a key. A run that is under way still answers those who wait, but is not kept or joined. */
  readonly invalidate: (key: string) => Effect.Effect<void>
  /** The same for all keys. */
  readonly clear: Effect.Effect<void>
  readonly snapshot: Effect.Effect<Snapshot>
}

const checkedRules = <A, E>(options: Options<A, E>, path: string) =>
  Either.gen(function* () {
    yield* OptionCheck.knownKeys(path, options, optionNames)
    const ttlMillis = yield* OptionCheck.durationMillis(`${path}.ttl`, options.ttl, "above-zero")
    const staleMillis = yield* OptionCheck.durationMillis(`${path}.staleIfError`, options.staleIfError ?? 0, "zero")
    return {
      ttlMillis,
      keepMillis: ttlMillis + staleMillis,
      maxEntries: yield* OptionCheck.wholeNumber(`${path}.maxEntries`, options.maxEntries ?? 1000, 1),
      maxBytes: yield* OptionCheck.wholeNumber(`${path}.maxBytes`, options.maxBytes ?? 64 * 1024 * 1024, 1),
      storeTimeoutMillis: yield* OptionCheck.durationMillis(
        `${path}.storeTimeout`,
        options.storeTimeout ?? 250,
        "above-zero"
      )
    }
  })

type Rules = Either.Either.Right<ReturnType<typeof checkedRules>>

/**
 * A cache of its own. A value is fresh for `ttl` since its run has ended and then, if so wanted, served for
 * `staleIfError` more when the run fails. Concurrent callers of a key share one run, which ends with the last of them.
 * Failures and defects reach all who wait and are never kept. A store that fails or hangs is a miss and fails no call.
 */
export const make = <A, E = never>(
  options: Options<A, E>,
  path = "cache"
): Effect.Effect<Cache<A, E>, ConfigError.ConfigError> =>
  Effect.map(
    Effect.suspend(() => checkedRules(options, path)),
    (rules) => fromRules(options, rules)
  )

const placeOf = <A, E>(
  { store, sizeOf = byteSize }: Options<A, E>,
  rules: Rules,
  onError: (error: CacheStoreError) => Effect.Effect<void>
) =>
  store === undefined
    ? CachePlace.inMemory<A>(sizeOf, rules)
    : CachePlace.elsewhere(store, rules.storeTimeoutMillis, onError)

/** The name of the flight that a party takes for a key, and the way back: with the length of the first no two are alike. */
const flightOf = (party: string, key: string): string => `${party.length}:${party}${key}`

const keyOf = (flight: string): string => {
  const colon = flight.indexOf(":")
  return flight.slice(colon + 1 + Number(flight.slice(0, colon)))
}

const fromRules = <A, E>(options: Options<A, E>, rules: Rules): Cache<A, E> => {
  const { mayServeStale = () => true, isKept = () => true } = options
  const flights = SingleFlight.make<Served<A, E>, E>()
  const counts = { fresh: 0, stale: 0, shared: 0, miss: 0, runs: 0, storeErrors: 0 }
  const place = placeOf(options, rules, (error) => {
    counts.storeErrors += 1
    return options.onStoreError?.(error) ?? Effect.void
  })

  const isFresh = (kept: Kept<A>) => kept.ageMillis < rules.ttlMillis

  const serve = (kept: Kept<A>): Served<A, E> => ({ value: kept.value, source: "fresh", ageMillis: kept.ageMillis })

  const count = (served: Served<A, E>) => {
    counts[served.source] += 1
    return served
  }

  /** What a stale value is worth when the run that should have replaced it has failed. */
  const afterFailure = (error: E, kept: Kept<A> | undefined, waitedMillis: number, isCurrent: boolean) => {
    const ageMillis = (kept?.ageMillis ?? 0) + waitedMillis
    return kept !== undefined && isCurrent && ageMillis < rules.keepMillis && mayServeStale(error)
      ? Effect.succeed<Served<A, E>>({ value: kept.value, source: "stale", ageMillis, error })
      : Effect.fail(error)
  }

  const renew = <R>(
    key: string,
    effect: Effect.Effect<A, E, R>,
    kept: Kept<A> | undefined,
    flight: SingleFlight.Flight<Served<A, E>>
  ) =>
    Effect.clockWith((clock) => {
      counts.runs += 1
      const startMillis = Monotonic.unsafeMillis(clock)
      return Effect.matchEffect(effect, {
        onFailure: (error) =>
          afterFailure(error, kept, Math.max(0, Monotonic.unsafeMillis(clock) - startMillis), flight.isCurrent()),
        onSuccess: (value) => {
          const served: Served<A, E> = { value, source: "miss", ageMillis: 0 }
          if (!flight.isCurrent() || !isKept(value)) return Effect.succeed(served)
          const keeping = place.keep(key, value, rules.keepMillis, clock)
          if (keeping === undefined) return Effect.succeed(served)
          flight.land(served)
          return Effect.as(keeping, served)
        }
      })
    })

  return {
    through: (key, effect, party = "") => {
      if (key === undefined) return Effect.map(effect, (value) => ({ value, source: "miss", ageMillis: 0 }))
      const run = (flight: SingleFlight.Flight<Served<A, E>>) =>
        Effect.flatMap(place.find(key), (kept) =>
          kept !== undefined && isFresh(kept) ? Effect.succeed(serve(kept)) : renew(key, effect, kept, flight)
        )
      return Effect.clockWith((clock) => {
        const kept = place.peek?.(key, clock)
        return kept !== undefined && isFresh(kept)
          ? Effect.succeed(count(serve(kept)))
          : Effect.map(flights.join(flightOf(party, key), run), ({ answer, isFirst }) =>
              count(isFirst || answer.source !== "miss" ? answer : { ...answer, source: "shared" })
            )
      })
    },
    invalidate: (key) =>
      Effect.zipRight(
        flights.forget((flight) => keyOf(flight) === key),
        place.remove(key)
      ),
    clear: Effect.zipRight(
      flights.forget(() => true),
      place.clear
    ),
    snapshot: Effect.sync(() => {
      const { runs, storeErrors, ...served } = counts
      return { served, runs, flights: flights.size(), storeErrors, size: place.size?.() }
    })
  }
}
