/** A provider without a network, for tests: fails as it is told, then replies; counts and records. */
import { type Duration, Effect, Effectable, Stream } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { ChatRequest } from "../model/ChatRequest.ts"
import type { ProviderAnswer } from "../model/ChatResponse.ts"
import type { EmbeddingBatch, ProviderEmbeddings } from "../model/Embedding.ts"
import type { ProviderError } from "../model/LlmError.ts"
import type { Parts, Provider, Settings } from "../provider/Provider.ts"

/** What a fake stream does next: hand over a part, wait by the clock of the program, or fail. */
export type FakeStep = string | StreamPart | { readonly wait: Duration.DurationInput } | ProviderError

/** How a fake behaves. */
export interface Options extends Omit<Settings, "name"> {
  /** The answer once the errors are used up; a function sees the request. Default: `"ok"`. */
  readonly reply?: string | ProviderAnswer | ((request: ChatRequest) => string | ProviderAnswer) | undefined
  /** Errors of the first calls, one each. Default: none. */
  readonly errors?: ReadonlyArray<ProviderError> | undefined
  /**
   * What the first streamed calls do once they have begun to respond, one script each. Default: the reply, word by word.
   */
  readonly streams?: ReadonlyArray<ReadonlyArray<FakeStep>> | undefined
  /** The vectors of a batch. Default: none; the fake cannot embed. */
  readonly embed?: ((batch: EmbeddingBatch) => ProviderEmbeddings) | undefined
  /** See `Provider`. */
  readonly embeddingSpace?: string | undefined
  /** See `Provider`. */
  readonly maxEmbeddingInputs?: number | undefined
  /** How long each call takes (a streamed one: until it responds), by the clock of the program (`TestClock` in a test). Default: no time. */
  readonly latency?: Duration.DurationInput | undefined
}

/** A fake provider. It is a provider, and the effect that yields itself. */
export class FakeProvider extends Effectable.Class<Provider> implements Provider {
  readonly name: string
  readonly model: string | undefined
  readonly vendor: string | undefined
  readonly limits: Settings["limits"]
  readonly timeout: Settings["timeout"]
  readonly capabilities: Settings["capabilities"]
  readonly embeddingSpace: string | undefined
  readonly maxEmbeddingInputs: number | undefined
  readonly embed: Provider["embed"]
  /** The batches embedded so far, oldest first. */
  readonly batches: Array<EmbeddingBatch> = []
  /** The requests so far, oldest first. */
  readonly requests: Array<ChatRequest> = []
  readonly #options: Options

  private constructor(name: string, options: Options) {
    super()
    this.name = name
    this.model = options.model
    this.vendor = options.vendor
    this.limits = options.limits
    this.timeout = options.timeout
    this.capabilities = options.capabilities
    this.embeddingSpace = options.embeddingSpace
    this.maxEmbeddingInputs = options.maxEmbeddingInputs
    const { embed } = options
    this.embed = embed === undefined ? undefined : (batch) => this.#embed(batch, embed)
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

  /** How many streamed calls have begun to respond, and how many of those have ended. */
  readonly streamed = { opened: 0, closed: 0 }

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

  #embed(batch: EmbeddingBatch, embed: (batch: EmbeddingBatch) => ProviderEmbeddings) {
    return Effect.suspend(() => {
      const { errors = [], latency } = this.#options
      const error = errors[this.batches.length]
      this.batches.push(batch)
      const outcome = error === undefined ? Effect.sync(() => embed(batch)) : Effect.fail(error)
      return latency === undefined ? outcome : Effect.delay(outcome, latency)
    })
  }

  readonly stream: NonNullable<Provider["stream"]> = (request) =>
    Effect.flatMap(this.complete(request), (reply) => {
      const script = this.#options.streams?.[this.streamed.opened]
      const closing = Effect.sync(() => {
        this.streamed.closed += 1
      })
      const opening = Effect.sync(() => {
        this.streamed.opened += 1
        return script === undefined ? wordByWord(reply) : play(script)
      })
      return Effect.acquireRelease(opening, () => closing)
    })

  override commit(): Effect.Effect<Provider> {
    return Effect.succeed(this)
  }
}

const wordByWord = (reply: string | ProviderAnswer): Parts => {
  const { text, reasoning, toolCalls = [], ...end } = typeof reply === "string" ? { text: reply } : reply
  const words = text.split(/(?<=\s)(?=\S)/)
  return play([
    ...(reasoning === undefined ? [] : [{ _tag: "ReasoningDelta", text: reasoning } as const]),
    ...words,
    ...toolCalls.map((toolCall) => ({ _tag: "ToolCall", ...toolCall }) as const),
    { _tag: "End", ...end }
  ])
}

const play = (script: ReadonlyArray<FakeStep>): Parts =>
  Stream.flatMap(
    Stream.fromIterable(script).pipe(Stream.rechunk(1)),
    (step): Parts =>
      step instanceof Error
        ? Stream.fail(step)
        : typeof step === "object" && "wait" in step
          ? Stream.drain(Stream.fromEffect(Effect.sleep(step.wait)))
          : Stream.succeed(step)
  )
