/** What tests of spans share: a run whose spans end in OpenTelemetry's in-memory exporter. */
import * as Resource from "@effect/opentelemetry/Resource"
import * as OtelTracer from "@effect/opentelemetry/Tracer"
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor
} from "@opentelemetry/sdk-trace-base"
import { Effect, Layer } from "effect"

/** Gives a run a tracer, and the spans that it has exported, in the order of their ends. */
export const exportedSpans = () => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracing = OtelTracer.layerWithoutOtelTracer.pipe(
    Layer.provide(Layer.succeed(OtelTracer.OtelTracer, provider.getTracer("test"))),
    Layer.provide(Resource.layer({ serviceName: "test" }))
  )
  const call = (): ReadableSpan | undefined =>
    exporter.getFinishedSpans().find(({ parentSpanContext }) => !parentSpanContext)
  return {
    traced: <A, E>(effect: Effect.Effect<A, E>) => Effect.provide(effect, tracing),
    spans: () => exporter.getFinishedSpans(),
    /** The attributes of the first call. */
    ofCall: () => call()?.attributes ?? {},
    /** The attributes of the attempts. */
    ofAttempts: () =>
      exporter.getFinishedSpans().flatMap(({ name, attributes }) => (name.startsWith("attempt ") ? [attributes] : [])),
    /** The events of the first call. */
    eventsOfCall: () => (call()?.events ?? []).map(({ name, attributes }) => [name, attributes]),
    /** Everything that can be read in the spans. */
    written: () =>
      JSON.stringify(
        exporter
          .getFinishedSpans()
          .map(({ name, attributes, events, status, links, resource }) => [
            name,
            attributes,
            events,
            status,
            links,
            resource.attributes
          ])
      )
  }
}
