/** A limiter as one would write it without regard to speed: a list of waiters, looked at in every millisecond. */

/** Requests per second and tokens per 100 ms come one by one, so that everything happens at whole milliseconds. */
export const modelOptions = {
  requests: { limit: 60, burst: 3 },
  tokens: { limit: 600, burst: 40 },
  concurrency: 3,
  maxQueue: 3,
  maxWait: 6000
} as const

/** How a call stands. */
export type Status = "waiting" | "running" | "ended" | "refused"

interface Call {
  status: Status
  readonly tokens: number
  readonly key: string
  readonly untilMillis: number
  /** What was taken for it so far. */
  charged: number
  waitMillis?: number
  limit?: string | undefined
}

/** The whole of it. Milli-requests and milli-tokens, so that a millisecond brings in a whole number. */
export class LimiterModel {
  now = 0
  requests = 3 * 1000
  tokens = 40 * 100
  blockedUntil = 0
  calls: Array<Call> = []
  /** Who waits, and in which order the keys have their turns. */
  queues: Array<Array<Call>> = []

  get inFlight(): number {
    return this.calls.filter(({ status }) => status === "running").length
  }

  get queued(): number {
    return this.queues.flat().length
  }

  arrive(tokens: number, key: string, atMost: number): void {
    const maxWait = Math.min(atMost, modelOptions.maxWait)
    const call: Call = { status: "waiting", tokens, key, untilMillis: this.now + maxWait, charged: tokens }
    this.calls.push(call)
    if (tokens > modelOptions.tokens.burst) this.refuse(call, Number.POSITIVE_INFINITY, "tokens")
    else this.queue(call, key, maxWait)
  }

  interrupt(call: Call): void {
    if (call.status === "waiting") this.remove(call)
    this.end(call)
  }

  end(call: Call): void {
    call.status = "ended"
    this.serve()
  }

  reconcile(call: Call, actual: number): void {
    const lowest = -600 * 100
    const more = (actual - call.charged) * 100
    this.tokens =
      more > 0 ? Math.max(Math.min(this.tokens, lowest), this.tokens - more) : Math.min(40 * 100, this.tokens - more)
    call.charged = actual
    this.serve()
  }

  block(millis: number): void {
    if (this.now + millis <= Math.max(this.now, this.blockedUntil)) return
    this.blockedUntil = this.now + millis
    this.requests = Math.min(this.requests, 1000)
    // Everybody asks again; one who leaves shortens the wait of those behind.
    for (const call of this.order()) {
      const wait = call.status === "waiting" ? this.waitOf(call) : 0
      if (call.status === "waiting" && wait > call.untilMillis - this.now) this.drop(call, wait)
    }
  }

  pass(millis: number): void {
    for (let step = 0; step < millis; step++) {
      this.now += 1
      this.fill(this.now <= this.blockedUntil)
      this.serve(this.queues[0]?.[0])
      for (const call of this.order()) {
        if (call.status !== "waiting" || this.now < call.untilMillis) continue
        const isDue = this.waitOf(call) === 0 && this.inFlight + this.order().indexOf(call) < modelOptions.concurrency
        if (!isDue) this.drop(call, this.waitOf(call))
      }
    }
  }

  /** Who is served in which order: the first of each queue in turn, then the second of each. */
  order(): ReadonlyArray<Call> {
    const rounds = Math.max(0, ...this.queues.map(({ length }) => length))
    return Array.from({ length: rounds }, (_, round) =>
      this.queues.flatMap((queue) => queue.slice(round, round + 1))
    ).flat()
  }

  private queue(call: Call, key: string, maxWait: number): void {
    const own = this.queues.find(([first]) => first?.key === key)
    const isFull = (own?.length ?? 0) >= modelOptions.maxQueue || maxWait === 0
    if (own) own.push(call)
    else this.queues.push([call])
    const wait = this.waitOf(call)
    const hasNoPlace = this.inFlight + this.order().indexOf(call) >= modelOptions.concurrency
    if (wait > maxWait) this.drop(call, wait)
    else if (isFull && hasNoPlace) this.drop(call, 0)
    else this.serve()
  }

  private fill(isBlocked: boolean): void {
    const most = isBlocked ? 1000 : 3000
    this.requests = Math.max(this.requests, Math.min(most, this.requests + 1))
    this.tokens = Math.min(40 * 100, this.tokens + 1)
  }

  private hasRates(call: Call): boolean {
    return this.now >= this.blockedUntil && this.requests >= 1000 && this.tokens >= call.tokens * 100
  }

  private serve(checked?: Call): void {
    for (;;) {
      const call = this.queues[0]?.[0]
      if (call === undefined) return
      if (this.hasRates(call) && this.inFlight < modelOptions.concurrency) {
        this.take(call)
        call.status = "running"
        const [served = [], ...others] = this.queues
        this.queues = served.length === 1 ? others : [...others, served.slice(1)]
        continue
      }
      // The first gives up as soon as it is known that its turn comes too late.
      const wait = call === checked && this.now < call.untilMillis ? 0 : this.waitOf(call)
      if (wait <= call.untilMillis - this.now) return
      this.remove(call)
      this.refuse(call, wait, wait === 0 ? "concurrency" : undefined)
    }
  }

  private take(call: Call): void {
    this.requests -= 1000
    this.tokens -= call.tokens * 100
  }

  /** How long the rates alone keep it waiting: plays the future with places enough. */
  private waitOf(call: Call): number {
    const { now, requests, tokens } = this
    const ahead = this.order()
    let next = 0
    while (true) {
      const first = ahead[next]
      if (first !== undefined && this.hasRates(first)) {
        if (first === call) break
        this.take(first)
        next += 1
      } else {
        this.now += 1
        this.fill(this.now <= this.blockedUntil)
      }
    }
    const wait = this.now - now
    Object.assign(this, { now, requests, tokens })
    return wait
  }

  private drop(call: Call, wait: number): void {
    this.remove(call)
    this.refuse(call, wait, wait === 0 ? "concurrency" : undefined)
    this.serve()
  }

  private remove(call: Call): void {
    this.queues = this.queues.map((queue) => queue.filter((other) => other !== call)).filter(({ length }) => length > 0)
  }

  private refuse(call: Call, waitMillis: number, limit: string | undefined): void {
    Object.assign(call, { status: "refused", waitMillis, limit })
  }
}
