/** Who is in a race, who may join it, and who has won. */
import { Cause, Effect, Either, Exit, Fiber, FiberId, Option, Runtime } from "effect"
import type { LazyArg } from "effect/Function"
import { maxTimerMillis } from "../model/OptionCheck.ts"
import type * as Failover from "./Failover.ts"

/** What an attempt can do about the race that it is in. */
export interface Race {
  /**
   * Wins the race for an attempt that has not ended, such as a stream at its first content: all others are interrupted,
   * and nobody is asked beside it any more. `false`: another has won, and the attempt must stop. To be called in one
   * step with what it decides about.
   */
  readonly claim: () => boolean
}

/** What a hedge asks, and what it calls. What decides (`mayFailOver`, `delay`, ...) ends the race if it dies. */
export interface Options<E, E2> extends Failover.Options<E, E2> {
  /**
   * How long after the start of a candidate, in milliseconds, the next one is started too. A function is asked at each
   * start. `undefined`, or what no timer can wait for: not at all.
   */
  readonly delay: number | undefined | (() => number | undefined)
  /** How many may be asked at once beside the first; a whole number from 0. Default: 1. */
  readonly maxHedges?: number | undefined
  /** Whether a hedge is allowed, asked when its delay is over. If not, the candidates in flight go on. Default: it is. */
  readonly mayHedge?: (() => boolean | Effect.Effect<boolean>) | undefined
  /** Whether a candidate is worth a hedge. If not, the hedge goes past it; failover does not. Default: it is. */
  readonly isAvailable?: ((position: number) => boolean | Effect.Effect<boolean>) | undefined
  /** Run before a hedge asks its candidate, with the positions of both. A defect in it ends nothing. */
  readonly onHedge?: ((from: number, to: number) => Effect.Effect<void>) | undefined
  /** Run once for each candidate that is given up because another has won, before it is interrupted. A defect in it ends nothing. */
  readonly onHedgeLost?: ((position: number) => void | Effect.Effect<void>) | undefined
}

/** A race. It changes in synchronous steps, in the fiber of whoever has ended, so that no two can win. */
export const make = <Candidate, A, E, R, E2>(
  runtime: Runtime.Runtime<R>,
  candidates: ReadonlyArray<Candidate>,
  ask: (candidate: Candidate, position: number, race: Race) => Effect.Effect<A, E, R>,
  options: Options<E, E2>
) => {
  const { delay, maxHedges = 1, mayHedge = () => true, isAvailable = () => true, onHedge, onHedgeLost } = options
  const { mayFailOver = () => true, onFailure = () => undefined, onFailover, onExhausted } = options
  /** The positions that have not been asked, in order. */
  const waiting = [...candidates.keys()]
  /** The attempts by position; one that is just being started has no fiber yet. */
  const inFlight = new Map<number, Fiber.RuntimeFiber<Exit.Exit<A, E>> | undefined>()
  const errors: Array<E> = []
  const steps: Array<() => void> = []
  let timer: Fiber.RuntimeFiber<void> | undefined
  let isClaimed = false
  let decided: Exit.Exit<A, E | E2> | undefined
  let resume: ((exit: Exit.Exit<A, E | E2>) => void) | undefined

  const fork = <A>(effect: Effect.Effect<A, never, R>) => Runtime.runFork(runtime, effect)

  /** Takes a step after those that are being taken: a candidate that ends while it is started does not nest. */
  const take = (step: () => void): void => {
    if (steps.push(step) > 1) return
    for (let next: typeof step | undefined = step; next !== undefined; next = steps[0]) {
      const taken = Either.try({ try: next, catch: (defect) => defect })
      if (Either.isLeft(taken)) decide(Exit.die(taken.left))
      steps.shift()
    }
  }

  const stopTimer = (): void => {
    timer?.unsafeInterruptAsFork(FiberId.none)
    timer = undefined
  }

  const giveUpAllBut = (winner: number | undefined, isWon: boolean): void => {
    const lost = [...inFlight].filter(([position]) => position !== winner)
    for (const [position] of lost) inFlight.delete(position)
    for (const [position, fiber] of lost) {
      const told = Either.try(() => (isWon ? onHedgeLost?.(position) : undefined))
      if (Either.isRight(told) && Effect.isEffect(told.right)) fork(quietly(() => told.right as Effect.Effect<void>))
      fiber?.unsafeInterruptAsFork(FiberId.none)
    }
  }

  const decide = (exit: Exit.Exit<A, E | E2>): void => {
    if (decided !== undefined) return
    decided = exit
    stopTimer()
    giveUpAllBut(undefined, Exit.isSuccess(exit))
    resume?.(exit)
  }

  const claim = (position: number): boolean => {
    if (!inFlight.has(position)) return false
    isClaimed = true
    stopTimer()
    giveUpAllBut(position, true)
    return true
  }

  const start = (position: number, announce?: LazyArg<Effect.Effect<void>>): void => {
    stopTimer()
    waiting.splice(waiting.indexOf(position), 1)
    inFlight.set(position, undefined)
    const attempt = Effect.suspend(() =>
      ask(candidates[position] as Candidate, position, { claim: () => claim(position) })
    )
    const fiber = fork(Effect.exit(announce === undefined ? attempt : Effect.zipRight(quietly(announce), attempt)))
    if (inFlight.has(position)) inFlight.set(position, fiber)
    else fiber.unsafeInterruptAsFork(FiberId.none)
    fiber.addObserver((exit) => take(() => ended(position, Exit.flatten(exit))))
    if (fiber.unsafePoll() === null) startTimer(position)
  }

  const startTimer = (from: number): void => {
    if (isClaimed || waiting.length === 0 || !(inFlight.size <= maxHedges)) return
    const millis = typeof delay === "function" ? delay() : delay
    if (millis === undefined || !(millis >= 0 && millis <= maxTimerMillis)) return
    const hedgeTo = (to: number) => () => {
      // What was asked for leave may have claimed the race meanwhile.
      if (isClaimed || decided !== undefined) return
      timer = undefined
      start(to, onHedge && (() => onHedge(from, to)))
    }
    timer = fork(
      Effect.sleep(millis).pipe(
        Effect.zipRight(Effect.suspend(() => Effect.findFirst(waiting, (to) => asEffect(isAvailable(to))))),
        Effect.flatMap((to) =>
          Option.isNone(to)
            ? Effect.void
            : Effect.map(asEffect(mayHedge()), (isAllowed) => (isAllowed ? take(hedgeTo(to.value)) : undefined))
        )
      )
    )
    timer.addObserver((exit) => {
      if (Exit.isFailure(exit) && !Cause.isInterruptedOnly(exit.cause)) decide(Exit.failCause(exit.cause))
    })
  }

  const ended = (position: number, exit: Exit.Exit<A, E>): void => {
    if (!inFlight.delete(position)) return
    if (Exit.isSuccess(exit)) decide(exit)
    else
      Either.match(Cause.failureOrCause(exit.cause), {
        onLeft: (error) => failed(position, error),
        onRight: (cause) => decide(Exit.failCause(cause))
      })
  }

  const failed = (position: number, error: E): void => {
    errors[position] = error
    onFailure(error, position)
    const [next] = waiting
    if (!mayFailOver(error)) decide(Exit.fail(error))
    else if (next !== undefined) start(next, onFailover && (() => onFailover(error, position, next)))
    else if (inFlight.size === 0) exhaust()
  }

  /** Those that were given up have left no error. */
  const exhaust = () => decide(Exit.fail(onExhausted(errors.filter(() => true))))

  return {
    begin: (): Exit.Exit<A, E | E2> | undefined => {
      take(() => (waiting.length === 0 ? exhaust() : start(0)))
      return decided
    },
    whenDecided: (onDecided: (exit: Exit.Exit<A, E | E2>) => void): void => {
      if (decided === undefined) resume = onDecided
      else onDecided(decided)
    },
    /** Ends the race without an outcome, when all in flight have ended. */
    abandon: Effect.suspend(() => {
      const fibers = [...inFlight.values(), timer].filter((fiber) => fiber !== undefined)
      decided ??= Exit.interrupt(FiberId.none)
      inFlight.clear()
      timer = undefined
      return Fiber.interruptAll(fibers)
    })
  }
}

const quietly = (told: LazyArg<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.asVoid(Effect.exit(Effect.suspend(told)))

const asEffect = (answer: boolean | Effect.Effect<boolean>): Effect.Effect<boolean> =>
  typeof answer === "boolean" ? Effect.succeed(answer) : answer
