/** LlmFuse as a system under test. */
import { readFileSync } from "node:fs"
import { type ChatResponse, FuseClient, OpenAiCompatible } from "../../src/index.ts"
import { configuration } from "./configuration.ts"
import type { System } from "./system.ts"

/** `FuseClient.stream`, read as an interface would show it: what `Restarted` voids is taken back. */
export const llmFuse: System = {
  name: "LlmFuse",
  version: JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version,
  ask: ({ primary, fallback, timeScale }) => {
    const client = FuseClient.make({
      providers: [
        OpenAiCompatible.make({ name: "primary", ...primary }),
        OpenAiCompatible.make({ name: "fallback", ...fallback })
      ],
      ...configuration(timeScale)
    })
    return {
      stream: async (prompt, signal) => {
        let text = ""
        let restarts = 0
        let response: ChatResponse | undefined
        for await (const event of client.stream(prompt, { signal })) {
          if (event._tag === "TextDelta") text += event.text
          if (event._tag === "Finished") response = event.response
          if (event._tag === "Restarted") {
            text = ""
            restarts++
          }
        }
        if (response === undefined) throw new Error("the stream ended without Finished")
        return { text, restarts, model: response.model, usage: response.usage }
      },
      close: () => client.close()
    }
  }
}
