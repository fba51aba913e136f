/** Who answers a call: one provider after the other, or the next one too when the current is slow. */
import { Effect } from "effect"
import type { CandidateError, LlmFuseError } from "../model/LlmError.ts"
import type { FuseEvent } from "../observability/FuseEvent.ts"
import { failover } from "../pipeline/Failover.ts"
import { hedge } from "../pipeline/Hedge.ts"
import * as Call from "./Call.ts"
import * as CallEnd from "./CallEnd.ts"
import * as CallStream from "./CallStream.ts"
import type { Resolved } from "./FuseOptions.ts"
import type { HedgeRule } from "./HedgeRule.ts"
import type { Member } from "./Member.ts"
import type { Answer, Job } from "./Stages.ts"
import * as Story from "./Story.ts"

/** Tells an event of the call, if anybody listens. */
const tell = (call: Call.Call, event: (facts: ReturnType<typeof Call.factsOf>) => FuseEvent): Effect.Effect<void> => {
  if (call.hub.isHeard()) call.hub.tell(event(Call.factsOf(call)))
  return Effect.void
}

/** Finds the answer to a call. */
export type Search = <A extends Answer>(
  call: Call.Call,
  job: Job<A>,
  candidates: ReadonlyArray<Member>
) => Effect.Effect<A, LlmFuseError>

/** The pipeline: failover or hedge, and behind each member its breaker, retry, limits and timers. */
export const make = (options: Resolved): Search => {
  const searchOptions = (call: Call.Call, candidates: ReadonlyArray<Member>) => {
    const names = candidates.map(({ provider }) => provider.name)
    const failures = new Map<string, CallEnd.Failed>()
    return {
      onFailure: (error: CandidateError, position: number) => {
        failures.set(names[position] ?? "", { error, atMillis: call.clock.unsafeCurrentTimeMillis() })
        candidates[position]?.noteFailure(call, error)
      },
      mayFailOver: (error: CandidateError) =>
        options.failover.verdict(CallStream.reasonOf(error)).failover && !CallStream.isFinal(call.stream, error),
      onExhausted: () => CallEnd.exhausted(call, names, failures),
      onFailover: (error: CandidateError, from: number, to: number) =>
        tell(call, (facts) => ({ _tag: "FailedOver", ...facts, from: names[from] ?? "", to: names[to] ?? "", error }))
    }
  }

  const hedged = <A extends Answer>(
    call: Call.Call,
    job: Job<A>,
    candidates: ReadonlyArray<Member>,
    rule: HedgeRule
  ): Effect.Effect<A, LlmFuseError> => {
    /** The last to be asked. */
    let current: Member | undefined
    const nameAt = (position: number) => candidates[position]?.provider.name ?? ""
    const ask = (member: Member, position: number, claim: () => boolean) => {
      current = member
      return member.ask(call, job, countLeft(candidates.slice(position + 1), job), claim)
    }
    const raced = hedge(candidates, (member, position, race) => ask(member, position, race.claim), {
      ...searchOptions(call, candidates),
      delay: () => current && rule.delayMillis(current.record.latency),
      maxHedges: rule.maxHedges,
      mayHedge: () => current === undefined || current.mayRepeat(Call.nowOf(call)),
      isAvailable: (position) =>
        Effect.map(countLeft(candidates.slice(position, position + 1), job), (count) => count > 0),
      onHedge: (from, to) => tell(call, (facts) => ({ _tag: "Hedged", ...facts, from: nameAt(from), to: nameAt(to) })),
      onHedgeLost: (position) => candidates[position]?.noteLost(call)
    })
    // Where nobody has won, nobody has lost: what is under way is ended with the race.
    return Effect.tapErrorCause(raced, () => Effect.sync(() => Story.breakOff(call)))
  }

  return (call, job, candidates) => {
    const { hedge: rule } = call
    return rule !== undefined && candidates.length > 1 && (rule.toolResults || !job.hasToolResults())
      ? hedged(call, job, candidates, rule)
      : failover(
          candidates,
          (member, position) => member.ask(call, job, countLeft(candidates.slice(position + 1), job)),
          () => searchOptions(call, candidates)
        )
  }
}

/** How many of the candidates could do the job and have a circuit that is not open. */
const countLeft = (candidates: ReadonlyArray<Member>, job: Job<Answer>): Effect.Effect<number> =>
  Effect.suspend(() => {
    const able = candidates.filter(({ provider }) => job.obstacle(provider) === undefined)
    const states = Effect.forEach(able, (member) => member.circuitState)
    return Effect.map(states, (all) => all.filter((state) => state === "Closed" || state === "HalfOpen").length)
  })
