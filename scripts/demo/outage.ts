/** An outage in four acts, on embedded providers. */
import { setTimeout as sleep } from "node:timers/promises"
import { FuseClient, OpenAiCompatible } from "../../src/index.ts"
import { answering, limitingOnce, overloaded, startEmbedded } from "./embedded.ts"
import { paint, printAnswer, say } from "./output.ts"
import { makeTrail } from "./trail.ts"
import { keyVariables } from "./vendors.ts"

const canned = answering("This answer is canned: embedded providers hold no model. Set an API key to ask a real one.")

const resetMillis = 3000

/** Asks the same question four times while the first of two providers has an outage and recovers from it. */
export const demonstrateOutage = async (question: string, signal: AbortSignal): Promise<void> => {
  say(
    `No API key found in the environment or in .env. Looked for:
  ${keyVariables.slice(0, 6).join(" ")}
  ${keyVariables.slice(6).join(" ")}

So two providers are embedded in this demo, alpha and beta: real HTTP on 127.0.0.1, but canned answers, not a model's.`
  )
  await using embedded = await startEmbedded({ alpha: overloaded, beta: canned })
  const provider = (name: string) => OpenAiCompatible.make({ name, baseUrl: embedded.baseUrl(name), model: "canned" })

  await using client = FuseClient.make({
    providers: [provider("alpha"), provider("beta")],
    retry: { baseDelay: "400 millis" },
    breaker: { failureThreshold: 2, resetTimeout: resetMillis },
    onEvent: makeTrail()
  })
  const act = async (title: string) => {
    say(paint("bold", `\n${title}`))
    printAnswer(await client.complete(question, { signal }))
  }

  await act(
    "1. alpha has an outage. It is asked three times, with random waits below 0.4 s and 0.8 s; then beta takes over."
  )
  await act("2. The same again. It is alpha's second failed call in a row: its circuit opens.")

  embedded.change("beta", limitingOnce(1, canned))
  await act("3. alpha is now skipped without a request. beta limits its rate and names a wait, which is kept to.")

  embedded.change("alpha", canned)
  say(paint("bold", `\nalpha has recovered. ${resetMillis / 1000} s later its circuit lets one attempt through.`))
  await sleep(resetMillis, undefined, { signal })
  await act("4. That attempt succeeds: the circuit closes, and alpha answers again.")
}
