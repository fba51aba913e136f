/** The vendors by name: each is a tag, a layer, and a way to make a provider in place. */
import { Config, Effect } from "effect"
import type * as Endpoint from "./Endpoint.ts"
import * as OpenAiCompatible from "./OpenAiCompatible.ts"
import * as VendorTag from "./VendorTag.ts"

/** Groq. Key: `GROQ_API_KEY`. */
export class Groq extends OpenAiCompatible.Service<Groq>()({
  name: "groq",
  baseUrl: "https://api.groq.com/openai/v1",
  apiKey: "GROQ_API_KEY"
}) {}

/** Google's Gemini by its OpenAI-compatible endpoint. Key: `GEMINI_API_KEY`. */
export class Gemini extends OpenAiCompatible.Service<Gemini>()({
  name: "gemini",
  baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
  apiKey: "GEMINI_API_KEY"
}) {}

/** OpenAI. Key: `OPENAI_API_KEY`. */
export class OpenAi extends OpenAiCompatible.Service<OpenAi>()({
  name: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKey: "OPENAI_API_KEY",
  maxTokensField: "max_completion_tokens"
}) {}

/** Mistral. Key: `MISTRAL_API_KEY`. */
export class Mistral extends OpenAiCompatible.Service<Mistral>()({
  name: "mistral",
  baseUrl: "https://api.mistral.ai/v1",
  apiKey: "MISTRAL_API_KEY",
  seedField: "random_seed",
  streamOptions: false
}) {}

/** DeepSeek. Key: `DEEPSEEK_API_KEY`. */
export class DeepSeek extends OpenAiCompatible.Service<DeepSeek>()({
  name: "deepseek",
  baseUrl: "https://api.deepseek.com",
  apiKey: "DEEPSEEK_API_KEY"
}) {}

/** xAI. Key: `XAI_API_KEY`. */
export class Xai extends OpenAiCompatible.Service<Xai>()({
  name: "xai",
  baseUrl: "https://api.x.ai/v1",
  apiKey: "XAI_API_KEY"
}) {}

/** OpenRouter. Key: `OPENROUTER_API_KEY`. */
export class OpenRouter extends OpenAiCompatible.Service<OpenRouter>()({
  name: "openrouter",
  baseUrl: "https://openrouter.ai/api/v1",
  apiKey: "OPENROUTER_API_KEY"
}) {}

/** Together. Key: `TOGETHER_API_KEY`. */
export class Together extends OpenAiCompatible.Service<Together>()({
  name: "together",
  baseUrl: "https://api.together.ai/v1",
  apiKey: "TOGETHER_API_KEY"
}) {}

/** Fireworks. Key: `FIREWORKS_API_KEY`. */
export class Fireworks extends OpenAiCompatible.Service<Fireworks>()({
  name: "fireworks",
  baseUrl: "https://api.fireworks.ai/inference/v1",
  apiKey: "FIREWORKS_API_KEY"
}) {}

/** Cerebras. Key: `CEREBRAS_API_KEY`. */
export class Cerebras extends OpenAiCompatible.Service<Cerebras>()({
  name: "cerebras",
  baseUrl: "https://api.cerebras.ai/v1",
  apiKey: "CEREBRAS_API_KEY"
}) {}

/** Ollama on this machine; no key. */
export class Ollama extends OpenAiCompatible.Service<Ollama>()({
  name: "ollama",
  baseUrl: "http://localhost:11434/v1"
}) {}

/** LM Studio on this machine; no key. */
export class LmStudio extends OpenAiCompatible.Service<LmStudio>()({
  name: "lmstudio",
  baseUrl: "http://localhost:1234/v1"
}) {}

/** vLLM on this machine; no key. */
export class Vllm extends OpenAiCompatible.Service<Vllm>()({
  name: "vllm",
  baseUrl: "http://localhost:8000/v1"
}) {}

/** llama.cpp's server on this machine; no key. */
export class LlamaCpp extends OpenAiCompatible.Service<LlamaCpp>()({
  name: "llamacpp",
  baseUrl: "http://localhost:8080/v1"
}) {}

/** What Azure can be told beside what every vendor can. */
export interface AzureOptions extends Endpoint.VendorOptions {
  /** The name of the deployment, which stands for the model. */
  readonly model: string
  /** The resource: `https://{resource}.openai.azure.com`. Default: read from `AZURE_OPENAI_ENDPOINT`. */
  readonly baseUrl?: string | undefined
  /** The version of Azure's interface. Default: `2024-10-21`. */
  readonly apiVersion?: string | undefined
}

const makeAzure: VendorTag.Make<AzureOptions> = (options) =>
  Effect.gen(function* () {
    const resource = options.baseUrl ?? (yield* Config.string("AZURE_OPENAI_ENDPOINT"))
    const path = `openai/deployments/${encodeURIComponent(options.model)}`
    const baseUrl = `${resource.replace(/\/+$/, "")}/${path}?api-version=${options.apiVersion ?? "2024-10-21"}`
    return yield* OpenAiCompatible.makeFor(azure, { ...options, baseUrl })
  })

const azure = {
  name: "azure",
  baseUrl: "",
  apiKey: "AZURE_OPENAI_API_KEY",
  keyHeader: "api-key",
  maxTokensField: "max_completion_tokens"
} as const

/** OpenAI's models on Azure, one deployment each. Key: `AZURE_OPENAI_API_KEY`, sent as `api-key`. */
export class AzureOpenAi extends VendorTag.define<AzureOpenAi>()("azure", makeAzure) {}
