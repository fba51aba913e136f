/**
 * The systems that the wall of faults is also run on, each as `{ name, version, ask }`.
 *
 * `ask({ primary: { baseUrl, model }, fallback: { baseUrl, model }, timeouts: { firstTokenMillis, totalMillis } })` makes a
 * client `{ stream(prompt, signal), close() }`. `stream` resolves with `{ text, model, usage }`, where `text` is every
 * piece of text that the system handed out, in order, and rejects where the system reports an error.
 */
import "./abort-signal.mjs"
import { installRivals } from "./installed.mjs"

installRivals()

const { openaiNode } = await import("./openai-node.mjs")
const { ai } = await import("./ai.mjs")
const { aiFallback } = await import("./ai-fallback.mjs")
const { aiRetry } = await import("./ai-retry.mjs")
const { langchain } = await import("./langchain.mjs")
const { effectPlan } = await import("./effect-plan.mjs")

export const systems = [openaiNode, ai, aiFallback, aiRetry, langchain, effectPlan]
