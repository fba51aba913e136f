/** How a rate follows what a provider can take, as pure functions: additive increase, multiplicative decrease. */
import * as Meter from "./AdaptiveRateMeter.ts"

/** What the decisions need of the options; rates are calls per interval. */
export interface Rules {
  readonly intervalMillis: number
  readonly floor: number
  readonly ceiling: number
  readonly decrease: number
  readonly increase: number
}

/** The whole state, one immutable value. */
export interface State {
  /** Absent as long as no limit is known. */
  readonly rate: number | undefined
  /** The rate before the last cut: up to here the limit is known, above it is searched for. */
  readonly known: number
  /** By how much the rate rises in an interval. */
  readonly step: number
  /** When the last congestion was seen. */
  readonly congestedAtMillis: number
  /** Whether a call that began after it has succeeded. */
  readonly hasRecovered: boolean
  /** How long to pause at the next congestion for which there is no hint. */
  readonly pauseMillis: number
  readonly meter: Meter.Meter
}

/** A change of the rate. */
export interface Change {
  /** Absent if no limit was known before. */
  readonly from: number | undefined
  readonly to: number
}

const firstPauseMillis = 1000

/** A rate that has met no congestion yet. */
export const initial = (rate: number | undefined, rules: Rules, now: number): State => ({
  rate,
  known: rate ?? 0,
  step: rules.increase * (rate ?? 0),
  congestedAtMillis: Number.NEGATIVE_INFINITY,
  hasRecovered: true,
  pauseMillis: firstPauseMillis,
  meter: Meter.empty(now)
})

const within = (rate: number, { floor, ceiling }: Rules): number => Math.min(ceiling, Math.max(floor, rate))

/** Of what the provider accepted in the last interval, but not less than half of the rate in one step. */
const cut = ({ rate, meter }: State, rules: Rules, now: number): number => {
  const accepted = Meter.perInterval(meter, rules.intervalMillis, now)
  return rate === undefined
    ? within(accepted * rules.decrease, rules)
    : Math.min(rate, within(Math.max(Math.min(rate, accepted) * rules.decrease, rate / 2), rules))
}

const isHint = (hint: number | undefined): hint is number => hint !== undefined && hint > 0 && hint < Infinity

/** What a throttled call leads to. */
export interface Throttled {
  /** Nothing may go for so long. */
  readonly blockMillis: number
  readonly lowered: Change | undefined
}

/**
 * A call was throttled. Calls that began before the congestion was seen belong to it: they change nothing, but their hint
 * counts. One that began after it is a new congestion; the rate is cut again only if a call has succeeded in between.
 */
export const throttled = (
  state: State,
  rules: Rules,
  now: number,
  startedAtMillis: number,
  hintMillis: number | undefined
): readonly [Throttled, State] => {
  const hinted = isHint(hintMillis) ? hintMillis : 0
  const congestedAtMillis = Math.min(state.congestedAtMillis, now)
  if (startedAtMillis <= congestedAtMillis) {
    return [
      { blockMillis: hinted, lowered: undefined },
      { ...state, congestedAtMillis }
    ]
  }
  const congested = { ...state, congestedAtMillis: now, hasRecovered: false }
  const paused =
    hinted > 0 ? congested : { ...congested, pauseMillis: Math.min(state.pauseMillis * 2, rules.intervalMillis) }
  const blockMillis = hinted > 0 ? hinted : state.pauseMillis
  if (!state.hasRecovered) return [{ blockMillis, lowered: undefined }, paused]
  const to = cut(state, rules, now)
  const known = state.rate ?? to / rules.decrease
  const lowered = to === state.rate ? undefined : { from: state.rate, to }
  return [
    { blockMillis, lowered },
    { ...paused, rate: to, known, step: rules.increase * known }
  ]
}

/**
 * A call succeeded. The rate rises by `step` in an interval, as long as at least half of it is used. Above the rate that
 * was known to be too high the step doubles in each interval, up to the rate itself.
 */
export const succeeded = (
  state: State,
  rules: Rules,
  now: number,
  startedAtMillis: number
): readonly [Change | undefined, State] => {
  const meter = Meter.count(state.meter, rules.intervalMillis, now)
  if (startedAtMillis <= Math.min(state.congestedAtMillis, now)) return [undefined, { ...state, meter }]
  const recovered = { ...state, meter, hasRecovered: true, pauseMillis: firstPauseMillis }
  const { rate } = state
  const isInUse = rate !== undefined && Meter.perInterval(meter, rules.intervalMillis, now) >= rate / 2
  if (!isInUse || rate >= rules.ceiling) return [undefined, recovered]
  const to = within(rate + Math.min(state.step / rate, 1), rules)
  const step = to > state.known ? Math.min(state.step * 2 ** (1 / rate), to) : state.step
  return [
    { from: rate, to },
    { ...recovered, rate: to, step }
  ]
}
