import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Either, Exit, Random, Schema, Stream } from "effect"
import * as fc from "fast-check"
import {
  type Attempt,
  AuthenticationError,
  type ChatEvent,
  type ChatResponse,
  ContentPolicyError,
  type FuseEvent,
  isLlmFuseError,
  LlmFuse,
  OverloadedError,
  Pricing,
  Provider,
  type ProviderError,
  RateLimitError,
  StreamInterruptedError
} from "llmfuse"
import { ShuffledTime } from "./shuffledTime.ts"

const numRuns = Number(process.env.LLMFUSE_MODEL_RUNS ?? 300)

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })
const millis = (max: number) => fc.oneof(fc.constant(0), fc.integer({ min: 1, max }))

/** What one request to a provider comes to. */
const behaviours = fc.record({
  waitMillis: millis(3000),
  end: fc.oneof(
    { weight: 4, arbitrary: fc.constant("answers" as const) },
    { weight: 5, arbitrary: fc.constantFrom("overloaded", "limited", "unauthorized", "empty", "cut") },
    { weight: 1, arbitrary: fc.constantFrom("silent", "refused", "misfit") }
  ),
  hintMillis: millis(4000),
  /** Of a stream: how long each of its pieces takes. */
  pieces: fc.array(millis(1500), { maxLength: 4 }),
  cleanUpMillis: fc.constantFrom(0, 0, 0, 7)
})

type Behaviour = typeof behaviours extends fc.Arbitrary<infer A> ? A : never

const scenarios = fc.record({
  providers: fc.array(
    fc.record({ script: fc.array(behaviours, { minLength: 1, maxLength: 4 }), streams: fc.boolean() }),
    { minLength: 1, maxLength: 4 }
  ),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  hedge: optional(fc.record({ delay: fc.integer({ min: 1, max: 2000 }), maxHedges: fc.integer({ min: 1, max: 3 }) })),
  cache: optional(fc.record({ ttl: fc.integer({ min: 1, max: 4000 }), staleIfError: millis(20_000) })),
  fallback: optional(fc.constantFrom("text", "slow", "fails")),
  limits: optional(
    fc.record(
      {
        concurrency: fc.integer({ min: 1, max: 2 }),
        requestsPerMinute: fc.integer({ min: 10, max: 6000 }),
        tokensPerMinute: fc.integer({ min: 30, max: 1000 }),
        burst: fc.integer({ min: 1, max: 3 }),
        maxWait: millis(3000),
        adaptive: fc.boolean()
      },
      { requiredKeys: [] }
    )
  ),
  deadline: optional(fc.integer({ min: 1, max: 10_000 })),
  recovery: fc.constantFrom("fail" as const, "restart" as const),
  breaker: fc.record({
    failureThreshold: fc.constantFrom(1, 2, 1000),
    resetTimeout: fc.integer({ min: 1, max: 4000 })
  }),
  timeouts: fc.constantFrom({}, { attempt: 2500, firstToken: 2000, contentGap: 1000 }),
  calls: fc.array(
    fc.record({
      kind: fc.constantFrom("complete" as const, "stream" as const, "object" as const),
      prompt: fc.constantFrom("one", "two"),
      atMillis: millis(6000),
      leavesAfterMillis: optional(millis(5000)),
      /** How long a reader of a stream takes for each event. */
      readMillis: fc.constantFrom(0, 0, 300)
    }),
    { minLength: 1, maxLength: 4 }
  ),
  seed: fc.integer()
})

type Scenario = typeof scenarios extends fc.Arbitrary<infer A> ? A : never

/** A provider that plays a script, begins it again when it is over, and counts who is being served. */
const playing = (name: string, { script, streams }: Scenario["providers"][number]) => {
  const seen = { requests: 0, underWay: 0, most: 0 }
  const next = () => script[seen.requests++ % script.length] as Behaviour

  const counted = (behaviour: Behaviour) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        seen.underWay += 1
        seen.most = Math.max(seen.most, seen.underWay)
      }),
      () =>
        Effect.zipRight(
          behaviour.cleanUpMillis === 0 ? Effect.void : Effect.sleep(behaviour.cleanUpMillis),
          Effect.sync(() => {
            seen.underWay -= 1
          })
        )
    )

  const errorOf = ({ end, hintMillis }: Behaviour): ProviderError | undefined => {
    switch (end) {
      case "overloaded":
        return new OverloadedError({ provider: name })
      case "limited":
        return new RateLimitError({ provider: name, retryAfter: Duration.millis(hintMillis) })
      case "unauthorized":
        return new AuthenticationError({ provider: name })
      case "refused":
        return new ContentPolicyError({ provider: name, stage: "prompt" })
      case "cut":
        return new StreamInterruptedError({ provider: name, partial: "" })
      default:
        return undefined
    }
  }

  const textOf = (behaviour: Behaviour, isObject: boolean, request: number) =>
    behaviour.end === "empty"
      ? ""
      : isObject
        ? behaviour.end === "misfit"
          ? "no object"
          : `{"n":${request}}`
        : `${name}${request}`

  const complete: Provider.Provider["complete"] = (asked) =>
    Effect.suspend(() => {
      const behaviour = next()
      const request = seen.requests
      const answered = Effect.suspend(() => {
        const error = errorOf(behaviour)
        const text = textOf(behaviour, asked.responseFormat !== undefined, request)
        const usage = { inputTokens: 3, outputTokens: 4 }
        return error === undefined
          ? behaviour.end === "silent"
            ? Effect.never
            : Effect.succeed({ text, finishReason: "stop" as const, usage })
          : Effect.fail(error)
      })
      return Effect.scoped(
        Effect.zipRight(counted(behaviour), Effect.zipRight(Effect.sleep(behaviour.waitMillis), answered))
      )
    })

  const stream: NonNullable<Provider.Provider["stream"]> = (asked) =>
    Effect.suspend(() => {
      const behaviour = next()
      const request = seen.requests
      const error = errorOf(behaviour)
      const isObject = asked.responseFormat !== undefined
      const pieces = isObject || behaviour.end === "empty" ? [] : behaviour.pieces
      const parts = Stream.mapEffect(Stream.rechunk(Stream.fromIterable(pieces.entries()), 1), ([index, wait]) =>
        Effect.as(Effect.sleep(wait), `${name}${request}.${index} `)
      )
      const last = textOf(behaviour, isObject, request)
      const end: Provider.Parts =
        error !== undefined
          ? Stream.fail(error)
          : behaviour.end === "silent"
            ? Stream.never
            : Stream.make(last, { _tag: "End" as const, finishReason: "stop" as const })
      const opened = Effect.zipRight(counted(behaviour), Effect.sleep(behaviour.waitMillis))
      // What fails without a piece fails before it responds.
      return error !== undefined && pieces.length === 0
        ? Effect.zipRight(opened, Effect.fail(error))
        : Effect.as(opened, Stream.concat(parts, end))
    })

  return { seen, provider: Provider.make({ name, model: "m", complete, ...(streams ? { stream } : {}) }) }
}

const optionsOf = (scenario: Scenario) => {
  const { maxAttempts, hedge, cache, fallback, limits, deadline, recovery, breaker, timeouts } = scenario
  return {
    retry: { maxAttempts, baseDelay: "200 millis", maxDelay: "3 seconds" },
    breaker,
    timeouts,
    recovery,
    hedge,
    cache,
    deadline,
    limits,
    fallback:
      fallback === "text"
        ? '{"n":0}'
        : fallback === "slow"
          ? () => Effect.delay(Effect.succeed('{"n":0}'), 50)
          : fallback === "fails"
            ? () => Effect.fail("no fallback")
            : undefined
  } as const
}

/** Of all but the last provider; in eighths of a dollar a token, so that sums are exact. */
const pricing = Either.getOrThrow(
  Pricing.check(
    {
      prices: Object.fromEntries(["p0", "p1", "p2"].map((name) => [`${name}/*`, { input: 125_000, output: 500_000 }]))
    },
    "pricing"
  )
)

/** The word by which the events of a call are found. */
const tagOf = (index: number) => `call ${index}`

/** What came of a call. */
interface Outcome {
  readonly call: Scenario["calls"][number]
  readonly events: ReadonlyArray<ChatEvent>
  exit: Exit.Exit<unknown, unknown> | undefined
  startedAtMillis: number
  endedAtMillis: number
  hasLeft: boolean
}

const play = async (scenario: Scenario) => {
  const time = new ShuffledTime()
  const told: Array<FuseEvent> = []
  const players = scenario.providers.map((it, index) => playing(`p${index}`, it))
  const layer = LlmFuse.layer({
    providers: players.map(({ provider }) => provider),
    pricing,
    ...optionsOf(scenario),
    onEvent: (event) => void told.push(event)
  })
  const built = time.fork(Effect.scoped(Effect.provide(LlmFuse, layer)))
  await time.settle()
  const fuse = Exit.getOrElse(built.unsafePoll() ?? Exit.die("not built"), (cause) => {
    throw Cause.squash(cause)
  })
  const shuffled = new ShuffledTime(scenario.seed)
  shuffled.nowMillis = time.nowMillis

  const outcomes = scenario.calls.map((call, index): Outcome => {
    const tag = tagOf(index)
    const events: Array<ChatEvent> = []
    const outcome: Outcome = { call, events, exit: undefined, startedAtMillis: 0, endedAtMillis: 0, hasLeft: false }
    const asked =
      call.kind === "complete"
        ? fuse.complete(call.prompt, { tag })
        : call.kind === "object"
          ? fuse.object(Schema.Struct({ n: Schema.Number }), call.prompt, { tag })
          : Stream.runForEach(fuse.stream(call.prompt, { tag }), (event) =>
              Effect.zipRight(
                Effect.sync(() => events.push(event)),
                call.readMillis === 0 ? Effect.void : Effect.sleep(call.readMillis)
              )
            )
    const timed = Effect.suspend(() => {
      outcome.startedAtMillis = shuffled.nowMillis
      return asked
    })
    const fiber = shuffled.fork(Effect.delay(Effect.withRandom(timed, Random.make(scenario.seed)), call.atMillis))
    fiber.addObserver((exit) => {
      outcome.exit = exit
      outcome.endedAtMillis = shuffled.nowMillis
    })
    if (call.leavesAfterMillis !== undefined) {
      const leaving = Effect.sync(() => {
        outcome.hasLeft = outcome.exit === undefined
        fiber.unsafeInterruptAsFork(fiber.id())
      })
      shuffled.fork(Effect.delay(leaving, call.atMillis + call.leavesAfterMillis))
    }
    return outcome
  })
  const areOver = () => outcomes.every(({ exit }) => exit !== undefined)
  await shuffled.advance(600_000, areOver)
  const lastMillis = shuffled.nowMillis
  // Losers clean up on their own, and the shared timers look up once a second.
  shuffled.shuffles = false
  await shuffled.advance(5000)
  return { outcomes, told, players, time: shuffled, fuse, lastMillis }
}

const attemptsOf = (value: unknown): ReadonlyArray<Attempt> =>
  (value as { attempts?: ReadonlyArray<Attempt> }).attempts ?? []

const checkOutcome = (outcome: Outcome, scenario: Scenario) => {
  const { exit, events, call, hasLeft, startedAtMillis, endedAtMillis } = outcome
  assert(exit !== undefined, "a call never ends")
  if (hasLeft && Exit.isInterrupted(exit)) return []
  const isStreamed = call.kind === "stream"
  const last = events.at(-1)

  if (Exit.isFailure(exit)) {
    const error = Cause.squash(exit.cause)
    assert(isLlmFuseError(error), `a defect: ${Cause.pretty(exit.cause)}`)
    assert(Cause.isFailType(exit.cause), "more than one failure")
    assert(
      events.every(({ _tag }) => _tag !== "Finished"),
      "an error after the end"
    )
  } else if (isStreamed) {
    assert(last?._tag === "Finished", "a stream that ends without Finished")
    assert(events.filter(({ _tag }) => _tag === "Finished").length === 1, "Finished twice")
  }

  const turns = events.filter(({ _tag }) => _tag === "Started" || _tag === "Restarted").map(({ _tag }) => _tag)
  assert(
    turns.every((tag, index) => tag === (index % 2 === 0 ? "Started" : "Restarted")) && turns.at(-1) !== "Restarted",
    `Started and Restarted do not take turns: ${turns}`
  )
  if (last?._tag === "Finished") {
    const kept = events.slice(events.findLastIndex(({ _tag }) => _tag === "Started"))
    const text = kept.map((event) => (event._tag === "TextDelta" ? event.text : "")).join("")
    assert.strictEqual(text, last.response.text)
    const started = kept[0]
    assert(started?._tag === "Started")
    assert.strictEqual(started.provider, last.response.provider)
  }

  // A reader who takes his time, and a fallback, are not bound by the deadline.
  if (scenario.deadline !== undefined && call.readMillis === 0) {
    const allowed = scenario.deadline + (scenario.fallback === "slow" ? 50 : 0)
    assert.isAtMost(endedAtMillis - startedAtMillis, allowed, "later than the deadline")
  }

  const answer = Exit.isFailure(exit)
    ? Cause.squash(exit.cause)
    : isStreamed && last?._tag === "Finished"
      ? last.response
      : exit.value
  return [{ answer, isAnswer: Exit.isSuccess(exit) }]
}

const checkStory = (attempts: ReadonlyArray<Attempt>, scenario: Scenario, isOpenEnded: boolean) => {
  const story = JSON.stringify(attempts.map(({ provider, number, outcome }) => `${provider}#${number} ${outcome}`))
  const sent = attempts.filter(({ outcome }) => outcome !== "rejected")
  const names = sent.map(({ provider, number }) => `${provider}#${number}`)
  assert.strictEqual(new Set(names).size, names.length, `an attempt ended twice: ${story}`)
  assert(
    sent.every(({ number }) => number >= 1 && number <= scenario.maxAttempts),
    `too many attempts: ${story}`
  )
  for (const { provider, number } of sent) {
    const before = Array.from({ length: number - 1 }, (_, index) => `${provider}#${index + 1}`)
    assert(isOpenEnded || before.every((name) => names.includes(name)), `an attempt is missing: ${story}`)
  }
  const successes = attempts.filter(({ outcome }) => outcome === "success").length
  assert.isAtMost(successes, 1, `two successes: ${story}`)
  if (successes === 1)
    assert.strictEqual(attempts.at(-1)?.outcome, "success", `the answer does not stand last: ${story}`)

  // At no moment are more asked at once than hedging allows.
  const most = 1 + (scenario.hedge?.maxHedges ?? 0)
  const spans = sent.map(({ startedAt, duration }) => {
    const from = startedAt.epochMillis
    return { from, to: from + Duration.toMillis(duration) }
  })
  for (const { from } of spans) {
    const atOnce = spans.filter((span) => span.from <= from && from < span.to).length
    assert.isAtMost(atOnce, most, `too many at once: ${story}`)
  }
}

const checkRun = async (scenario: Scenario) => {
  const played = await play(scenario)
  const { outcomes, told, players, time } = played
  const answers = outcomes.flatMap((outcome) => checkOutcome(outcome, scenario))

  const stories = new Set(answers.map(({ answer }) => attemptsOf(answer)))
  for (const story of stories) checkStory(story, scenario, false)

  for (const { answer, isAnswer } of answers) {
    if (!isAnswer) continue
    const { cached, fallback, stale, text, provider, attempts } = answer as ChatResponse
    if (cached) {
      assert(fallback !== true && provider !== "fallback", "a fallback was kept")
      // A whole text ends with the last piece, which has no number after its name.
      assert(/(^|\s)p\d+$|^\{"n":[1-9]\d*\}$/.test(text), `part of an answer was kept: ${text}`)
      assert(stale === true || attempts.length === 0)
    } else if (fallback !== true) {
      assert.strictEqual(attempts.at(-1)?.outcome, "success")
      assert.strictEqual(attempts.at(-1)?.provider, provider)
    }
  }

  for (const { seen } of players) {
    assert.strictEqual(seen.underWay, 0, "an attempt is still under way")
    if (scenario.limits?.concurrency !== undefined) assert.isAtMost(seen.most, scenario.limits.concurrency)
  }
  assert.strictEqual(time.timers, 0, "a timer is left")

  const tags = (tag: FuseEvent["_tag"]) => told.filter(({ _tag }) => _tag === tag).length
  assert.isAtMost(tags("HedgeLost"), tags("Hedged") + tags("FailedOver") + outcomes.length)
  const sent = players.reduce((total, { seen }) => total + seen.requests, 0)
  assert.isAtMost(sent, tags("AttemptStarted"))

  const accounts = outcomes.map((_, index) => accountOf(told, tagOf(index)))
  for (const [index, account] of accounts.entries()) checkAccount(account, outcomes[index] as Outcome)
  const trails = accounts.map(({ trail }) => trail)
  for (const [index, outcome] of outcomes.entries()) checkRetold(outcome, index, trails)

  const { fuse } = played
  const health = time.fork(fuse.health).unsafePoll()
  assert(health !== null && Exit.isSuccess(health), "health is not there at once")
  const spent = accounts.reduce((total, { cost }) => total + (cost ?? 0), 0)
  assert.strictEqual(
    health.value.reduce((total, { cost }) => total + cost, 0),
    spent,
    "the ledger is not what the attempts cost"
  )
  assert(health.value.every(({ inFlight }) => inFlight === 0))
  return outcomes
}

/** An attempt in the words of the story, without its times on the wall. */
const inShort = ({ provider, number, outcome, error, duration, waited, usage, cost, estimated, ...rest }: Attempt) => ({
  attempt: `${provider}#${number} ${outcome}`,
  error: error?._tag,
  durationMillis: Duration.toMillis(duration),
  waitedMillis: waited === undefined ? 0 : Duration.toMillis(waited),
  // What an attempt that did not succeed had waited for its first token is in the story alone.
  firstTokenMillis:
    outcome === "success" && rest.timeToFirstToken !== undefined ? Duration.toMillis(rest.timeToFirstToken) : undefined,
  usage,
  cost,
  isEstimated: estimated ?? false
})

type Retold = ReturnType<typeof inShort>

/** What the events of a call say of it, from nothing else. */
const accountOf = (told: ReadonlyArray<FuseEvent>, tag: string) => {
  const ids = told.flatMap((event) => (event._tag === "CallStarted" && event.tag === tag ? [event.callId] : []))
  // A call that was left before it asked for others too goes on with another id.
  const id = ids.at(-1)
  // The circuits tell in fibers of their own, which a time that shuffles may hold up.
  const events = told.filter(({ _tag, callId }) => id !== undefined && callId === id && !_tag.startsWith("Circuit"))
  const waited = new Map<string, number>()
  const trail: Array<Retold> = []
  let answered: Retold | undefined
  for (const event of events) {
    switch (event._tag) {
      case "AttemptStarted": {
        const name = `${event.provider}#${event.attempt}`
        assert(!waited.has(name), `${name} begins twice`)
        waited.set(name, Duration.toMillis(event.waited))
        break
      }
      case "AttemptRejected":
      case "Throttled":
        trail.push({
          attempt: `${event.provider}#${event.attempt} rejected`,
          error: event.error._tag,
          durationMillis: 0,
          waitedMillis: 0,
          firstTokenMillis: undefined,
          usage: undefined,
          cost: undefined,
          isEstimated: false
        })
        break
      case "AttemptSucceeded":
      case "AttemptFailed":
      case "AttemptInterrupted":
      case "HedgeLost": {
        if (event.attempt === undefined || event.duration === undefined) break
        const name = `${event.provider}#${event.attempt}`
        const waitedMillis = waited.get(name)
        assert(waitedMillis !== undefined, `${name} ends without a beginning, or twice`)
        waited.delete(name)
        const { _tag, usage, cost, isEstimated } = event
        const firstToken = _tag === "AttemptSucceeded" ? event.timeToFirstToken : undefined
        const retold: Retold = {
          attempt: `${name} ${outcomes[_tag]}`,
          error: _tag === "AttemptFailed" ? event.error._tag : undefined,
          durationMillis: Duration.toMillis(event.duration),
          waitedMillis,
          firstTokenMillis: firstToken && Duration.toMillis(firstToken),
          usage,
          cost,
          isEstimated: isEstimated ?? false
        }
        if (_tag === "AttemptSucceeded") answered = retold
        else trail.push(retold)
        break
      }
    }
  }
  if (answered !== undefined) trail.push(answered)
  const costs = trail.flatMap((retold) => (retold.cost === undefined ? [] : [retold.cost]))
  const cost = costs.length === 0 ? undefined : costs.reduce((sum, each) => sum + each, 0)
  return { events, trail, cost, stillOpen: [...waited.keys()] }
}

const outcomes = {
  AttemptSucceeded: "success",
  AttemptFailed: "failure",
  AttemptInterrupted: "interrupted",
  HedgeLost: "hedge-lost"
} as const

/** The events of a call in themselves: one beginning, one end, and every attempt ended. */
const checkAccount = (account: ReturnType<typeof accountOf>, outcome: Outcome) => {
  const { events, cost, stillOpen } = account
  if (events.length === 0) {
    assert(outcome.hasLeft, "a call without events")
    return
  }
  assert.deepStrictEqual(stillOpen, [], "attempts without an end")
  const ends = events.filter(({ _tag }) => _tag.startsWith("Call") && _tag !== "CallStarted")
  assert.strictEqual(ends.length, 1)
  assert.strictEqual(events[0]?._tag, "CallStarted")
  const [end] = ends
  assert.strictEqual(events.at(-1), end, "told after the end")
  const exit = outcome.exit
  const expected =
    exit === undefined || (Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause))
      ? "CallInterrupted"
      : Exit.isSuccess(exit)
        ? "CallSucceeded"
        : "CallFailed"
  // Who leaves may do so when the call is already over.
  if (expected !== "CallInterrupted") assert.strictEqual(end?._tag, expected)
  if (end?._tag === "CallFailed" || end?._tag === "CallInterrupted") assert.strictEqual(end.cost, cost)
  if (end?._tag === "CallSucceeded" && exit !== undefined && Exit.isSuccess(exit)) {
    const last = outcome.events.at(-1)
    const answer = (last?._tag === "Finished" ? last.response : exit.value) as ChatResponse
    assert.strictEqual(answer.cost, end.cost, "a response and its event tell different costs")
    // What was kept cost nothing, where its cost had been known; beside it, only the call's own attempts count.
    const expectedCost = cost ?? (answer.cached && answer.cost !== undefined ? 0 : undefined)
    assert.strictEqual(answer.cost, expectedCost, "a response does not cost what the attempts of its call cost")
  }
}

/** The story of a call is what its events retell, or that of the call whose answer it waited for. */
const checkRetold = (outcome: Outcome, index: number, trails: ReadonlyArray<ReadonlyArray<Retold>>) => {
  const { exit, events } = outcome
  if (exit === undefined || (Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause))) return
  const last = events.at(-1)
  const answer = Exit.isFailure(exit)
    ? Cause.squash(exit.cause)
    : last?._tag === "Finished"
      ? last.response
      : exit.value
  const story = attemptsOf(answer).map(inShort)
  const own = trails[index] ?? []
  const isShared = own.length === 0 && story.length > 0
  const others = trails.filter((trail) => JSON.stringify(trail) === JSON.stringify(story))
  if (isShared) assert.isAbove(others.length, 0, "a story that no events retell")
  else assert.deepStrictEqual(story, own)
}

describe("calls through all stages, for random faults and options", () => {
  it("end with one answer or one typed error, in time, and leave nothing behind", async () => {
    const counts = { answered: 0, failed: 0, left: 0 }
    await fc.assert(
      fc.asyncProperty(scenarios, async (scenario) => {
        for (const { exit } of await checkRun(scenario)) {
          if (exit === undefined) continue
          counts[Exit.isSuccess(exit) ? "answered" : Exit.isInterrupted(exit) ? "left" : "failed"] += 1
        }
      }),
      { numRuns, seed: Number(process.env.LLMFUSE_MODEL_SEED ?? 20261130) }
    )
    // The property would hold of nothing if the scripts did not reach all ends.
    const least = numRuns / 10
    assert(counts.answered > least && counts.failed > least && counts.left > least, JSON.stringify(counts))
  }, 900_000)
})
