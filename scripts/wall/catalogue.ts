/** All faults of the wall, in order. */
import type { Fault } from "./fault.ts"
import { ownFaults } from "./ownFaults.ts"
import { publishedFaults } from "./publishedFaults.ts"
import { timing } from "./timing.ts"

/** All faults, their times multiplied by `timeScale`. */
export const catalogue = (timeScale = 1): ReadonlyArray<Fault> => [
  ...publishedFaults(timing(timeScale)),
  ...ownFaults(timing(timeScale))
]
