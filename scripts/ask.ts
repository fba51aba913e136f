/** Asks a question and shows how the answer was come by: `npm start -- "Your question"`. */
import { parseArgs } from "node:util"
import { type ClientProvider, ConfigurationError, FuseClient, isLlmFuseError } from "../src/index.ts"
import { readDotEnv } from "./demo/dotEnv.ts"
import { failureLines } from "./demo/failure.ts"
import { demonstrateOutage } from "./demo/outage.ts"
import { beForMachines, printAnswer, say } from "./demo/output.ts"
import { makeTrail } from "./demo/trail.ts"
import { keyVariables, providersFrom } from "./demo/vendors.ts"

const usage = `Usage: npm start -- "Your question"

Asks the providers whose API keys are set, in the order of this list, until one answers:
  ${keyVariables.join("\n  ")}
Keys are read from the environment, then from .env in the current folder. GROQ_MODEL, GEMINI_MODEL, ... choose
another model, GROQ_BASE_URL, GEMINI_BASE_URL, ... another address. Without any key, embedded providers show an outage.

The answer goes to stdout, the trail of attempts to stderr; npm adds lines of its own to stdout unless it is silent:
  npm --silent start -- "Your question" > answer.txt
With --json everything goes to stdout as lines of JSON: each event as it happens, then the answer.
Exit codes: 0 answered, 1 nobody answered, 2 wrong usage.`

/** What the arguments ask for. */
type Command =
  | { readonly _tag: "Ask"; readonly question: string; readonly isForMachines: boolean }
  | { readonly _tag: "Help" }
  | { readonly _tag: "Wrong"; readonly reason: string }

const readArguments = (args: Array<string>): Command => {
  try {
    const help = { type: "boolean", short: "h" } as const
    const json = { type: "boolean" } as const
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { help, json } })
    const [question = "", ...others] = positionals
    if (values.help) return { _tag: "Help" }
    if (question.trim() === "") return { _tag: "Wrong", reason: "There is no question." }
    if (others.length > 0) return { _tag: "Wrong", reason: "One question at a time: put it in quotes." }
    return { _tag: "Ask", question, isForMachines: values.json === true }
  } catch (error) {
    return { _tag: "Wrong", reason: `${(error as Error).message.split(". ", 1)[0]}.` }
  }
}

/** Asks the providers whose keys are set. */
const ask = async (question: string, providers: ReadonlyArray<ClientProvider>, signal: AbortSignal): Promise<void> => {
  await using client = FuseClient.make({ providers, captureContent: true, onEvent: makeTrail() })
  printAnswer(await client.complete(question, { signal }))
}

/** Answers the question and returns the exit code. */
const answer = async (question: string, signal: AbortSignal): Promise<number> => {
  try {
    readDotEnv()
    const providers = providersFrom(process.env)
    await (providers.length === 0 ? demonstrateOutage(question, signal) : ask(question, providers, signal))
    return 0
  } catch (error) {
    if (signal.aborted) return 130
    if (error instanceof ConfigurationError) say(error.message)
    else if (isLlmFuseError(error)) say(["", "Nobody answered:", ...failureLines(error)].join("\n"))
    else throw error
    return 1
  }
}

const main = async (args: Array<string>): Promise<number> => {
  const command = readArguments(args)
  switch (command._tag) {
    case "Help":
      console.log(usage)
      return 0
    case "Wrong":
      say(`${command.reason}\nUsage: npm start -- "Your question"   (--help tells more)`)
      return 2
    case "Ask": {
      if (command.isForMachines) beForMachines()
      const stop = new AbortController()
      process.once("SIGINT", () => stop.abort())
      return answer(command.question, stop.signal)
    }
  }
}

process.exitCode = await main(process.argv.slice(2))
