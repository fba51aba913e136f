/** What the end of a call must know of its course, gathered from its events. */
import { DateTime, Duration } from "effect"
import type { CallStarted, CallSucceeded, FuseEvent, Operation } from "./FuseEvent.ts"

/**
 * Who answered, or how far the search came: the provider that was asked first, one after it, one that was asked because
 * the first was slow, an earlier call (`cache`; `stale` where it stood in for a failure), or the fallback.
 */
export type Path = "primary" | "failover" | "hedge" | "cache" | "stale" | "fallback"

/** A call under way. */
export interface Course {
  readonly operation: Operation
  readonly startMillis: number
  /** Who was asked first. */
  first: string | undefined
  path: Path
}

/** A call that begins. */
export const begin = ({ operation, at }: CallStarted): Course => ({
  operation,
  startMillis: DateTime.toEpochMillis(at),
  first: undefined,
  path: "primary"
})

/** Who answered a call. */
export const pathOf = (course: Course, { provider }: CallSucceeded): Path =>
  course.path === "primary" && course.first !== undefined && course.first !== provider ? "hedge" : course.path

/** The seconds from a beginning to an event. The wall clock may have stepped back. */
export const secondsSince = (startMillis: number, { at }: FuseEvent): number =>
  Math.max(0, DateTime.toEpochMillis(at) - startMillis) / 1000

/** A duration in seconds. */
export const seconds = (duration: Duration.Duration): number => Duration.toMillis(duration) / 1000
