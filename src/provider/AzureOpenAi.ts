/** OpenAI's models on Azure: the same wire, at an address for each deployment. */
import { Config, Effect } from "effect"
import type * as Endpoint from "./Endpoint.ts"
import * as OpenAiCompatible from "./OpenAiCompatible.ts"
import * as VendorTag from "./VendorTag.ts"

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
    const { model, embeddingModel, apiVersion = "2024-10-21" } = options
    const resource = options.baseUrl ?? (yield* Config.string("AZURE_OPENAI_ENDPOINT"))
    const deployed = (name: string) =>
      `${resource.replace(/\/+$/, "")}/openai/deployments/${encodeURIComponent(name)}?api-version=${apiVersion}`
    const embeddingBaseUrl = embeddingModel === undefined ? undefined : deployed(embeddingModel)
    return yield* OpenAiCompatible.makeFor(azure, { ...options, baseUrl: deployed(model), embeddingBaseUrl })
  })

const azure = {
  name: "azure",
  baseUrl: "",
  apiKey: "AZURE_OPENAI_API_KEY",
  keyHeader: "api-key",
  maxTokensField: "max_completion_tokens",
  maxStops: 4,
  toolIds: "forty",
  prefill: false,
  embeddings: { maxInputs: 2048 }
} as const

/** OpenAI's models on Azure, one deployment each. Key: `AZURE_OPENAI_API_KEY`, sent as `api-key`. */
export class AzureOpenAi extends VendorTag.define<AzureOpenAi>()("azure", makeAzure) {}
