/** The vendors by name: each is a tag, a layer, and a way to make a provider in place. */
import * as OpenAiCompatible from "./OpenAiCompatible.ts"

export { AzureOpenAi, type AzureOptions } from "./AzureOpenAi.ts"

/** Groq. Key: `GROQ_API_KEY`. */
export class Groq extends OpenAiCompatible.Service<Groq>()({
  name: "groq",
  baseUrl: "https://api.groq.com/openai/v1",
  apiKey: "GROQ_API_KEY",
  maxTokensField: "max_completion_tokens",
  maxStops: 4,
  files: false,
  efforts: ["none", "low", "medium", "high"],
  embeddings: false
}) {}

/** Google's Gemini by its OpenAI-compatible endpoint. Key: `GEMINI_API_KEY`. */
export class Gemini extends OpenAiCompatible.Service<Gemini>()({
  name: "gemini",
  baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
  apiKey: "GEMINI_API_KEY",
  seedField: false,
  maxStops: 5,
  opaque: "extra_content",
  embeddings: { maxInputs: 100 }
}) {}

/** OpenAI. Key: `OPENAI_API_KEY`. */
export class OpenAi extends OpenAiCompatible.Service<OpenAi>()({
  name: "openai",
  baseUrl: "https://api.openai.com/v1",
  apiKey: "OPENAI_API_KEY",
  maxTokensField: "max_completion_tokens",
  maxStops: 4,
  metadata: true,
  toolIds: "forty",
  prefill: false,
  embeddings: { maxInputs: 2048 }
}) {}

/** Mistral. Key: `MISTRAL_API_KEY`. */
export class Mistral extends OpenAiCompatible.Service<Mistral>()({
  name: "mistral",
  baseUrl: "https://api.mistral.ai/v1",
  apiKey: "MISTRAL_API_KEY",
  seedField: "random_seed",
  streamOptions: false,
  requiredWord: "any",
  toolIds: "nine",
  files: "document_url",
  userAfterTool: false,
  prefill: "prefix",
  embeddings: { dimensionsField: "output_dimension" }
}) {}

/** DeepSeek. Key: `DEEPSEEK_API_KEY`. */
export class DeepSeek extends OpenAiCompatible.Service<DeepSeek>()({
  name: "deepseek",
  baseUrl: "https://api.deepseek.com",
  apiKey: "DEEPSEEK_API_KEY",
  seedField: false,
  maxStops: 16,
  parallelToolCalls: false,
  jsonSchema: "mode",
  reasoning: "toggle",
  turns: "merged",
  prefill: false,
  opaque: "reasoning_content",
  embeddings: false
}) {}

/** xAI. Key: `XAI_API_KEY`. */
export class Xai extends OpenAiCompatible.Service<Xai>()({
  name: "xai",
  baseUrl: "https://api.x.ai/v1",
  apiKey: "XAI_API_KEY",
  efforts: ["low", "medium", "high"],
  embeddings: false
}) {}

/** OpenRouter. Key: `OPENROUTER_API_KEY`. */
export class OpenRouter extends OpenAiCompatible.Service<OpenRouter>()({
  name: "openrouter",
  baseUrl: "https://openrouter.ai/api/v1",
  apiKey: "OPENROUTER_API_KEY",
  files: "file-or-url",
  reasoning: "object",
  opaque: "reasoning_details"
}) {}

/** Together. Key: `TOGETHER_API_KEY`. */
export class Together extends OpenAiCompatible.Service<Together>()({
  name: "together",
  baseUrl: "https://api.together.ai/v1",
  apiKey: "TOGETHER_API_KEY",
  parallelToolCalls: false,
  strictSchemas: false,
  efforts: ["low", "medium", "high"],
  embeddings: { encodingFormat: false }
}) {}

/** Fireworks. Key: `FIREWORKS_API_KEY`. */
export class Fireworks extends OpenAiCompatible.Service<Fireworks>()({
  name: "fireworks",
  baseUrl: "https://api.fireworks.ai/inference/v1",
  apiKey: "FIREWORKS_API_KEY",
  maxStops: 4,
  strictSchemas: false,
  efforts: ["none", "low", "medium", "high"]
}) {}

/** Cerebras. Key: `CEREBRAS_API_KEY`. */
export class Cerebras extends OpenAiCompatible.Service<Cerebras>()({
  name: "cerebras",
  baseUrl: "https://api.cerebras.ai/v1",
  apiKey: "CEREBRAS_API_KEY",
  maxTokensField: "max_completion_tokens",
  maxStops: 4,
  files: false,
  efforts: ["none", "low", "medium", "high"],
  embeddings: false
}) {}

/** Ollama on this machine; no key. */
export class Ollama extends OpenAiCompatible.Service<Ollama>()({
  name: "ollama",
  baseUrl: "http://localhost:11434/v1",
  toolChoice: false,
  parallelToolCalls: false,
  images: "data",
  files: false,
  strictSchemas: false,
  efforts: ["none", "low", "medium", "high"]
}) {}

/** LM Studio on this machine; no key. */
export class LmStudio extends OpenAiCompatible.Service<LmStudio>()({
  name: "lmstudio",
  baseUrl: "http://localhost:1234/v1",
  toolChoice: "words",
  parallelToolCalls: false,
  images: "data",
  files: false,
  jsonMode: false,
  strictSchemas: false,
  turns: "merged",
  embeddings: { dimensionsField: false }
}) {}

/** vLLM on this machine; no key. */
export class Vllm extends OpenAiCompatible.Service<Vllm>()({
  name: "vllm",
  baseUrl: "http://localhost:8000/v1",
  files: false,
  strictSchemas: false,
  turns: "merged",
  prefill: "continue"
}) {}

/** llama.cpp's server on this machine; no key. */
export class LlamaCpp extends OpenAiCompatible.Service<LlamaCpp>()({
  name: "llamacpp",
  baseUrl: "http://localhost:8080/v1",
  toolChoice: "words",
  files: false,
  strictSchemas: false,
  reasoning: false,
  turns: "merged",
  embeddings: { dimensionsField: false }
}) {}
