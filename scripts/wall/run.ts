/** Runs the wall on a system. */
import { FaultServer } from "../../src/testing.ts"
import { type Fault, fault } from "./fault.ts"
import { judge } from "./judge.ts"
import { observe } from "./observe.ts"
import type { Result } from "./report.ts"
import type { System } from "./system.ts"
import { realTime } from "./timing.ts"

const healthy = fault(realTime, { id: "none", title: "nothing", conduct: "answered", primary: {} })

/**
 * All faults at once, each with a server and a client of its own. The results are in the order of the faults. A healthy
 * call comes first: the first of a process is slow, and its time is nobody's conduct.
 */
export const runWall = async (faults: ReadonlyArray<Fault>, system: System): Promise<ReadonlyArray<Result>> => {
  await observe(healthy, system)
  return Promise.all(
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
}
