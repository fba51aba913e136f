/** A behaviour as the steps that play it: what is written, how long is waited, where it breaks off. */
import { Duration } from "effect"
import type { FaultBehaviour } from "./FaultBehaviour.ts"
import { bodyKind, type Exchange, framesOf, isWithHeaders, upTo } from "./FaultFrames.ts"
import type { Frame } from "./FaultWire.ts"

/** One step of the body. */
export type Step =
  | { readonly _tag: "Write"; readonly bytes: Uint8Array }
  | { readonly _tag: "Wait"; readonly millis: number }
  | { readonly _tag: "Cut" }

/** The steps of the body, made as they are taken. */
export const stepsOf = (behaviour: FaultBehaviour, exchange: Exchange): Iterable<Step> => {
  const sign = bodyKind(behaviour, exchange) === "stream" ? exchange.wire.keepAlive : "\n"
  const frames = framesOf(behaviour, exchange)
  const after = behaviour.cut?.after
  if (after === undefined) return withTimes(frames, behaviour, sign)
  return "words" in after
    ? withTimes(withCut(upTo(frames, after.words, behaviour)), behaviour, sign)
    : cutAfterBytes(withTimes(frames, behaviour, sign), after.bytes)
}

type Frames = Iterable<Frame | { readonly kind: "cut" }>

const withCut = function* (before: Generator<Frame, boolean>): Frames {
  if (yield* before) yield { kind: "cut" }
}

const encoder = new TextEncoder()

const write = (text: string): Step => ({ _tag: "Write", bytes: encoder.encode(text) })

const wait = (duration: Duration.DurationInput): Step => ({ _tag: "Wait", millis: Duration.toMillis(duration) })

const withTimes = function* (frames: Frames, behaviour: FaultBehaviour, keepAlive: string): Iterable<Step> {
  const { gap, holdOpen } = behaviour
  let hasBegun = false
  let words = 0
  for (const frame of frames) {
    if (!hasBegun && !isWithHeaders(behaviour, frame)) {
      hasBegun = true
      yield* beforeContent(behaviour, keepAlive)
    }
    if (frame.kind === "cut") return yield { _tag: "Cut" }
    if (frame.kind === "word" && words++ > 0 && gap !== undefined) yield wait(gap)
    yield write(frame.data)
  }
  if (holdOpen !== undefined) yield wait(holdOpen)
}

const beforeContent = function* ({ keepAlive, firstTokenDelay }: FaultBehaviour, sign: string): Iterable<Step> {
  for (let sent = 0; keepAlive !== undefined && sent < (keepAlive.count ?? Number.POSITIVE_INFINITY); sent++) {
    yield wait(keepAlive.every)
    yield write(sign)
  }
  if (firstTokenDelay !== undefined) yield wait(firstTokenDelay)
}

const cutAfterBytes = function* (steps: Iterable<Step>, bytes: number): Iterable<Step> {
  let left = bytes
  if (left <= 0) return yield { _tag: "Cut" }
  for (const step of steps) {
    if (step._tag !== "Write" || step.bytes.length < left) {
      if (step._tag === "Write") left -= step.bytes.length
      yield step
      continue
    }
    yield { _tag: "Write", bytes: step.bytes.subarray(0, left) }
    return yield { _tag: "Cut" }
  }
}
