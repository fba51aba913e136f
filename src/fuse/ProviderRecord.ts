/** What is remembered of a provider's latest attempts, in constant memory. */
import type { DateTime } from "effect"
import type { CandidateError } from "../model/LlmError.ts"
import type { Latency } from "../pipeline/Latency.ts"

/** How many attempts the share of failures is about. */
const remembered = 128

/** How much the latest answer weighs in the average latency. */
const weight = 0.2

/** The last failure of a provider. */
export interface LastError {
  /** As events tell it: in words that quote neither prompts nor answers, unless `captureContent` is on. */
  readonly error: CandidateError
  readonly at: DateTime.Utc
}

/** Remembers. Recording takes some nanoseconds and allocates nothing. */
export class ProviderRecord {
  /** Until the answer, or the first content of a streamed one, of attempts that succeeded. */
  readonly latency: Latency
  /** Until the first content, of streamed attempts that succeeded. */
  readonly timeToFirstToken: Latency
  lastError: LastError | undefined
  /** The exponentially weighted average of the latency; undefined before the first answer. */
  averageMillis: number | undefined
  /** What its attempts have cost so far, in US dollars, as far as their prices are known. */
  cost = 0
  /** Attempts that are waited for just now. */
  inFlight = 0
  readonly #failures = new Uint8Array(remembered)
  #place = 0
  #count = 0
  #failed = 0

  constructor(latency: Latency, timeToFirstToken: Latency) {
    this.latency = latency
    this.timeToFirstToken = timeToFirstToken
  }

  /** An attempt was answered. */
  succeeded(millis: number, firstContentMillis: number | undefined): void {
    this.#note(0)
    const latency = firstContentMillis ?? millis
    this.latency.record(latency)
    if (firstContentMillis !== undefined) this.timeToFirstToken.record(firstContentMillis)
    const before = this.averageMillis
    this.averageMillis = before === undefined ? latency : before + weight * (latency - before)
  }

  /** An attempt cost something, if that is known. */
  spent(cost: number | undefined): void {
    if (cost !== undefined) this.cost += cost
  }

  /** An attempt failed. */
  failed(error: CandidateError, at: DateTime.Utc): void {
    this.#note(1)
    this.lastError = { error, at }
  }

  /** The share of failures among the latest attempts, 128 at most; 0 before the first. */
  get failureRate(): number {
    return this.#count === 0 ? 0 : this.#failed / this.#count
  }

  #note(isFailure: 0 | 1): void {
    if (this.#count === remembered) this.#failed -= this.#failures[this.#place] ?? 0
    else this.#count += 1
    this.#failures[this.#place] = isFailure
    this.#failed += isFailure
    this.#place = (this.#place + 1) % remembered
  }
}
