/** The arithmetic of one bucket that fills evenly, as pure functions. */

/**
 * Amounts are kept in units so small that what comes in during a microsecond is a whole number of them, for a whole
 * limit and interval: nothing is rounded away, however often the bucket is asked.
 */
export interface Bucket {
  readonly unitsPerMicro: number
  /** Units of one request or token. */
  readonly unitsPerOne: number
  /** The most that it holds, in units. */
  readonly capacity: number
  /** How far below zero it can be brought: by what comes in during an interval, or what it holds if that is more. */
  readonly lowest: number
  /** What it holds, in units; below zero after a call that used more than was reserved for it. */
  readonly units: number
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b))

/** A full bucket that fills by `limit` in each interval and holds `burst`. */
export const full = (limit: number, intervalMillis: number, burst: number): Bucket => {
  const intervalMicros = intervalMillis * 1000
  const areWhole = Number.isSafeInteger(limit) && Number.isSafeInteger(intervalMicros)
  const divisor = areWhole ? greatestCommonDivisor(limit, intervalMicros) : 1
  const unitsPerOne = intervalMicros / divisor
  const capacity = burst * unitsPerOne
  const lowest = -Math.max(capacity, limit * unitsPerOne)
  return { unitsPerMicro: limit / divisor, unitsPerOne, capacity, lowest, units: capacity }
}

/** What it holds, in requests or tokens. */
export const left = (bucket: Bucket): number => bucket.units / bucket.unitsPerOne

/** The most that it holds, in requests or tokens. */
export const most = (bucket: Bucket): number => bucket.capacity / bucket.unitsPerOne

/** Lets time pass; it fills up to `atMost` requests or tokens, or keeps what it has beyond that. */
export const fill = (bucket: Bucket, micros: number, atMost = Number.POSITIVE_INFINITY): Bucket => {
  const capacity = Math.min(bucket.capacity, atMost * bucket.unitsPerOne)
  return micros <= 0 || bucket.units >= capacity
    ? bucket
    : { ...bucket, units: Math.min(capacity, bucket.units + micros * bucket.unitsPerMicro) }
}

/** Microseconds until so much is there; 0 if it is. */
export const microsUntil = (bucket: Bucket, amount: number): number =>
  Math.max(0, (amount * bucket.unitsPerOne - bucket.units) / bucket.unitsPerMicro)

/** Takes out so much. */
export const take = (bucket: Bucket, amount: number): Bucket =>
  amount === 0 ? bucket : { ...bucket, units: bucket.units - amount * bucket.unitsPerOne }

/** Puts so much in; what is more than it holds is lost. */
export const give = (bucket: Bucket, amount: number): Bucket => ({
  ...bucket,
  units: Math.min(bucket.capacity, bucket.units + amount * bucket.unitsPerOne)
})

/** Takes out what was used beyond the reservation. What would bring it below its lowest is forgiven. */
export const charge = (bucket: Bucket, amount: number): Bucket => ({
  ...bucket,
  units: Math.max(Math.min(bucket.units, bucket.lowest), bucket.units - amount * bucket.unitsPerOne)
})

/** Lowers it to so much; it is never raised. */
export const lower = (bucket: Bucket, amount: number): Bucket => {
  const units = amount * bucket.unitsPerOne
  return units < bucket.units ? { ...bucket, units } : bucket
}

/** The same content under another rate; what the new one cannot hold is lost. */
export const withRate = (bucket: Bucket, rate: Bucket): Bucket => ({
  ...rate,
  units: Math.min(rate.capacity, left(bucket) * rate.unitsPerOne)
})
