/** What a fault server remembers: the requests, how each ended, and who waits for all to have ended. */
import { Clock } from "effect"
import * as Monotonic from "../pipeline/Monotonic.ts"
import type { FaultEnding, FaultRequest } from "./FaultScript.ts"

/** A request of the log, and what ends it. */
export interface LogEntry {
  readonly request: FaultRequest
  /** Only the first ending counts. */
  readonly end: (how: FaultEnding["how"]) => void
}

/** The log of a server. Sockets are real, so time is too, whatever the clock of the program. */
export class FaultLog {
  readonly requests: Array<FaultRequest> = []
  readonly #clock = Clock.make()
  readonly #startMillis = Monotonic.unsafeMillis(this.#clock)
  readonly #counts = new Map<string, number>()
  #underWay = 0
  #waiting: Array<() => void> = []

  /** Begins an entry for what has come. */
  begin(came: Omit<FaultRequest, "at" | "number" | "ended">): LogEntry {
    const number = (this.#counts.get(came.model) ?? 0) + 1
    this.#counts.set(came.model, number)
    const request: FaultRequest & { ended?: FaultEnding } = { at: this.#now(), number, ...came }
    this.requests.push(request)
    this.#underWay++
    const end = (how: FaultEnding["how"]) => {
      if (request.ended !== undefined) return
      request.ended = { how, at: this.#now() }
      this.#underWay--
      if (this.#underWay === 0) for (const resume of this.#waiting.splice(0)) resume()
    }
    return { request, end }
  }

  /** Resolves when no request is under way. */
  idle(): Promise<void> {
    return this.#underWay === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve))
  }

  #now(): number {
    return Monotonic.unsafeMillis(this.#clock) - this.#startMillis
  }
}
