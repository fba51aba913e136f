/** What a program in TypeScript and Effect does with the package, under strict settings. */
import { Effect } from "effect"
import { FuseClient, LlmFuse, Provider } from "llmfuse"
import * as testing from "llmfuse/testing"

const up = Provider.make({ name: "up", complete: () => Effect.succeed("hello") })

const program = Effect.gen(function* () {
  const fuse = yield* LlmFuse
  return yield* fuse.complete("hi")
})
const fromEffect = await Effect.runPromise(Effect.provide(program, LlmFuse.layer({ providers: [up] })))

const client = FuseClient.make({ providers: [up] })
const fromPromise = await client.complete("hi")
await client.close()

const texts: ReadonlyArray<string> = [fromEffect.text, fromPromise.text]
if (texts.join() !== "hello,hello" || Object.keys(testing).length === 0) throw new Error(`got ${texts.join()}`)
