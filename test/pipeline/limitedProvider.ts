/** Providers that allow so many calls a minute, each in its own way of counting. */

/** A window of each whole minute, the last 60 seconds, or a bucket that holds five seconds' worth. */
export type ProviderKind = "fixed window" | "sliding window" | "bucket"

/** Asks a provider at a time; it answers with how long to wait, 0 if it takes the call. */
type Ask = (now: number) => number

const fixedWindow = (perMinuteAt: (now: number) => number): Ask => {
  let window = -1
  let count = 0
  return (now) => {
    const present = Math.floor(now / 60_000)
    if (present !== window) count = 0
    window = present
    if (count >= perMinuteAt(now)) return (present + 1) * 60_000 - now
    count += 1
    return 0
  }
}

const slidingWindow = (perMinuteAt: (now: number) => number): Ask => {
  let taken: ReadonlyArray<number> = []
  return (now) => {
    taken = taken.filter((at) => at > now - 60_000)
    const perMinute = perMinuteAt(now)
    const oldest = taken.at(-perMinute)
    if (oldest !== undefined && taken.length >= perMinute) return oldest + 60_000 - now
    taken = [...taken, now]
    return 0
  }
}

const bucket = (perMinuteAt: (now: number) => number): Ask => {
  let tokens = Number.POSITIVE_INFINITY
  let seen = 0
  return (now) => {
    const perMilli = perMinuteAt(now) / 60_000
    tokens = Math.min(Math.max(1, perMilli * 5000), tokens + (now - seen) * perMilli)
    seen = now
    if (tokens < 1) return Math.ceil((1 - tokens) / perMilli)
    tokens -= 1
    return 0
  }
}

/** A provider whose limit changes from phase to phase. */
export const limitedProvider = (
  kind: ProviderKind,
  phases: ReadonlyArray<readonly [minutes: number, perMinute: number]>
): Ask => {
  const perMinuteAt = (now: number) => {
    let end = 0
    const phase = phases.find(([minutes]) => {
      end += minutes * 60_000
      return now < end
    })
    return (phase ?? phases.at(-1))?.[1] ?? 0
  }
  return { "fixed window": fixedWindow, "sliding window": slidingWindow, bucket }[kind](perMinuteAt)
}
