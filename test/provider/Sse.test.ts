import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Sse from "../../src/provider/Sse.ts"

const encode = (text: string) => new TextEncoder().encode(text)

/** Everything that a decoder makes of packets. */
const decoded = (packets: ReadonlyArray<Uint8Array>, isEnded = true) => {
  const events: Array<readonly [data: string, name: string | undefined]> = []
  const decoder = Sse.decoder((data, name) => events.push([data, name]))
  for (const packet of packets) if (!decoder.isOverfull) decoder.feed(packet)
  if (isEnded && !decoder.isOverfull) decoder.end()
  return { ...decoder, events }
}

const data = (text: string) => decoded([encode(text)]).events.map(([data]) => data)

describe("events", () => {
  it.each([
    ["LF", "data: a\n\ndata: b\n\n", ["a", "b"]],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
    ["CR", "data: a\r\rdata: b\r\r", ["a", "b"]],
    ["no space", "data:a\n\n", ["a"]],
    ["more than one space", "data:  a\n\n", [" a"]],
    ["lines of one event", "data: a\ndata: b\n\n", ["a\nb"]],
    ["a byte order mark", "\ufeffdata: a\n\n", ["a"]],
    ["a byte order mark that is text", "data: \ufeffa\n\n", ["\ufeffa"]],
    ["comments", ": OPENROUTER PROCESSING\n\ndata: a\n: ping\n\n", ["a"]],
    ["id and retry", "id: 1\nretry: 3000\ndata: a\n\n", ["a"]],
    ["an end without a blank line", "data: a\n\ndata: b\n", ["a", "b"]],
    ["an end without a newline", "data: a\n\ndata: b", ["a", "b"]],
    ["an end after CR", "data: a\r", ["a"]],
    ["nothing", "", []]
  ])("%s", (_, text, events) => {
    assert.deepStrictEqual(data(text), events)
  })

  it("have their name", () => {
    const { events } = decoded([encode("event: error\ndata: a\n\ndata: b\n\n")])

    assert.deepStrictEqual(events, [
      ["a", "error"],
      ["b", undefined]
    ])
  })

  it("are the same however the bytes are cut", () => {
    const bytes = encode(
      '\ufeffdata: näive 🚀\r\n\r\n: ping\r\n\r\nevent: é\r\ndata: {"\u20ac": "\ufeff"}\r\n\r\nerror: ü\n\n'
    )
    const whole = decoded([bytes])

    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 12 }), (places) => {
        const sorted = [0, ...places, bytes.length].sort((a, b) => a - b)
        const packets = sorted.slice(1).map((place, index) => bytes.slice(sorted[index], place))

        const { events, loose } = decoded(packets)

        assert.deepStrictEqual({ events, loose }, { events: whole.events, loose: whole.loose })
      })
    )
  })
})

describe("the longest event", () => {
  const longest = Sse.maxEventLength

  const inPackets = (text: string, size: number) =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      encode(text.slice(index * size, (index + 1) * size))
    )

  it.each([
    ["one packet", Number.MAX_SAFE_INTEGER],
    ["many", 65_536]
  ])("is taken in from %s", (_, size) => {
    const { events, isOverfull } = decoded(inPackets(`data: ${"x".repeat(longest - 6)}\n\n`, size))

    assert.isFalse(isOverfull)
    assert.strictEqual(events[0]?.[0].length, longest - 6)
  })

  it.each([
    ["one packet", Number.MAX_SAFE_INTEGER],
    ["many", 65_536]
  ])("ends a longer one that comes in %s", (_, size) => {
    const { events, isOverfull } = decoded(
      inPackets(`data: a\n\ndata: ${"x".repeat(longest + 1)}\n\ndata: b\n\n`, size)
    )

    assert.isTrue(isOverfull)
    assert.deepStrictEqual(events, [["a", undefined]])
  })

  it("counts all lines of an event", () => {
    const line = `data: ${"x".repeat(1000)}\n`

    assert.isTrue(decoded(inPackets(line.repeat(1100), 65_536)).isOverfull)
  })

  it("is not counted over events and comments", () => {
    const { isOverfull, events } = decoded(
      inPackets(`: ${"x".repeat(50)}\n\ndata: ${"y".repeat(50)}\n\n`.repeat(20_000), 65_536)
    )

    assert.isFalse(isOverfull)
    assert.strictEqual(events.length, 20_000)
  })
})

describe("loose lines", () => {
  it("are kept, a line each", () => {
    assert.strictEqual(decoded([encode('{\n  "error": {}\n}')]).loose, '{\n  "error": {}\n}\n')
  })

  it("are kept between events", () => {
    assert.strictEqual(decoded([encode('data: a\n\n{"error": 1}\n\ndata: b\n\n')]).loose, '{"error": 1}\n')
  })

  it.each([
    ['error: {"code":400}\n', '{"error":{"code":400}}\n'],
    ["error: it is broken\n", '{"error":"it is broken"}\n']
  ])("named error are errors: %s", (line, loose) => {
    assert.strictEqual(decoded([encode(line)]).loose, loose)
  })

  it("are kept to 16 KiB after an event", () => {
    const lines = `data: a\n\n${"loose line\n".repeat(10_000)}`

    assert.strictEqual(decoded([encode(lines)]).loose.length, Sse.maxLooseLength)
  })

  it("are kept to the length of an event before the first, since they may be a body", () => {
    const lines = "loose line\n".repeat(200_000)

    assert.strictEqual(decoded([encode(lines)]).loose.length, Sse.maxEventLength)
  })
})
