import { assert, describe, it } from "@effect/vitest"
import { Effect, HashMap, Logger, LogLevel } from "effect"
import { ContentPolicyError, LlmFuse, type Provider } from "llmfuse"
import { FakeProvider } from "llmfuse/testing"
import { outage } from "../errors.ts"

interface Line {
  readonly level: string
  readonly message: string
  readonly annotations: Record<string, unknown>
}

/** A provider with a bug. */
const broken: Provider.Provider = { name: "broken", complete: () => Effect.die(new TypeError("secret prompt")) }

/** Asks once, with a logger that keeps its lines. */
const logged = (
  providers: ReadonlyArray<FakeProvider | Provider.Provider>,
  options: { readonly logs?: boolean; readonly minimum?: LogLevel.LogLevel } = {}
) =>
  Effect.gen(function* () {
    const lines: Array<Line> = []
    const logger = Logger.make(({ logLevel, message, annotations }) => {
      lines.push({
        level: logLevel.label,
        message: String(Array.isArray(message) ? message[0] : message),
        annotations: Object.fromEntries(HashMap.toEntries(annotations))
      })
    })
    const { logs = true, minimum = LogLevel.Info } = options
    const program = Effect.flatMap(LlmFuse, (fuse) => Effect.exit(fuse.complete("secret prompt"))).pipe(
      Effect.provide(LlmFuse.layer({ providers, logs, retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } }))
    )
    yield* program.pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Logger.withMinimumLogLevel(minimum)
    )
    return lines
  })

describe("logs", () => {
  it.effect("are silent when all goes well", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* logged([FakeProvider.make("groq")]), [])
    })
  )

  it.effect("warn of circuits and failovers, with the id of the call and the provider", () =>
    Effect.gen(function* () {
      const lines = yield* logged([
        FakeProvider.make("groq", { errors: outage("groq", 1) }),
        FakeProvider.make("gemini")
      ])

      assert.deepStrictEqual(
        lines.map(({ level, message }) => `${level} ${message}`),
        [
          "WARN groq: circuit opened (consecutive-failures): groq: overloaded (HTTP 503)",
          "WARN groq: failed over to gemini: groq: overloaded (HTTP 503)"
        ]
      )
      const [opened, failedOver] = lines
      assert.deepInclude(opened?.annotations, { provider: "groq", error: "OverloadedError", event: "CircuitOpened" })
      assert.match(String(failedOver?.annotations.callId), /-1$/)
      assert.strictEqual(opened?.annotations.callId, failedOver?.annotations.callId)
    })
  )

  it.effect("hold one error for a failed call, however many attempts it made", () =>
    Effect.gen(function* () {
      const down = (name: string) => FakeProvider.make(name, { errors: outage(name, 9) })
      const lines = yield* logged([down("groq"), down("gemini")])

      const errors = lines.filter(({ level }) => level === "ERROR")
      assert.deepStrictEqual(
        errors.map(({ message }) => message),
        ["call failed: no provider answered: groq: overloaded (HTTP 503); gemini: overloaded (HTTP 503)"]
      )
    })
  )

  it.effect("tell of every attempt when debugging, and never of prompts and answers", () =>
    Effect.gen(function* () {
      const lines = yield* logged([FakeProvider.make("groq", { reply: "secret answer" })], { minimum: LogLevel.Debug })

      assert.deepStrictEqual(
        lines.map(({ annotations }) => annotations.event),
        ["CallStarted", "AttemptStarted", "AttemptSucceeded", "CallSucceeded"]
      )
      assert.notInclude(JSON.stringify(lines), "secret")
    })
  )

  it.effect("quote neither a refusal nor an answer", () =>
    Effect.gen(function* () {
      const refusal = new ContentPolicyError({ provider: "groq", stage: "response", message: "groq: secret refusal" })
      const lines = yield* logged([FakeProvider.make("groq", { errors: [refusal] })], { minimum: LogLevel.Debug })

      assert.include(lines.at(-1)?.message, "groq: blocked by the content policy (response)")
      assert.notInclude(JSON.stringify(lines), "secret")
    })
  )

  it.effect("name the kind of a defect that ended a call, as an error", () =>
    Effect.gen(function* () {
      const lines = yield* logged([broken])

      assert.deepStrictEqual(
        lines.map(({ level, message }) => `${level} ${message}`),
        ["ERROR call died of a defect: TypeError"]
      )
      assert.strictEqual(lines[0]?.annotations.error, "TypeError")
    })
  )

  it.effect("are off unless asked for", () =>
    Effect.gen(function* () {
      const down = FakeProvider.make("groq", { errors: outage("groq", 9) })

      assert.deepStrictEqual(yield* logged([down], { logs: false }), [])
    })
  )
})
