/** A vendor: a tag class that is also a way to make its provider in place. */
import type * as HttpClient from "@effect/platform/HttpClient"
import { type ConfigError, Context, type Effect, Layer } from "effect"
import type { Provider } from "./Provider.ts"

/** A provider that is also the effect that yields it. */
export type Made = Provider & Effect.Effect<Provider>

/** A function that builds a vendor's provider over the `HttpClient` in context. */
export type Make<Options> = (options: Options) => Effect.Effect<Made, ConfigError.ConfigError, HttpClient.HttpClient>

/** The class of a vendor. It is the tag, so an effect that needs the vendor's layer and yields its provider. */
export interface VendorTag<Self, Id extends string, Options>
  extends Context.TagClass<Self, `llmfuse/provider/${Id}`, Provider> {
  /** The provider in place. Fails with a `ConfigError` if an option is wrong or the key is missing. */
  readonly make: Make<Options>
  /** The provider as a layer. Fails with a `ConfigError` if an option is wrong or the key is missing. */
  readonly layer: (options: Options) => Layer.Layer<Self, ConfigError.ConfigError, HttpClient.HttpClient>
}

/** A class to extend: `class Groq extends VendorTag.define<Groq>()("groq", make) {}`. */
export const define =
  <Self>() =>
  <const Id extends string, Options>(id: Id, make: Make<Options>): VendorTag<Self, Id, Options> => {
    const Tag = Context.Tag(`llmfuse/provider/${id}`)<Self, Provider>()
    return Object.assign(Tag, { make, layer: (options: Options) => Layer.effect(Tag, make(options)) })
  }
