/**
 * Effect: `Stream.withExecutionPlan` over a chat model that is a service with a layer per provider.
 *
 * The provider is read as `@effect/ai-openai` reads its own (which speaks the Responses API only): `HttpClient`,
 * `filterStatusOk`, the `Sse` channel of `@effect/experimental`, and a schema per event.
 *
 * Budget: three attempts of the primary where the error is transient, 500 ms and then 1 s apart, then the fallback, once.
 * `preventFallbackOnPartialStream` is on.
 * Timeouts: `Stream.timeoutFail` limits the wait for every event, the first included, per attempt; `Effect.timeout`
 * limits the whole call.
 */
import * as Sse from "@effect/experimental/Sse"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Cause, Context, Effect, ExecutionPlan, Layer, ManagedRuntime, Schedule, Schema, Stream } from "effect"
import { versionOf } from "./installed.mjs"

const Event = Schema.parseJson(
  Schema.Struct({
    model: Schema.String,
    choices: Schema.Array(
      Schema.Struct({ delta: Schema.Struct({ content: Schema.optional(Schema.NullOr(Schema.String)) }) })
    ),
    usage: Schema.optional(
      Schema.NullOr(Schema.Struct({ prompt_tokens: Schema.Number, completion_tokens: Schema.Number }))
    )
  })
)

class ChatModel extends Context.Tag("ChatModel")() {
  static layer({ baseUrl, model }, { firstTokenMillis }) {
    const make = Effect.map(HttpClient.HttpClient, (http) => {
      const client = http.pipe(
        HttpClient.mapRequest(HttpClientRequest.prependUrl(baseUrl)),
        HttpClient.mapRequest(HttpClientRequest.bearerToken("none")),
        HttpClient.filterStatusOk
      )
      return {
        stream: (prompt) =>
          HttpClientRequest.post("/chat/completions").pipe(
            HttpClientRequest.bodyUnsafeJson({
              model,
              messages: [{ role: "user", content: prompt }],
              stream: true,
              stream_options: { include_usage: true }
            }),
            client.execute,
            HttpClientResponse.stream,
            Stream.decodeText(),
            Stream.pipeThroughChannel(Sse.makeChannel()),
            Stream.takeWhile((event) => event.data !== "[DONE]"),
            Stream.mapEffect((event) => Schema.decode(Event)(event.data)),
            Stream.timeoutFail(() => new Cause.TimeoutException("no event in time"), firstTokenMillis)
          )
      }
    })
    return Layer.effect(ChatModel, make)
  }
}

const transientStatus = [408, 429, 500, 502, 503, 504]

/** What Effect itself calls transient, in `HttpClient.retryTransient`; but a late first token goes to the fallback at once. */
const isTransient = (error) =>
  (error._tag === "RequestError" && error.reason === "Transport") ||
  (error._tag === "ResponseError" && transientStatus.includes(error.response.status))

export const effectPlan = {
  name: "Effect ExecutionPlan",
  version: versionOf("effect"),
  ask: ({ primary, fallback, timeouts }) => {
    const runtime = ManagedRuntime.make(FetchHttpClient.layer)
    const plan = ExecutionPlan.make(
      {
        provide: ChatModel.layer(primary, timeouts),
        attempts: 3,
        schedule: Schedule.exponential("500 millis"),
        while: isTransient
      },
      { provide: ChatModel.layer(fallback, timeouts) }
    )
    return {
      stream: (prompt, signal) => {
        const answer = { text: "" }
        const events = Stream.unwrap(Effect.map(ChatModel, (model) => model.stream(prompt)))
        const answered = events.pipe(
          Stream.withExecutionPlan(plan, { preventFallbackOnPartialStream: true }),
          Stream.runForEach((event) =>
            Effect.sync(() => {
              answer.text += event.choices[0]?.delta.content ?? ""
              answer.model = event.model
              answer.usage = event.usage ?? answer.usage
            })
          ),
          Effect.timeout(timeouts.totalMillis),
          Effect.as(answer)
        )
        return runtime.runPromise(answered, { signal })
      },
      close: () => runtime.dispose()
    }
  }
}
