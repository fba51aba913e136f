import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath, pathToFileURL } from "node:url"
import { afterEach, assert, describe, it } from "@effect/vitest"
import { FailoverPolicy } from "llmfuse"

const repository = fileURLToPath(new URL("..", import.meta.url))

const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href

const readme = readFileSync(join(repository, "README.md"), "utf8")

/** The first TypeScript example of the README, as it stands there. */
const firstExample = (): string => {
  const example = /^```ts\n(.*?)^```$/ms.exec(readme)?.[1]
  assert(example !== undefined, "README.md has no ts block")
  return example
}

const cleanups: Array<() => void> = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

// Vendors on the loopback interface

interface Reply {
  readonly status: number
  readonly body: unknown
}

interface Vendors {
  readonly groq: Reply
  readonly gemini: Reply
}

const answering = (content: string): Reply => ({
  status: 200,
  body: { choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }] }
})

const overloaded: Reply = { status: 503, body: { error: { message: "overloaded" } } }

const wrongKey: Reply = { status: 401, body: { error: { message: "wrong key" } } }

/** Which of the vendors is behind an address of theirs. */
const hosts = { groq: "api.groq.com", gemini: "generativelanguage.googleapis.com" }

const startVendors = async (vendors: Vendors) => {
  const requests: Array<{ readonly host: string; readonly path: string; readonly key: string | undefined }> = []
  const server = createServer((request, response) => {
    request.resume()
    const [, host = "", ...path] = (request.url ?? "").split("/")
    requests.push({ host, path: `/${path.join("/")}`, key: request.headers.authorization })
    const reply = host === hosts.groq ? vendors.groq : vendors.gemini
    response.writeHead(reply.status, { "content-type": "application/json" })
    response.end(JSON.stringify(reply.body))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

// Running

/** Sends what is meant for a vendor to the loopback interface, and nothing anywhere else. */
const redirecting = (origin: string): string => {
  const code = `
    const real = globalThis.fetch
    globalThis.fetch = (address, init) => {
      const { host, pathname } = new URL(address)
      if (!${JSON.stringify(Object.values(hosts))}.includes(host)) throw new TypeError("no network in this test: " + host)
      return real("${origin}/" + host + pathname, init)
    }`
  return `data:text/javascript,${encodeURIComponent(code)}`
}

/** Runs the example in a process of its own, with two keys and nothing else in its environment. */
const runExample = async (vendors: Vendors) => {
  const { origin, requests } = await startVendors(vendors)
  const folder = mkdtempSync(join(tmpdir(), "llmfuse-readme-"))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, "example.mts")
  writeFileSync(file, firstExample())
  const imports = [tsx, redirecting(origin)].flatMap((module) => ["--import", module])
  const child = spawn(process.execPath, [...imports, file], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      TSX_TSCONFIG_PATH: join(repository, "tsconfig.json"),
      GROQ_API_KEY: "key-of-groq",
      GEMINI_API_KEY: "key-of-gemini"
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  cleanups.push(() => child.kill("SIGKILL"))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")])
  return { stdout, stderr, code, requests }
}

describe("the first example of the README", () => {
  it("prints the answer of groq", async () => {
    const run = await runExample({ groq: answering("Retrieval, then generation."), gemini: answering("Not asked.") })

    assert.deepStrictEqual(run, {
      stdout: "[groq] Retrieval, then generation.\n",
      stderr: "",
      code: 0,
      requests: [{ host: hosts.groq, path: "/openai/v1/chat/completions", key: "Bearer key-of-groq" }]
    })
  })

  it("prints the answer of gemini when groq has an outage", async () => {
    const run = await runExample({ groq: overloaded, gemini: answering("It looks things up first.") })

    assert.strictEqual(run.stdout, "[gemini] It looks things up first.\n")
    assert.strictEqual(run.stderr, "")
    assert.strictEqual(run.code, 0)
    assert.deepStrictEqual(
      run.requests.map(({ host }) => host),
      [hosts.groq, hosts.groq, hosts.groq, hosts.gemini]
    )
    assert.deepStrictEqual(run.requests.at(-1), {
      host: hosts.gemini,
      path: "/v1beta/openai/chat/completions",
      key: "Bearer key-of-gemini"
    })
  })

  it("says why nobody answered", async () => {
    const run = await runExample({ groq: wrongKey, gemini: wrongKey })

    assert.strictEqual(run.stdout, "")
    assert.strictEqual(
      run.stderr,
      ["groq", "gemini"].map((name) => `AuthenticationError: ${name}: HTTP 401: wrong key\n`).join("")
    )
    assert.strictEqual(run.code, 1)
  })
})

describe("the error table of the README", () => {
  /** How a cell begins, and what it stands for. */
  const retries = { yes: "yes", once: "once", "only if no other provider is left": "when-alone", no: "no" }
  const breakers = {
    "counts; a hint longer": "counts-or-opens",
    counts: "counts",
    "opens at once": "opens",
    ignored: "ignored"
  }

  const meaning = (cell: string | undefined, words: Readonly<Record<string, string>>) =>
    Object.entries(words).find(([beginning]) => cell?.startsWith(beginning))?.[1]

  it("says what the failure table says, row by row", () => {
    const cells = [...readme.matchAll(/^\| `(\w+Error)`[^|\n]*\|[^|\n]*\|([^|\n]*)\|([^|\n]*)\|([^|\n]*)\|$/gm)].map(
      (row) => row.slice(1).map((cell) => cell.trim())
    )

    assert.deepStrictEqual(
      cells.map(([tag, retry, failover, breaker]) => [
        tag,
        { retry: meaning(retry, retries), failover: failover?.startsWith("yes"), breaker: meaning(breaker, breakers) }
      ]),
      Object.entries(FailoverPolicy.failureTable).map(([failure, verdict]) => [failure.split(":")[0], verdict])
    )
  })
})
