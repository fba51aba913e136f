/** Interrupts an effect at each of its operations in turn, to show that nothing is lost wherever that happens. */
import { Effect, type Exit, type Fiber, FiberId, Scheduler } from "effect"

/** Runs everything as the default scheduler does, but interrupts the first fiber it sees at one operation. */
class InterruptingScheduler extends Scheduler.MixedScheduler {
  operations = 0
  #root: Fiber.RuntimeFiber<unknown, unknown> | undefined
  readonly #at: number

  constructor(at: number) {
    super(2048)
    this.#at = at
  }

  override shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>): number | false {
    this.#root ??= fiber
    this.operations += 1
    if (this.operations !== this.#at) return super.shouldYield(fiber)
    this.#root.unsafeInterruptAsFork(FiberId.none)
    return 0
  }
}

/**
 * For every n: makes a fresh subject, runs its effect with an interruption at operation n, and then checks it.
 * Ends when the effect has fewer than n operations. Returns how many runs were interrupted.
 */
export const interruptAtEveryOperation = async (
  subject: () => {
    readonly run: Effect.Effect<unknown, unknown>
    readonly check: (exit: Exit.Exit<unknown, unknown>, operation: number) => Promise<void> | void
  }
): Promise<number> => {
  for (let operation = 1; ; operation++) {
    const { run, check } = subject()
    const scheduler = new InterruptingScheduler(operation)
    const fiber = Effect.runFork(run, { scheduler })
    const exit = await Effect.runPromise(fiber.await)
    await check(exit, operation)
    if (scheduler.operations < operation) return operation - 1
  }
}
