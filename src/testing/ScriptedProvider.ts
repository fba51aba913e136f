/** A provider whose behaviour changes with time, for tests: an outage, a slow hour, a recovery. */
import { Duration, Effect, Effectable } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { ProviderError } from "../model/LlmError.ts"
import * as Monotonic from "../pipeline/Monotonic.ts"
import type { Provider } from "../provider/Provider.ts"

/** What the provider does: answer, fail, or stay silent for ever. */
export type Behaviour =
  | { readonly reply: string | ProviderAnswer }
  | { readonly error: ProviderError | (() => ProviderError) }
  | { readonly silent: true }

/** What the provider does from one moment on. */
export type Phase = Behaviour & {
  /** When it begins, counted from when the provider is put to use. Default: 0. */
  readonly from?: Duration.DurationInput | undefined
  /** How long a call takes. Default: no time. */
  readonly latency?: Duration.DurationInput | undefined
}

/** A call that was made. */
export interface ScriptedCall {
  /** When, counted from when the provider was put to use. */
  readonly at: Duration.Duration
  readonly request: ChatRequest
}

/**
 * A scripted provider. It is a provider, and the effect that yields itself. Time runs by the clock of the program
 * (`TestClock` in a test) from when its layer is built, or from its first call if there is none.
 */
export class ScriptedProvider extends Effectable.Class<Provider> implements Provider {
  readonly name: string
  /** The calls so far, oldest first. */
  readonly calls: Array<ScriptedCall> = []
  readonly #phases: ReadonlyArray<Phase>
  #startMillis: number | undefined

  private constructor(name: string, phases: ReadonlyArray<Phase>) {
    super()
    this.name = name
    this.#phases = phases
  }

  /** A provider of that name with phases in order of time; before the first phase it is silent. */
  static make(name: string, phases: ReadonlyArray<Phase>): ScriptedProvider {
    return new ScriptedProvider(name, phases)
  }

  readonly complete = (request: ChatRequest): Effect.Effect<ProviderAnswer | string, ProviderError> =>
    Effect.flatMap(this.#elapsed, (elapsed) => {
      this.calls.push({ at: Duration.millis(elapsed), request })
      const phase = this.#phases.findLast(({ from = 0 }) => Duration.toMillis(from) <= elapsed)
      if (phase === undefined || "silent" in phase) return Effect.never
      const outcome =
        "reply" in phase
          ? Effect.succeed(phase.reply)
          : Effect.suspend(() => Effect.fail(typeof phase.error === "function" ? phase.error() : phase.error))
      return phase.latency === undefined ? outcome : Effect.delay(outcome, phase.latency)
    })

  override commit(): Effect.Effect<Provider> {
    return Effect.as(this.#elapsed, this)
  }

  readonly #elapsed: Effect.Effect<number> = Effect.map(Monotonic.millis, (now) => {
    this.#startMillis ??= now
    return now - this.#startMillis
  })
}
