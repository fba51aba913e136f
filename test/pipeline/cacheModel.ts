/** What a cache promises, in the simplest form: lists, and events in the order of their time. */

export const rules = { ttl: 10_000, stale: 5_000, maxEntries: 3, maxBytes: 100 } as const

/** What a run does when it is let. All times are whole seconds and a number of its own, so that no two end at once. */
export interface Plan {
  readonly outcome: "kept" | "unkept" | "down" | "refused" | "defect"
  readonly bytes: number
  readonly millis: number
  /** How long it takes to clean up; with `"stubborn"` it does not let itself be interrupted. */
  readonly cleanUp: number | "stubborn"
}

export interface Value {
  readonly run: number
  readonly bytes: number
  readonly isKept: boolean
}

export type Outcome =
  | { readonly source: "fresh" | "stale" | "shared" | "miss"; readonly run: number; readonly ageMillis: number }
  | "down"
  | "refused"
  | "defect"
  | "interrupted"

export interface Waiter {
  outcome: Outcome | undefined
  flight: Flight | undefined
}

interface Entry {
  readonly key: string
  readonly value: Value
  readonly size: number
  readonly at: number
}

interface Flight {
  readonly key: string
  readonly run: number
  readonly plan: Plan
  readonly kept: Entry | undefined
  readonly waiters: Array<Waiter>
  readonly leader: Waiter
}

export class Model {
  now = 0
  /** Least recently used first. */
  entries: Array<Entry> = []
  /** Those that can be joined. */
  flights = new Map<string, Flight>()
  events: Array<{ at: number; flight: Flight; what: "run ends" | "is clean" }> = []
  waiters: Array<Waiter> = []
  served = { fresh: 0, stale: 0, shared: 0, miss: 0 }
  runs = 0
  ended = 0

  ask(key: string, plan: Plan): void {
    const waiter: Waiter = { outcome: undefined, flight: undefined }
    this.waiters.push(waiter)
    const kept = this.find(key)
    if (kept !== undefined && this.now - kept.at < rules.ttl) {
      this.serve(waiter, "fresh", kept.value.run, kept.at)
      return
    }
    const running = this.flights.get(key)
    waiter.flight = running ?? { key, run: ++this.runs, plan, kept, waiters: [], leader: waiter }
    waiter.flight.waiters.push(waiter)
    if (running !== undefined) return
    this.flights.set(key, waiter.flight)
    if (plan.millis === 0) this.land(waiter.flight)
    else this.events.push({ at: this.now + plan.millis, flight: waiter.flight, what: "run ends" })
  }

  interrupt(waiter: Waiter): void {
    const flight = waiter.flight as Flight
    waiter.flight = undefined
    flight.waiters.splice(flight.waiters.indexOf(waiter), 1)
    if (flight.waiters.length > 0) {
      waiter.outcome = "interrupted"
      return
    }
    // The last one waits until the run is over, one way or the other.
    this.release(flight)
    const { cleanUp } = flight.plan
    flight.waiters.push(waiter)
    if (cleanUp === "stubborn") return
    this.events = this.events.filter((event) => event.flight !== flight)
    if (cleanUp === 0) this.end(flight)
    else this.events.push({ at: this.now + cleanUp, flight, what: "is clean" })
  }

  advance(millis: number): void {
    const target = this.now + millis
    for (;;) {
      const next = this.events.sort((one, other) => one.at - other.at)[0]
      if (next === undefined || next.at > target) break
      this.events.shift()
      this.now = next.at
      if (next.what === "is clean") this.end(next.flight)
      else this.land(next.flight)
    }
    this.now = target
  }

  invalidate(key: string): void {
    this.flights.delete(key)
    this.entries = this.entries.filter((entry) => entry.key !== key)
  }

  clear(): void {
    this.flights.clear()
    this.entries = []
  }

  get bytes(): number {
    return this.entries.reduce((sum, { size }) => sum + size, 0)
  }

  private find(key: string): Entry | undefined {
    const entry = this.entries.find((it) => it.key === key)
    if (entry === undefined) return undefined
    this.entries = this.entries.filter((it) => it !== entry)
    if (this.isExpired(entry)) return undefined
    this.entries.push(entry)
    return entry
  }

  private isExpired(entry: Entry): boolean {
    return this.now - entry.at >= rules.ttl + rules.stale
  }

  private land(flight: Flight): void {
    const isCurrent = this.release(flight)
    const { outcome, bytes } = flight.plan
    if (outcome === "kept" && isCurrent) this.keep(flight.key, { run: flight.run, bytes, isKept: true })
    this.ended += 1
    for (const waiter of flight.waiters) {
      const isLast = waiter.flight === undefined
      waiter.flight = undefined
      if (isLast) waiter.outcome = "interrupted"
      else if (outcome === "kept" || outcome === "unkept") {
        this.serve(waiter, waiter === flight.leader ? "miss" : "shared", flight.run, this.now)
      } else if (outcome === "down" && isCurrent && flight.kept !== undefined && !this.isExpired(flight.kept)) {
        this.serve(waiter, "stale", flight.kept.value.run, flight.kept.at)
      } else waiter.outcome = outcome
    }
  }

  private end(flight: Flight): void {
    this.ended += 1
    for (const waiter of flight.waiters) waiter.outcome = "interrupted"
  }

  private release(flight: Flight): boolean {
    const isCurrent = this.flights.get(flight.key) === flight
    if (isCurrent) this.flights.delete(flight.key)
    return isCurrent
  }

  private serve(waiter: Waiter, source: keyof Model["served"], run: number, at: number): void {
    this.served[source] += 1
    waiter.outcome = { source, run, ageMillis: this.now - at }
  }

  private keep(key: string, value: Value): void {
    const size = value.bytes + 2 * key.length
    if (size > rules.maxBytes) return
    this.entries = this.entries.filter((entry) => entry.key !== key && !this.isExpired(entry))
    while (this.entries.length >= rules.maxEntries || this.bytes + size > rules.maxBytes) this.entries.shift()
    this.entries.push({ key, value, size, at: this.now })
  }
}
