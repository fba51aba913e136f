/** A provider without a network, for tests: fails as it is told, then replies; counts and records. */
import { type Duration, Effect, Effectable } from "effect"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { ProviderError } from "../model/LlmError.ts"
import type { Provider, Settings } from "../provider/Provider.ts"

/** How a fake behaves. */
export interface Options extends Omit<Settings, "name"> {
  /** The answer once the errors are used up; a function sees the request. Default: `"ok"`. */
  readonly reply?: string | ProviderAnswer | ((request: ChatRequest) => string | ProviderAnswer) | undefined
  /** Errors of the first calls, one each. Default: none. */
  readonly errors?: ReadonlyArray<ProviderError> | undefined
  /** How long each call takes, by the clock of the program (`TestClock` in a test). Default: no time. */
  readonly latency?: Duration.DurationInput | undefined
}

/** A fake provider. It is a provider, and the effect that yields itself. */
export class FakeProvider extends Effectable.Class<Provider> implements Provider {
  readonly name: string
  readonly model: string | undefined
  readonly limits: Settings["limits"]
  readonly timeout: Settings["timeout"]
  /** The requests so far, oldest first. */
  readonly requests: Array<ChatRequest> = []
  readonly #options: Options

  private constructor(name: string, options: Options) {
    super()
    this.name = name
    this.model = options.model
    this.limits = options.limits
    this.timeout = options.timeout
    this.#options = options
  }

  /** A fake of that name. */
  static make(name: string, options: Options = {}): FakeProvider {
    return new FakeProvider(name, options)
  }

  /** How often it was asked. */
  get calls(): number {
    return this.requests.length
  }

  readonly complete = (request: ChatRequest): Effect.Effect<ProviderAnswer | string, ProviderError> =>
    Effect.suspend(() => {
      const { reply = "ok", errors = [], latency } = this.#options
      const error = errors[this.requests.length]
      this.requests.push(request)
      const outcome =
        error === undefined
          ? Effect.sync(() => (typeof reply === "function" ? reply(request) : reply))
          : Effect.fail(error)
      return latency === undefined ? outcome : Effect.delay(outcome, latency)
    })

  override commit(): Effect.Effect<Provider> {
    return Effect.succeed(this)
  }
}
