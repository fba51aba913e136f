/** Functions that return promises: what they are given, and what it means when they reject. */
import { Clock, Effect } from "effect"
import type { ProviderError } from "../model/LlmError.ts"
import * as Rejection from "./Rejection.ts"

/** What such a function is given beside the request. */
export interface PromiseContext {
  /** Aborts when the answer is no longer wanted. Made when it is first read. */
  readonly signal: AbortSignal
}

/** A context, and what aborts its signal. */
export const makeContext = (): { readonly context: PromiseContext; readonly abort: () => void } => {
  let controller: AbortController | undefined
  const context: PromiseContext = {
    get signal() {
      controller ??= new AbortController()
      return controller.signal
    }
  }
  return { context, abort: () => controller?.abort() }
}

/** Runs an `async` function and waits for its promise. Fails with the error that the rejection describes. */
export const run = <A>(provider: string, start: () => Promise<A>): Effect.Effect<A, ProviderError> =>
  Effect.async((resume) => {
    start().then(
      (value) => resume(Effect.succeed(value)),
      (reason) => resume(rejected(provider, reason))
    )
  })

/** Fails with the error that a rejection describes, by the program's clock. */
export const rejected = (provider: string, reason: unknown): Effect.Effect<never, ProviderError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(Rejection.toProviderError(provider, reason, now)))
