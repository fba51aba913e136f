import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { repository } from "./scriptRun.ts"

// Starting

/** A run has its own folder, and no variable beside those that are given. */
interface Setting {
  readonly env?: Readonly<Record<string, string>>
  readonly dotEnv?: ReadonlyArray<string>
}

const cleanups: Array<() => void> = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

const start = (args: ReadonlyArray<string>, { env = {}, dotEnv }: Setting = {}) => {
  const folder = mkdtempSync(join(tmpdir(), "llmfuse-ask-"))
  if (dotEnv !== undefined) writeFileSync(join(folder, ".env"), dotEnv.join("\n"))
  const tsx = createRequire(import.meta.url).resolve("tsx/cli")
  const child = spawn(process.execPath, [tsx, join(repository, "scripts/ask.ts"), ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  cleanups.push(() => {
    child.kill("SIGKILL")
    rmSync(folder, { recursive: true })
  })
  return { child, outcome: outcomeOf(child) }
}

const outcomeOf = async (child: ChildProcess) => {
  const exit = once(child, "exit")
  const [stdout, stderr] = await Promise.all([child.stdout, child.stderr].map((stream) => (stream ? text(stream) : "")))
  const [code] = await exit
  return { code, stdout: stdout ?? "", stderr: stderr ?? "" }
}

const ask = (args: ReadonlyArray<string>, setting?: Setting) => start(args, setting).outcome

// Vendors

interface Request {
  readonly vendor: string
  readonly key: string
  readonly model: string
}

type Reply = (request: Request, response: ServerResponse) => void

/** A server that stands for every vendor, at one path each. */
const serveVendors = async (reply: Reply) => {
  const requests: Array<Request> = []
  const server = createServer(async (incoming, response) => {
    const request = await readRequest(incoming)
    requests.push(request)
    reply(request, response)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { server, requests, baseUrl: (vendor: string) => `http://127.0.0.1:${port}/${vendor}/v1` }
}

const readRequest = async (incoming: IncomingMessage): Promise<Request> => {
  const { authorization = "", "x-api-key": key } = incoming.headers
  const body = JSON.parse(await text(incoming)) as { readonly model: string }
  return {
    vendor: incoming.url?.split("/")[1] ?? "",
    key: key === undefined ? authorization.replace("Bearer ", "") : String(key),
    model: body.model
  }
}

const send = (response: ServerResponse, status: number, body: unknown) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))

const sendAnswer = (response: ServerResponse, content: string) =>
  send(response, 200, { choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }] })

const sendOverload = (response: ServerResponse) =>
  send(response, 503, { error: { message: "Over capacity", type: "internal_server_error" } })

/** As vendors do it, with the key in the message. */
const sendUnauthorized = (response: ServerResponse, key: string) =>
  send(response, 401, { error: { message: `Incorrect API key provided: ${key}.`, code: "invalid_api_key" } })

const keyOf = (vendor: string) => `sk-test-${vendor}-0123456789abcdef`

/** The key and the address of each vendor. */
const access = (baseUrl: (vendor: string) => string, ...vendors: ReadonlyArray<string>) =>
  Object.fromEntries(
    vendors.flatMap((vendor) => [
      [`${vendor.toUpperCase()}_API_KEY`, keyOf(vendor)],
      [`${vendor.toUpperCase()}_BASE_URL`, baseUrl(vendor)]
    ])
  )

// Tests

describe("ask: arguments", { timeout: 60_000 }, () => {
  it("tells its usage where there is no question, more than one, or an unknown flag", async () => {
    const outcomes = await Promise.all([ask([]), ask(["  "]), ask(["What", "now?"]), ask(["--nope", "What?"])])

    for (const { code, stdout, stderr } of outcomes) {
      assert.strictEqual(code, 2)
      assert.strictEqual(stdout, "")
      assert.include(stderr, `Usage: npm start -- "Your question"`)
    }
    assert.include(outcomes[3]?.stderr, "Unknown option '--nope'.")
  })

  it("prints its usage to stdout if asked to", async () => {
    const { code, stdout, stderr } = await ask(["--help"])

    assert.strictEqual(code, 0)
    assert.include(stdout, `Usage: npm start -- "Your question"`)
    assert.include(stdout, "CEREBRAS_API_KEY")
    assert.strictEqual(stderr, "")
  })
})

describe("ask: without a key", { timeout: 60_000 }, () => {
  it("with --json prints every event and then the answer, a line of JSON each, and nothing else", async () => {
    const { code, stdout, stderr } = await ask(["--json", "Why?"])

    assert.strictEqual(code, 0)
    assert.strictEqual(stderr, "")
    const facts = stdout
      .trim()
      .split("\n")
      .map((line): { readonly _tag: string; readonly callId?: string } => JSON.parse(line))
    assert.strictEqual(facts.filter(({ _tag }) => _tag === "Answer").length, 5)
    assert.includeMembers(
      facts.map(({ _tag }) => _tag),
      ["CallStarted", "RetryScheduled", "FailedOver", "CircuitOpened", "CircuitClosed", "StreamRestarted"]
    )
    assert.strictEqual(new Set(facts.flatMap(({ callId }) => callId ?? [])).size, 5)
    const failed = facts.find(({ _tag }) => _tag === "AttemptFailed")
    assert.deepInclude(failed ?? {}, {
      provider: "alpha",
      error: {
        tag: "OverloadedError",
        message: "alpha: HTTP 503: The server is currently overloaded, please retry later."
      }
    })
  })

  let demo: Awaited<ReturnType<typeof ask>>
  /** What came to stderr, in the pieces in which it came. */
  const pieces: Array<string> = []

  beforeAll(async () => {
    const { child, outcome } = start(["What is a circuit breaker?"])
    child.stderr?.on("data", (piece) => pieces.push(String(piece)))
    demo = await outcome
  }, 60_000)

  it("ends well, by itself, and says what it did without", () => {
    assert.strictEqual(demo.code, 0)
    assert.match(demo.stderr, /^No API key found in the environment or in \.env\. Looked for:\n {2}GROQ_API_KEY /)
    assert.include(demo.stderr, "canned answers, not a model's")
  })

  it("shows a retry, a failover, a circuit that opens, skips, probes and closes, and a restart, in this order", () => {
    const facts = [
      /alpha +attempt 1 +failed +\d+ ms +OverloadedError: HTTP 503: The server is currently overloaded/,
      /alpha +waits \d\.\d\d s before attempt 2/,
      /alpha +attempt 3 +failed/,
      /alpha +fails over to beta/,
      /beta +attempt 1 +ok +\d+ ms$/,
      /alpha +circuit opened: left alone for \d\.\d\d s/,
      /alpha +skipped: its circuit is open for another \d\.\d\d s$/,
      /alpha +fails over to beta/,
      /beta +attempt 1 +failed +\d+ ms +RateLimitError: HTTP 429/,
      /beta +waits 1\.\d\d s before attempt 2/,
      /alpha +circuit half-open/,
      /alpha +attempt 1 +ok +\d+ ms$/,
      /alpha +circuit closed/,
      /alpha +Canned as well, /,
      /alpha +attempt 1 +failed +\d+ ms +StreamInterruptedError: /,
      /alpha +fails over to beta/,
      /alpha +cut after 13 words, which are void; beta begins afresh/,
      /beta +This answer is canned: .+ a real one\.$/,
      /beta +attempt 1 +ok +\d+ ms$/
    ]
    const lines = demo.stderr.split("\n")

    let from = 0
    for (const fact of facts) {
      const index = lines.findIndex((line, at) => at >= from && fact.test(line))
      assert.notStrictEqual(index, -1, `${fact} from line ${from} on of\n${demo.stderr}`)
      from = index + 1
    }
  })

  it("shows the words that turn out void as they come, and on stderr alone", () => {
    const [, words = ""] = demo.stderr.match(/^ {2}alpha +(Canned as well, .+)$/m) ?? []
    const start = demo.stderr.indexOf(words)
    const cameBefore = pieces.map((_, index) => pieces.slice(0, index).join("").length)

    assert.strictEqual(words.split(" ").length, 13)
    assert.isTrue(cameBefore.some((length) => length > start && length < start + words.length))
    assert.notInclude(demo.stdout, "Canned as well")
  })

  it("prints nothing but the answers to stdout, and no colours where there is no terminal", () => {
    const lines = demo.stdout.trimEnd().split("\n")

    assert.deepStrictEqual(
      lines.map((line) => line.split(" ")[0]),
      ["[beta]", "[beta]", "[beta]", "[alpha]", "[beta]"]
    )
    for (const line of lines) assert.match(line, /^\[\w+\] This answer is canned: .+ a real one\.$/)
    assert.notInclude(demo.stdout + demo.stderr, "\u001b")
  })
})

describe("ask: with keys", { timeout: 60_000 }, () => {
  it("fails over to the next vendor and shows both", async () => {
    const { baseUrl, requests } = await serveVendors(({ vendor }, response) =>
      vendor === "groq" ? sendOverload(response) : sendAnswer(response, "Hello.\nHow are you?")
    )

    const { code, stdout, stderr } = await ask(["Hi"], { env: access(baseUrl, "groq", "gemini") })

    assert.strictEqual(code, 0)
    assert.strictEqual(stdout, "[gemini] Hello.\nHow are you?\n")
    assert.match(stderr, /groq +attempt 1 +failed +\d+ ms +OverloadedError: HTTP 503: Over capacity/)
    assert.match(stderr, /groq +waits \d\.\d\d s before attempt 2/)
    assert.match(stderr, /groq +fails over to gemini/)
    assert.match(stderr, /gemini +attempt 1 +ok +\d+ ms\n/)
    assert.notInclude(stderr, "0123456789abcdef")
    assert.deepStrictEqual(
      requests.map(({ vendor, key }) => [vendor, key]),
      ["groq", "groq", "groq", "gemini"].map((vendor) => [vendor, keyOf(vendor)])
    )
  })

  it("asks every vendor that it knows, always in the same order", async () => {
    const vendors = ["groq", "gemini", "openai", "anthropic", "mistral", "deepseek", "xai", "openrouter", "together"]
    const order = [...vendors, "fireworks", "cerebras"]
    const { baseUrl, requests } = await serveVendors(({ vendor, key }, response) =>
      vendor === "cerebras" ? sendAnswer(response, "Hello.") : sendUnauthorized(response, key)
    )

    const { code, stdout, stderr } = await ask(["Hi"], { env: access(baseUrl, ...order.toReversed()) })

    assert.strictEqual(code, 0)
    assert.strictEqual(stdout, "[cerebras] Hello.\n")
    assert.notInclude(stderr, "0123456789abcdef")
    assert.deepStrictEqual(
      requests.map(({ vendor, key }) => [vendor, key]),
      order.map((vendor) => [vendor, keyOf(vendor)])
    )
  })

  it("says why each vendor did not answer, and shows no key", async () => {
    const { baseUrl } = await serveVendors(({ key }, response) => sendUnauthorized(response, key))

    const { code, stdout, stderr } = await ask(["Hi"], { env: access(baseUrl, "groq", "anthropic") })

    assert.strictEqual(code, 1)
    assert.strictEqual(stdout, "")
    assert.match(stderr, /^ {2}groq: AuthenticationError: HTTP 401: .+ \(1 attempt\)$/m)
    assert.match(stderr, /^ {2}anthropic: AuthenticationError: HTTP 401: .+ \(1 attempt\)$/m)
    assert.notInclude(stderr, "0123456789abcdef")
  })

  it("reads .env, where the environment does not say otherwise", async () => {
    const { baseUrl, requests } = await serveVendors((_, response) => sendAnswer(response, "Hello."))
    const dotEnv = [
      `GROQ_API_KEY="${keyOf("groq")}"`,
      `GROQ_BASE_URL=${baseUrl("groq")}`,
      "GROQ_MODEL=of-the-file",
      "# MISTRAL_API_KEY=none",
      "XAI_API_KEY="
    ]

    const { code, stdout } = await ask(["Hi"], { dotEnv, env: { GROQ_MODEL: "of-the-environment" } })

    assert.strictEqual(code, 0)
    assert.strictEqual(stdout, "[groq] Hello.\n")
    assert.deepStrictEqual(requests, [{ vendor: "groq", key: keyOf("groq"), model: "of-the-environment" }])
  })

  it("names the variable of a key that cannot be one, and does not show its value", async () => {
    const { code, stdout, stderr } = await ask(["Hi"], { env: { GROQ_API_KEY: "two words" } })

    assert.strictEqual(code, 1)
    assert.strictEqual(stdout, "")
    assert.include(stderr, "GROQ_API_KEY")
    assert.notInclude(stderr, "two words")
  })

  it("stops at once on Ctrl-C", async () => {
    const { server, requests, baseUrl } = await serveVendors(() => {})
    const { child, outcome } = start(["Hi"], { env: access(baseUrl, "groq", "gemini") })
    await Promise.race([once(server, "request"), outcome])

    child.kill("SIGINT")

    const { code, stdout, stderr } = await outcome
    assert.strictEqual(code, 130)
    assert.strictEqual(stdout + stderr, "")
    assert.strictEqual(requests.length, 1)
  })
})
