/** Runs the wall on a system. */
import { FaultServer } from "../../src/testing.ts"
import type { Fault } from "./fault.ts"
import { judge } from "./judge.ts"
import { observe } from "./observe.ts"
import type { Result } from "./report.ts"
import type { System } from "./system.ts"

/** All faults at once, each with a server and a client of its own. The results are in the order of the faults. */
export const runWall = (faults: ReadonlyArray<Fault>, system: System): Promise<ReadonlyArray<Result>> =>
  Promise.all(
    faults.map(async (fault) => {
      const observation = await observe(fault, system)
      const { id, title, conduct } = fault
      return {
        fault: { id, title, conduct },
        observation,
        judgement: judge(fault, observation, FaultServer.sixtyWords)
      }
    })
  )
