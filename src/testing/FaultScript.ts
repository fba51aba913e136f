/** The script of a fault server: which behaviour a request meets. */
import { Duration } from "effect"
import type { FaultBehaviour } from "./FaultBehaviour.ts"

/** The language that a request is in; its path tells. */
export type FaultWireName = "openai-chat" | "anthropic-messages"

/** How an exchange ended. */
export interface FaultEnding {
  /**
   * `"answered"`: everything was sent. `"cut"`: the server broke off, as told. `"aborted"`: the client closed before
   * the server was done. `"stopped"`: the server was stopped.
   */
  readonly how: "answered" | "cut" | "aborted" | "stopped"
  /** Milliseconds since the start of the server. */
  readonly at: number
}

/** A request as it came. */
export interface FaultRequest {
  /** Milliseconds since the start of the server, by a clock that never steps back. */
  readonly at: number
  /** The empty string if the request names none. */
  readonly model: string
  /** Which request of that model it is, from 1. */
  readonly number: number
  readonly wire: FaultWireName
  readonly path: string
  /** Whether it asks for a stream. */
  readonly stream: boolean
  /** Names in lower case. A key stands here as it is sent. */
  readonly headers: Readonly<Record<string, string>>
  /** Parsed; the text if it is no JSON. */
  readonly body: unknown
  /** Absent while the exchange is under way. */
  readonly ended?: FaultEnding | undefined
}

/** A behaviour, one for each request of the model (the last repeats), or a function of the request. */
export type FaultPlan = FaultBehaviour | ReadonlyArray<FaultBehaviour> | ((request: FaultRequest) => FaultBehaviour)

/** What each model does, by its name; or one function for all. A model that is not named is not found (404). */
export type FaultScript = Readonly<Record<string, FaultPlan>> | ((request: FaultRequest) => FaultBehaviour)

/** A behaviour from one moment on. */
export type FaultPhase = FaultBehaviour & {
  /** When it begins, counted from the start of the server. Default: 0. */
  readonly from?: Duration.DurationInput | undefined
}

const modelNotFound: FaultBehaviour = { status: 404 }

/** The behaviour that a request meets. */
export const behaviourFor = (script: FaultScript, request: FaultRequest): FaultBehaviour => {
  if (typeof script === "function") return script(request)
  const plan = Object.hasOwn(script, request.model) ? script[request.model] : undefined
  if (plan === undefined) return modelNotFound
  if (typeof plan === "function") return plan(request)
  return isList(plan) ? (plan[Math.min(request.number, plan.length) - 1] ?? {}) : plan
}

/** Behaviour by time: an outage, a slow minute, a recovery. In order of time; before the first phase it is healthy. */
export const phases =
  (list: ReadonlyArray<FaultPhase>) =>
  ({ at }: FaultRequest): FaultBehaviour =>
    list.findLast(({ from = 0 }) => Duration.toMillis(from) <= at) ?? {}

const isList = (plan: FaultPlan): plan is ReadonlyArray<FaultBehaviour> => Array.isArray(plan)
