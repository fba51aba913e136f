/** Who answers a call: one provider after the other, or the next one too when the current is slow. */
import { Effect } from "effect"
import type { CandidateError, LlmFuseError } from "../model/LlmError.ts"
import { failover } from "../pipeline/Failover.ts"
import { hedge } from "../pipeline/Hedge.ts"
import * as Call from "./Call.ts"
import * as CallStream from "./CallStream.ts"
import type { Emit } from "./Emit.ts"
import type { Resolved } from "./FuseOptions.ts"
import type { HedgeRule } from "./HedgeRule.ts"
import type { Member } from "./Member.ts"
import type { Answer, Job } from "./Stages.ts"

/** Finds the answer to a call. */
export type Search = <A extends Answer>(
  call: Call.Call,
  job: Job<A>,
  candidates: ReadonlyArray<Member>
) => Effect.Effect<A, LlmFuseError>

/** The pipeline: failover or hedge, and behind each member its breaker, retry, limits and timers. */
export const make = (options: Resolved, emit: Emit | undefined): Search => {
  const searchOptions = (call: Call.Call, candidates: ReadonlyArray<Member>) => {
    const names = candidates.map(({ provider }) => provider.name)
    const errors: Record<string, CandidateError> = {}
    return {
      onFailure: (error: CandidateError, position: number) => {
        errors[names[position] ?? ""] = error
        candidates[position]?.noteFailure(call, error)
      },
      mayFailOver: (error: CandidateError) =>
        options.failover.verdict(CallStream.reasonOf(error)).failover && !CallStream.isFinal(call.stream, error),
      onExhausted: () => Call.exhausted(call, names, errors),
      onFailover:
        emit === undefined
          ? undefined
          : (error: CandidateError, from: number, to: number) =>
              emit({ _tag: "FailedOver", from: names[from] ?? "", to: names[to] ?? "", error })
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
    return hedge(candidates, (member, position, race) => ask(member, position, race.claim), {
      ...searchOptions(call, candidates),
      delay: () => current && rule.delayMillis(current.latency),
      maxHedges: rule.maxHedges,
      mayHedge: () => current === undefined || current.mayRepeat(Call.nowOf(call)),
      isAvailable: (position) =>
        Effect.map(countLeft(candidates.slice(position, position + 1), job), (count) => count > 0),
      onHedge:
        emit === undefined ? undefined : (from, to) => emit({ _tag: "Hedged", from: nameAt(from), to: nameAt(to) }),
      onHedgeLost: (position) => {
        candidates[position]?.noteLost(call)
        return emit === undefined ? Effect.void : emit({ _tag: "HedgeLost", provider: nameAt(position) })
      }
    })
  }

  return (call, job, candidates) => {
    const { hedge: rule } = call
    return rule !== undefined && candidates.length > 1 && (rule.toolResults || !job.hasToolResults)
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
