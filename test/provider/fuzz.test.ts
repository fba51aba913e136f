import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import * as fc from "fast-check"
import { isLlmFuseError, type ProviderError } from "../../src/model/LlmError.ts"
import { Anthropic } from "../../src/provider/Anthropic.ts"
import { GeminiNative } from "../../src/provider/GeminiNative.ts"
import * as OpenAiCompatible from "../../src/provider/OpenAiCompatible.ts"
import type { Provider } from "../../src/provider/Provider.ts"
import { answering } from "./fakeClient.ts"
import { type Fixture, fixtures, packetsOf, streams } from "./fixtures.ts"
import { type BodyEnd, bodyIn, drained } from "./streaming.ts"

/** Runs for each adapter. A longer hunt: `LLMFUSE_FUZZ_RUNS=100000 npx vitest run test/provider/fuzz.test.ts`. */
const numRuns = Number(process.env.LLMFUSE_FUZZ_RUNS ?? 1000)

/** The same runs every time; another seed looks elsewhere. */
const seed = Number(process.env.LLMFUSE_FUZZ_SEED ?? 20261130)

const options = { name: "vendor", model: "m", apiKey: "sk-fx-fuzz", baseUrl: "https://llm.example.test/v1" }

const adapters = [
  {
    name: "OpenAiCompatible",
    wire: "openai-chat",
    made: OpenAiCompatible.make({ ...options, opaque: "reasoning_details" })
  },
  { name: "Anthropic", wire: "anthropic-messages", made: Anthropic.make(options) },
  { name: "GeminiNative", wire: "gemini", made: GeminiNative.make(options) }
] as const

// What comes back

/** Values that nobody expects, among them keys that every object has. */
const strangers: ReadonlyArray<unknown> = [
  null,
  true,
  0,
  -1,
  1e308,
  -1e308,
  2 ** 53,
  0.5,
  "",
  " ",
  "\ud800",
  "\u0000",
  "429",
  "NaN",
  "x".repeat(5000),
  [],
  [[]],
  [null],
  {},
  { toString: 1, valueOf: null },
  { message: { detail: [{ loc: [{ toString: null }], msg: 1 }] } },
  { error: { code: 429, metadata: { raw: "{}", headers: { "retry-after": {} } } } },
  { length: 4294967296 },
  JSON.parse('{"__proto__":{"error":1},"constructor":null,"hasOwnProperty":1}'),
  JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`)
]

/** A body with one of its values replaced, taken out or doubled; `where` says which, `what` by what. */
const altered = (body: unknown, where: number, what: number): unknown => {
  const slots: Array<readonly [holder: Record<string, unknown>, key: string]> = []
  const root: Record<string, unknown> = { body }
  const waiting: Array<Record<string, unknown>> = [root]
  for (let holder = waiting.pop(); holder !== undefined; holder = waiting.pop()) {
    for (const [key, value] of Object.entries(holder)) {
      slots.push([holder, key])
      if (typeof value === "object" && value !== null) waiting.push(value as Record<string, unknown>)
    }
  }
  const [holder, key] = slots[where % slots.length] ?? [root, "body"]
  const [donor, donated] = slots[what % slots.length] ?? [root, "body"]
  const kind = what % 4
  if (kind === 0) holder[key] = structuredClone(donor[donated])
  else if (kind === 1 && Array.isArray(holder)) holder.push(...holder.slice(0, 3).map((it) => structuredClone(it)))
  else if (kind === 2) delete holder[key]
  else holder[key] = structuredClone(strangers[what % strangers.length])
  return root.body
}

interface Change {
  readonly kind: "flip" | "cut" | "double" | "value" | "value-of-event" | "insert" | "none"
  readonly where: number
  readonly what: number
}

const inText = (text: string, { where, what }: Change): string => {
  const parsed = ((): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return undefined
    }
  })()
  return parsed === undefined ? text : (JSON.stringify(altered(parsed, where, what)) ?? text)
}

/** The data of one of the events is altered as a body is. */
const inEvent = (text: string, change: Change): string => {
  const lines = text.split("\n")
  const data = lines.flatMap((line, index) => (line.startsWith("data: {") ? [index] : []))
  const index = data[change.where % Math.max(1, data.length)]
  const line = index === undefined ? undefined : lines[index]
  if (index === undefined || line === undefined) return inText(text, change)
  lines[index] = `data: ${inText(line.slice(6), { ...change, where: change.where >>> 8 })}`
  return lines.join("\n")
}

const changed = (bytes: Buffer, change: Change): Buffer => {
  const place = change.where % (bytes.length + 1)
  switch (change.kind) {
    case "flip": {
      const flipped = Buffer.from(bytes)
      if (place < flipped.length) flipped[place] = (flipped[place] ?? 0) ^ (1 << (change.what % 8))
      return flipped
    }
    case "cut":
      return bytes.subarray(0, place)
    case "double": {
      const end = Math.min(bytes.length, place + (change.what % 400))
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(place)])
    }
    case "value":
      return Buffer.from(inText(bytes.toString(), change))
    case "value-of-event":
      return Buffer.from(inEvent(bytes.toString(), change))
    case "insert": {
      const piece = pieces[change.what % pieces.length] ?? ""
      return Buffer.concat([bytes.subarray(0, place), Buffer.from(piece), bytes.subarray(place)])
    }
    case "none":
      return bytes
  }
}

const pieces: ReadonlyArray<string> = [
  "\n\n",
  "\r",
  "\r\n\r\n",
  "data: ",
  "data: [DONE]\n\n",
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
  'data: {"error":{"message":"x","code":429,"metadata":{"raw":"{}"}}}\n\n',
  ": ping\n\n",
  "retry: x\n",
  "id: \u0000\n",
  "\ufeff",
  '{"error":{}}\n',
  "<html><title>",
  "[".repeat(2000),
  '{"a":'.repeat(2000)
]

const changes: fc.Arbitrary<ReadonlyArray<Change>> = fc.array(
  fc.record({
    kind: fc.constantFrom<Change["kind"]>(
      "value",
      "value-of-event",
      "value",
      "value-of-event",
      "flip",
      "cut",
      "double",
      "insert",
      "none"
    ),
    where: fc.nat(),
    what: fc.nat()
  }),
  { minLength: 1, maxLength: 6 }
)

const hintNames = [
  "retry-after",
  "retry-after-ms",
  "x-ms-retry-after-ms",
  "x-should-retry",
  "date",
  "x-ratelimit-reset",
  "x-ratelimit-remaining",
  "x-ratelimit-reset-tokens",
  "anthropic-ratelimit-tokens-reset",
  "anthropic-ratelimit-tokens-remaining",
  "x-amzn-errortype",
  "x-request-id",
  "content-type",
  "x-other"
]

const hintValues = [
  "0",
  "-1",
  "1e999",
  "NaN",
  "Infinity",
  "0.0000001",
  "99999999999999999999",
  "1795996800",
  "1795996800000",
  "6m0s",
  "999999d",
  "Wed, 21 Oct 2099 07:28:00 GMT",
  "Wed, 99 Foo 2099 07:28:00 GMT",
  "0001-01-01T00:00:00Z",
  "9999-12-31T23:59:59Z",
  "text/event-stream",
  "application/json",
  "ThrottlingException:http://x",
  "x".repeat(3000),
  `${"1".repeat(3000)}!`
]

/** Characters that the Fetch standard lets a header have. */
const headerValue = fc.oneof(
  { arbitrary: fc.constantFrom(...hintValues), weight: 4 },
  { arbitrary: fc.stringMatching(/^[!-~\xa0-\xff]{0,40}$/), weight: 1 }
)

const headers = fc.dictionary(fc.constantFrom(...hintNames), headerValue, { maxKeys: 5 })

interface Case {
  readonly fixture: Fixture
  readonly changes: ReadonlyArray<Change>
  readonly headers: Readonly<Record<string, string>>
  readonly status: number | undefined
  readonly end: BodyEnd
  readonly size: number
  readonly way: "complete" | "stream" | "embed"
}

const isEmbedding = ({ request, name }: Fixture) => /embed/i.test(request.url) || /embed/.test(name)

const casesOf = (wire: Fixture["wire"], ways: ReadonlyArray<Case["way"]>): fc.Arbitrary<Case> => {
  const own = [...fixtures, ...streams].filter((fixture) => fixture.wire === wire)
  return fc.record({
    // Now and then a body of another wire, as a proxy may send one.
    fixture: fc.oneof(
      { arbitrary: fc.constantFrom(...own), weight: 9 },
      { arbitrary: fc.constantFrom(...fixtures, ...streams), weight: 1 }
    ),
    changes,
    headers,
    status: fc.option(fc.constantFrom(200, 201, 204, 302, 400, 402, 404, 408, 413, 429, 500, 503, 529, 599), {
      nil: undefined,
      freq: 2
    }),
    end: fc.constantFrom<BodyEnd>("close", "close", "reset"),
    size: fc.constantFrom(1, 7, 64, 1000, 1_000_000),
    way: fc.constantFrom(...ways)
  })
}

// What is made of it

const request = { messages: [{ role: "user", content: "hello" }] } as const

/** Fails with what is wrong with the outcome; a defect fails by itself. */
const tried = (made: (typeof adapters)[number]["made"], one: Case): Effect.Effect<void> =>
  Effect.gen(function* () {
    const way = one.way !== "embed" && isEmbedding(one.fixture) ? "embed" : one.way
    const bytes = one.changes.reduce(changed, Buffer.concat(packetsOf(one.fixture)))
    const packets = Array.from(
      { length: Math.ceil(bytes.length / one.size) },
      (_, index) => new Uint8Array(bytes.subarray(index * one.size, (index + 1) * one.size))
    )
    const status = one.status ?? one.fixture.status
    const body = status === 204 ? undefined : bodyIn(one.size < 7 ? [new Uint8Array(bytes)] : packets, one.end)
    const answer = { status, headers: { ...one.fixture.headers, ...one.headers }, body }
    const provider = yield* Effect.provide(Effect.orDie(made), answering(answer).layer)
    check(yield* outcome(provider, way))
  })

const outcome = (provider: Provider, way: Case["way"]): Effect.Effect<ProviderError | undefined> => {
  if (way === "stream") return Effect.map(drained(provider, request), ({ error }) => error)
  const asked: Effect.Effect<unknown, ProviderError> =
    way === "embed" && provider.embed !== undefined ? provider.embed({ input: ["a", "b"] }) : provider.complete(request)
  return Effect.match(asked, { onFailure: (error) => error, onSuccess: () => undefined })
}

const check = (error: ProviderError | undefined): void => {
  if (error === undefined) return
  assert.isTrue(isLlmFuseError(error), String(error))
  assert.isAtMost(error.message.length, 420)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  assert.notMatch(error.message, /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
  assert.isAtMost(error.requestId?.length ?? 0, 200)
  if (error.retryAfter === undefined) return
  const wait = Duration.toMillis(error.retryAfter)
  assert.isTrue(wait >= 0 && wait <= 2 ** 31 - 1, `a wait of ${wait} ms`)
}

describe.each(adapters)("$name", ({ wire, made }) => {
  const ways =
    wire === "anthropic-messages" ? (["complete", "stream"] as const) : (["complete", "stream", "embed"] as const)

  it(
    "makes an answer or an error of whatever comes",
    async () => {
      const property = fc.asyncProperty(casesOf(wire, ways), async (one) => {
        // Timers and the runner get a turn, or a long hunt would starve them.
        await new Promise((resolve) => setImmediate(resolve))
        const exit = await Effect.runPromiseExit(Effect.timeout(tried(made, one), "20 seconds"))

        assert.isTrue(Exit.isSuccess(exit), String(exit))
      })

      await fc.assert(property, { numRuns, seed })
    },
    Math.max(60_000, numRuns * 60)
  )
})
