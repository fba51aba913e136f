/** The vendors that the demo knows, in the order in which they are asked. */
import {
  Anthropic,
  Cerebras,
  type ClientProvider,
  DeepSeek,
  Fireworks,
  Gemini,
  Groq,
  Mistral,
  OpenAi,
  OpenRouter,
  Together,
  Xai
} from "../../src/index.ts"

interface Row {
  /** Makes the provider; it reads its key from the environment itself. */
  readonly Vendor: {
    readonly make: (options: { readonly model: string; readonly baseUrl?: string | undefined }) => ClientProvider
  }
  /** What its variables begin with: `GROQ` for `GROQ_API_KEY`, `GROQ_MODEL` and `GROQ_BASE_URL`. */
  readonly prefix: string
  /** The model unless the environment names another. */
  readonly model: string
}

// Model ids change: these are of November 2026, small and fast ones where the vendor has them. Where one is gone the
// trail shows a ModelNotFoundError, and `GROQ_MODEL=...` names its successor.
const vendors: ReadonlyArray<Row> = [
  { Vendor: Groq, prefix: "GROQ", model: "openai/gpt-oss-120b" },
  { Vendor: Gemini, prefix: "GEMINI", model: "gemini-3.8-flash" },
  { Vendor: OpenAi, prefix: "OPENAI", model: "gpt-6.1-terra" },
  { Vendor: Anthropic, prefix: "ANTHROPIC", model: "claude-haiku-5-5" },
  { Vendor: Mistral, prefix: "MISTRAL", model: "mistral-small-latest" },
  { Vendor: DeepSeek, prefix: "DEEPSEEK", model: "deepseek-flash" },
  { Vendor: Xai, prefix: "XAI", model: "grok-4.6" },
  { Vendor: OpenRouter, prefix: "OPENROUTER", model: "openrouter/auto" },
  { Vendor: Together, prefix: "TOGETHER", model: "openai/gpt-oss-120b" },
  { Vendor: Fireworks, prefix: "FIREWORKS", model: "accounts/fireworks/models/gpt-oss-120b" },
  { Vendor: Cerebras, prefix: "CEREBRAS", model: "gpt-oss-120b" }
]

/** The variables that hold the keys. */
export const keyVariables: ReadonlyArray<string> = vendors.map(({ prefix }) => `${prefix}_API_KEY`)

/** The providers whose keys are in the environment; a blank value counts as none. */
export const providersFrom = (env: NodeJS.ProcessEnv): ReadonlyArray<ClientProvider> => {
  const valueOf = (variable: string) => env[variable]?.trim() || undefined
  return vendors
    .filter(({ prefix }) => valueOf(`${prefix}_API_KEY`) !== undefined)
    .map(({ Vendor, prefix, model }) =>
      Vendor.make({ model: valueOf(`${prefix}_MODEL`) ?? model, baseUrl: valueOf(`${prefix}_BASE_URL`) })
    )
}
