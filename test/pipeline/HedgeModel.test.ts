/** Races at random against a model that walks through them millisecond by millisecond. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import fc from "fast-check"
import { hedge } from "../../src/pipeline/Hedge.ts"
import { runVirtually } from "./virtualTime.ts"

const runs = Number(process.env.LLMFUSE_MODEL_RUNS ?? 200)
const timeoutMillis = 30_000 + 10 * runs

interface Candidate {
  /** 0: without a pause. */
  readonly endsAfter: number
  readonly end: "success" | "failure" | "final" | "defect" | "never"
  readonly claimsAfter: number | undefined
  readonly isAvailable: boolean
}

interface Setting {
  readonly candidates: ReadonlyArray<Candidate>
  readonly delay: number | undefined
  readonly maxHedges: number
  /** What `mayHedge` says, one after the other; true after the last. */
  readonly leave: ReadonlyArray<boolean>
}

interface Outcome {
  /** "success 1", "final 0", "defect 2", "nobody 0,2" or undefined while it never ends. */
  readonly end: string | undefined
  readonly endsAt: number | undefined
  readonly story: ReadonlyArray<string>
}

const lastMoment = 20_000

/** What should happen; undefined where two things happen in the same millisecond, so that either may come first. */
const predict = ({ candidates, delay, maxHedges, leave }: Setting): Outcome | undefined => {
  const startedAt = new Map<number, number>()
  const flying = new Set<number>()
  const failed = new Set<number>()
  const story: Array<string> = []
  let leaveAsked = 0
  let isClaimed = false
  let hedgeAt: number | undefined
  let latest = 0
  let end: string | undefined
  let endsAt: number | undefined
  let now = 0

  const notAsked = () => [...candidates.keys()].filter((position) => !startedAt.has(position))
  const lose = () => {
    for (const position of flying) story.push(`${now} lost ${position}`)
    flying.clear()
  }
  const finish = (how: string) => {
    end = how
    endsAt = now
    if (how.startsWith("success")) lose()
    else flying.clear()
  }
  const start = (position: number): void => {
    const { endsAfter, end: how, claimsAfter } = candidates[position] as Candidate
    startedAt.set(position, now)
    story.push(`${now} ask ${position}`)
    hedgeAt = undefined
    if (claimsAfter === 0) claim(position)
    flying.add(position)
    if (endsAfter === 0 && how !== "never") settle(position)
    else {
      latest = position
      if (!isClaimed && delay !== undefined && flying.size <= maxHedges && notAsked().length > 0) hedgeAt = now + delay
    }
  }
  const claim = (position: number) => {
    isClaimed = true
    hedgeAt = undefined
    flying.delete(position)
    lose()
    flying.add(position)
  }
  const settle = (position: number): void => {
    flying.delete(position)
    const how = candidates[position]?.end
    if (how === "failure") failed.add(position)
    const [next] = notAsked()
    if (how !== "failure") finish(`${how} ${position}`)
    else if (next !== undefined) {
      story.push(`${now} failover ${position} to ${next}`)
      start(next)
    } else if (flying.size === 0) finish(`nobody ${[...failed].toSorted((a, b) => a - b)}`)
  }
  const tryHedge = () => {
    hedgeAt = undefined
    const next = notAsked().find((position) => candidates[position]?.isAvailable)
    if (next === undefined) return
    if (leave[leaveAsked++] === false) return
    story.push(`${now} hedge ${latest} to ${next}`)
    start(next)
  }

  start(0)
  for (now = 1; now <= lastMoment && end === undefined; now++) {
    const due: Array<() => void> = []
    for (const position of flying) {
      const { endsAfter, end: how, claimsAfter } = candidates[position] as Candidate
      const age = now - (startedAt.get(position) ?? 0)
      if (age === claimsAfter) due.push(() => claim(position))
      if (age === endsAfter && how !== "never") due.push(() => settle(position))
    }
    if (now === hedgeAt) due.push(tryHedge)
    if (due.length > 1) return undefined
    due[0]?.()
  }
  return { end, endsAt, story }
}

const nap = (millis: number) => (millis === 0 ? Effect.void : Effect.sleep(millis))

/** The real race, with its story and how many of its attempts are running. */
const play = ({ candidates, delay, maxHedges, leave }: Setting) => {
  const story: Array<string> = []
  const state = { running: 0, refusedClaims: 0, leaveAsked: 0 }
  const tell = (what: string) => Effect.map(Clock.currentTimeMillis, (now) => void story.push(`${now} ${what}`))
  const ends = (how: Candidate["end"], position: number) => {
    switch (how) {
      case "success":
        return Effect.succeed(`success ${position}`)
      case "never":
        return Effect.never
      case "defect":
        return Effect.die(`defect ${position}`)
      default:
        return Effect.fail(`${how} ${position}`)
    }
  }
  const race = hedge(
    candidates,
    ({ endsAfter, end, claimsAfter }, position, { claim }) =>
      Effect.acquireUseRelease(
        Effect.zipRight(
          tell(`ask ${position}`),
          Effect.sync(() => {
            state.running += 1
          })
        ),
        () =>
          claimsAfter === undefined
            ? Effect.zipRight(nap(endsAfter), ends(end, position))
            : nap(claimsAfter).pipe(
                Effect.zipRight(Effect.sync(() => (state.refusedClaims += claim() ? 0 : 1))),
                Effect.zipRight(nap(endsAfter - claimsAfter)),
                Effect.zipRight(ends(end, position))
              ),
        () =>
          Effect.sync(() => {
            state.running -= 1
          })
      ),
    {
      delay,
      maxHedges,
      mayHedge: () => leave[state.leaveAsked++] ?? true,
      isAvailable: (position) => Effect.succeed(candidates[position]?.isAvailable ?? false),
      mayFailOver: (error) => !error.startsWith("final"),
      onFailover: (_, from, to) => tell(`failover ${from} to ${to}`),
      onHedge: (from, to) => tell(`hedge ${from} to ${to}`),
      onHedgeLost: (position) => tell(`lost ${position}`),
      onExhausted: (errors) => `nobody ${errors.map((error) => error.split(" ")[1])}`
    }
  )
  return { race, story, state }
}

const candidate = fc
  .record({
    endsAfter: fc.oneof(
      { weight: 1, arbitrary: fc.constant(0) },
      { weight: 6, arbitrary: fc.integer({ min: 1, max: 999 }) }
    ),
    end: fc.oneof(
      { weight: 5, arbitrary: fc.constant("failure" as const) },
      { weight: 3, arbitrary: fc.constant("success" as const) },
      { weight: 2, arbitrary: fc.constant("never" as const) },
      { weight: 1, arbitrary: fc.constantFrom("final" as const, "defect" as const) }
    ),
    claim: fc.option(fc.double({ min: 0, max: 0.99, noNaN: true }), { freq: 4 }),
    isAvailable: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) })
  })
  .map(
    ({ claim, ...rest }): Candidate => ({
      ...rest,
      claimsAfter: claim === null ? undefined : Math.floor(claim * rest.endsAfter)
    })
  )

const setting = (most: number): fc.Arbitrary<Setting> =>
  fc.record({
    candidates: fc.array(candidate, { minLength: 1, maxLength: 6 }),
    delay: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 1, max: most }) },
      { weight: 1, arbitrary: fc.constant(undefined) }
    ),
    maxHedges: fc.integer({ min: 0, max: 3 }),
    leave: fc.array(fc.boolean(), { maxLength: 3 })
  })

describe("hedge, at random", () => {
  it(
    "has the winner, the time, the questions and the losers that a model predicts",
    () => {
      fc.assert(
        fc.property(setting(400), (setting) => {
          const predicted = predict(setting)
          fc.pre(predicted !== undefined)
          const { race, story, state } = play(setting)

          const { exit, endedAtMillis, timersLeft } = runVirtually(Effect.sandbox(race))

          const end =
            exit === undefined
              ? undefined
              : Exit.match(exit, {
                  onSuccess: (answer) => answer,
                  onFailure: (cause) =>
                    cause._tag === "Fail"
                      ? String(
                          cause.error._tag === "Fail"
                            ? cause.error.error
                            : cause.error._tag === "Die"
                              ? cause.error.defect
                              : "?"
                        )
                      : "?"
                })
          assert.deepStrictEqual({ end, endsAt: end === undefined ? undefined : endedAtMillis, story }, predicted)
          assert.strictEqual(state.refusedClaims, 0)
          if (end !== undefined) assert.deepStrictEqual([timersLeft, state.running], [0, 0])
        }),
        { numRuns: runs }
      )
    },
    timeoutMillis
  )

  it(
    "keeps its promises where many things happen in the same moment, and wherever it is interrupted",
    () => {
      const crowded = fc.record({
        setting: setting(3).map((it) => ({
          ...it,
          candidates: it.candidates.map((one) => ({
            ...one,
            endsAfter: one.endsAfter % 4,
            claimsAfter: one.claimsAfter === undefined ? undefined : one.claimsAfter % ((one.endsAfter % 4) + 1)
          }))
        })),
        interruptedAt: fc.integer({ min: 0, max: 12 })
      })
      fc.assert(
        fc.property(crowded, ({ setting, interruptedAt }) => {
          const { race, story, state } = play(setting)
          const interrupting = Effect.gen(function* () {
            const fiber = yield* Effect.fork(race)
            yield* nap(interruptedAt)
            const before = fiber.unsafePoll()
            const exit = yield* Fiber.interrupt(fiber)
            const runningThen = state.running
            const toldThen = story.length
            yield* Effect.sleep("1 minute")
            return { wasOver: before !== null, exit, runningThen, told: story.slice(toldThen) }
          })

          const { exit, timersLeft } = runVirtually(interrupting)

          assert.isTrue(exit !== undefined && Exit.isSuccess(exit))
          if (exit === undefined || Exit.isFailure(exit)) return
          assert.deepStrictEqual([exit.value.runningThen, state.running, timersLeft], [0, 0, 0])
          assert.deepStrictEqual(exit.value.told, [])
          const asked = story.flatMap((line) => line.match(/ask (\d+)/)?.[1] ?? [])
          const lost = story.flatMap((line) => line.match(/lost (\d+)/)?.[1] ?? [])
          assert.strictEqual(new Set(asked).size, asked.length)
          assert.strictEqual(new Set(lost).size, lost.length)
          assert.isTrue(lost.every((position) => asked.includes(position)))
        }),
        { numRuns: runs }
      )
    },
    timeoutMillis
  )
})
