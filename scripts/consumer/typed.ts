/** What a program in TypeScript and Effect does with the package, under strict settings. */
import { Effect, Schema, Stream } from "effect"
import { type ChatEvent, FuseClient, LlmFuse, Provider } from "llmfuse"
import { FakeProvider, FaultServer } from "llmfuse/testing"

const up = Provider.make({ name: "up", complete: () => Effect.succeed("42") })

const program = Effect.gen(function* () {
  const fuse = yield* LlmFuse
  const { text } = yield* fuse.complete("hi")
  const { object } = yield* fuse.object(Schema.Number, "hi")
  const events = yield* Stream.runCollect(fuse.stream("hi"))
  const last: ChatEvent | undefined = [...events].at(-1)
  return `${text} ${object + 1} ${last?._tag === "Finished" ? last.response.text : "no end"}`
})
const fromEffect = await Effect.runPromise(Effect.provide(program, LlmFuse.layer({ providers: [up] })))

const client = FuseClient.make({ providers: [FakeProvider.make("fake", { reply: "a b" })] })
let fromPromise = ""
for await (const piece of client.text("hi")) fromPromise += piece
await client.close()

const words: number = FaultServer.sixtyWords.split(" ").length
const seen = `${fromEffect} ${fromPromise} ${words}`
if (seen !== "42 43 42 a b 60") throw new Error(`got ${seen}`)
