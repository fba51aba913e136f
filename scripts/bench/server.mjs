/**
 * A healthy provider on OpenAI's wire, in a process of its own so that its work is not counted with the client's. The
 * first segment of a path says how it answers:
 *
 * - `whole`: a short answer in one piece;
 * - `short`: a stream of 200 events in a write each, as fast as the client takes them;
 * - `blocks`: a stream in writes of 16 KB, about 80 events each, as fast as the client takes them;
 * - `events`: a stream in a write for each event, as fast as the client takes them: many to a packet;
 * - `packets`: a stream with an event in each packet. So many streams go in step; file descriptor 4 brings a byte when
 *   all have taken their event, and only then the next follows. However late the client is, a read brings one event.
 */
import { once } from "node:events"
import { createServer } from "node:http"
import { Socket } from "node:net"
import { chunkCount, inStep, shortChunkCount } from "./streamShape.mjs"

const chunk = (choices, rest) => ({
  id: "chatcmpl-BxK2f8sJq3ZpVn0aTcYw7LmR",
  object: "chat.completion.chunk",
  created: 1_795_996_800,
  model: "gpt-4.1-mini-2025-04-14",
  choices,
  ...rest
})
const event = (json) => Buffer.from(`data: ${JSON.stringify(json)}\n\n`)
const choice = (delta, finish_reason) => [{ index: 0, delta, finish_reason }]
const usage = { prompt_tokens: 9, completion_tokens: chunkCount, total_tokens: chunkCount + 9 }

const contentEvents = Array.from({ length: chunkCount }, (_, index) =>
  event(chunk(choice({ content: ` w${String(index % 1000).padStart(3, "0")}` }, null)))
)
const ending = Buffer.concat([
  event(chunk(choice({}, "stop"))),
  event(chunk([], { usage })),
  Buffer.from("data: [DONE]\n\n")
])
const stream = Buffer.concat([...contentEvents, ending])
const blockSize = 16_384
const blocks = Array.from({ length: Math.ceil(stream.length / blockSize) }, (_, index) =>
  stream.subarray(index * blockSize, (index + 1) * blockSize)
)

const message = { role: "assistant", content: "A circuit breaker stops asking what keeps failing." }
const whole = Buffer.from(
  JSON.stringify({
    ...chunk([{ index: 0, message, finish_reason: "stop" }]),
    object: "chat.completion",
    usage: { prompt_tokens: 9, completion_tokens: 8, total_tokens: 17 }
  })
)

const send = async (response, pieces) => {
  for (const piece of pieces) if (!response.write(piece)) await once(response, "drain")
  response.end()
}

/** The streams that go in step; they begin when all are there. */
const streams = []
const step = () => {
  for (const each of streams) {
    if (each.sent < chunkCount / inStep) each.response.write(contentEvents[each.sent++])
    else each.response.end(ending)
  }
}

const answers = {
  short: (response) => send(response, [...contentEvents.slice(0, shortChunkCount), ending]),
  blocks: (response) => send(response, blocks),
  events: (response) => send(response, [...contentEvents, ending]),
  packets: (response) => {
    response.once("close", () => streams.splice(streams.indexOf(streams.find((it) => it.response === response)), 1))
    if (streams.push({ response, sent: 0 }) === inStep) step()
  }
}

let connections = 0
const server = createServer((request, response) => {
  const how = request.url.split("/")[1]
  request.resume().once("end", () => {
    response.writeHead(200, { "content-type": how === "whole" ? "application/json" : "text/event-stream" })
    if (how === "whole") response.end(whole)
    else answers[how](response)
  })
})
server.on("connection", () => connections++)
// A server that closes idle connections would cut the client's next request by chance.
Object.assign(server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 })
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => process.send({ port: server.address().port }))

new Socket({ fd: 4 }).on("data", (acknowledged) => {
  for (const _ of acknowledged) step()
})
process.on("message", () => process.send({ connections }))
process.on("disconnect", () => process.exit())
