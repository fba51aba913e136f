/** An outage in four acts, and a stream that is cut in a fifth, on embedded providers. */
import { setTimeout as sleep } from "node:timers/promises"
import { FuseClient, OpenAiCompatible } from "../../src/index.ts"
import { FaultServer } from "../../src/testing.ts"
import { paint, printAnswer, say } from "./output.ts"
import { script } from "./script.ts"
import { makeTrail } from "./trail.ts"
import { keyVariables } from "./vendors.ts"
import { showWords } from "./words.ts"

const resetMillis = 3000

/** Asks the same question five times while the first of two providers has an outage, recovers, and breaks off. */
export const demonstrateOutage = async (question: string, signal: AbortSignal): Promise<void> => {
  say(
    `No API key found in the environment or in .env. Looked for:
  ${keyVariables.slice(0, 6).join(" ")}
  ${keyVariables.slice(6).join(" ")}

So two providers are embedded in this demo, alpha and beta: real HTTP on 127.0.0.1, but canned answers, not a model's.`
  )
  await using server = await FaultServer.start(script)
  const provider = (name: keyof typeof script) => OpenAiCompatible.make({ name, baseUrl: server.url, model: name })

  await using client = FuseClient.make({
    providers: [provider("alpha"), provider("beta")],
    retry: { baseDelay: "400 millis" },
    breaker: { failureThreshold: 2, resetTimeout: resetMillis },
    captureContent: true,
    onEvent: makeTrail()
  })
  const tell = (text: string) => say(paint("bold", `\n${text}`))
  const act = async (title: string) => {
    tell(title)
    printAnswer(await client.complete(question, { signal }))
  }

  await act(
    "1. alpha has an outage. It is asked three times, with random waits below 0.4 s and 0.8 s; then beta takes over."
  )
  await act("2. The same again. It is alpha's second failed call in a row: its circuit opens.")
  await act("3. alpha is now skipped without a request. beta limits its rate and names a wait, which is kept to.")

  tell(`alpha has recovered. ${resetMillis / 1000} s later its circuit lets one attempt through.`)
  await sleep(resetMillis, undefined, { signal })
  await act("4. That attempt succeeds: the circuit closes, and alpha answers again.")

  tell(`5. A stream: alpha's is cut in the middle of the answer. With recovery: "restart", beta begins afresh.`)
  await showWords(client.stream(question, { recovery: "restart", signal }))
}
