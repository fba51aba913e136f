/** What the end of a call must know of its course, gathered from its events. */
import { DateTime, Duration } from "effect"
import type { AttemptStarted, CallStarted, CallSucceeded, FuseEvent, Operation } from "./FuseEvent.ts"

/**
 * Who answered, or how far the search came: the provider that was asked first, one after it, one that was asked because
 * the first was slow, an earlier call (`cache`; `stale` where it stood in for a failure), or the fallback.
 */
export type Path = "primary" | "failover" | "hedge" | "cache" | "stale" | "fallback"

/** An attempt that has not ended. A provider has one at a time in a call. */
export interface Open {
  readonly provider: string
  /** Undefined where its beginning was missed. */
  readonly startMillis: number | undefined
}

/** A call under way. */
export interface Course {
  readonly operation: Operation
  readonly startMillis: number
  /** Who was asked first. */
  first: string | undefined
  path: Path
  /** By the provider. */
  readonly open: Map<string, Open>
}

/** A call that begins. */
export const begin = ({ operation, at }: CallStarted): Course => ({
  operation,
  startMillis: DateTime.toEpochMillis(at),
  first: undefined,
  path: "primary",
  open: new Map()
})

/**
 * Notes that an attempt begins. Gives the one before on the same provider if its end was not told: then it was answered,
 * and the call asks for more, as it does for the vectors of many texts.
 */
export const opened = (course: Course, { provider, at }: AttemptStarted): Open | undefined => {
  course.first ??= provider
  const before = course.open.get(provider)
  course.open.set(provider, { provider, startMillis: DateTime.toEpochMillis(at) })
  return before
}

/** The attempts that a success tells of: with what answered, all that are open if the answers were put together. */
export const answered = (course: Course | undefined, { provider, attempt }: CallSucceeded): ReadonlyArray<Open> => {
  if (attempt === 0) return []
  const own = course?.open.get(provider) ?? { provider, startMillis: undefined }
  const open = course?.operation === "embed" ? [...course.open.values()] : []
  return [own, ...open.filter((it) => it !== own)]
}

/** Who answered a call. */
export const pathOf = (course: Course, { provider }: CallSucceeded): Path =>
  course.path === "primary" && course.first !== undefined && course.first !== provider ? "hedge" : course.path

/** The seconds from a beginning to an event. The wall clock may have stepped back. */
export const secondsSince = (startMillis: number, { at }: FuseEvent): number =>
  Math.max(0, DateTime.toEpochMillis(at) - startMillis) / 1000

/** A duration in seconds. */
export const seconds = (duration: Duration.Duration): number => Duration.toMillis(duration) / 1000
