/** A fault of the wall, as data. */
import type { FaultPlan } from "../../src/testing.ts"
import type { Point } from "./conduct.ts"
import type { Timing } from "./timing.ts"

/** What happens, what right conduct is, and how long it may take. */
export interface Fault {
  readonly id: string
  /** What the primary does. */
  readonly title: string
  /** What a good system does about it. */
  readonly conduct: string
  readonly primary: FaultPlan
  /** Default: healthy. */
  readonly fallback?: FaultPlan | undefined
  /** How many calls, and one how long after the other. Default: one. */
  readonly calls?: { readonly count: number; readonly everyMillis: number } | undefined
  /** Whether a call follows when both providers are healthy again. It must bring the whole answer. */
  readonly followUp?: boolean | undefined
  /** A call that has not ended by then hangs. */
  readonly budgetMillis: number
  /** What a good end is. */
  readonly wants: "answer" | "error"
  /** A broken one is a fail. */
  readonly required: ReadonlyArray<Point>
  /** A broken one keeps from a pass. */
  readonly advisory: ReadonlyArray<Point>
  /** By what its times are multiplied. */
  readonly timeScale: number
}

type Defaults = "budgetMillis" | "wants" | "required" | "advisory" | "timeScale"

/** A fault with the usual budget of 45 seconds, for which the answer is wanted. */
export const fault = (time: Timing, given: Omit<Fault, Defaults> & Partial<Pick<Fault, Defaults>>): Fault => ({
  budgetMillis: time.limit(45),
  wants: "answer",
  required: [],
  advisory: [],
  timeScale: time.scale,
  ...given
})
