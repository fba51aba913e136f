import { assert, describe, it } from "@effect/vitest"
import * as Redaction from "../../src/provider/Redaction.ts"

describe("what looks like a secret", () => {
  it.each([
    ["bearer   AZaz09._~+/=-AZaz09", "bearer   <redacted>"],
    ...["sk", "gsk", "csk", "xai", "pplx", "tgp", "fw", "hf", "r8"].flatMap((vendor) => [
      [`a ${vendor}-AZaz09_-AZaz09_- b`, "a <redacted> b"],
      [`a ${vendor}_AZaz09_-AZaz09_- b`, "a <redacted> b"]
    ]),
    ["a AIzaAZaz09_-AZaz09_-AZaz b", "a <redacted> b"],
    ["https://user:pass@x.test/?a=b", "https://<redacted>@x.test/?a=b"],
    ...[
      "key",
      "apikey",
      "api-key",
      "api_key",
      "token",
      "accesstoken",
      "access-token",
      "access_token",
      "sig",
      "KEY"
    ].flatMap((name) => [
      [`x.test/?${name}=a1&b=c`, `x.test/?${name}=<redacted>&b=c`],
      [`x.test/?b=c&${name}=a1 "d"`, `x.test/?b=c&${name}=<redacted> "d"`]
    ])
  ])("%s is shown as %s", (text, shown) => {
    assert.strictEqual(Redaction.byShape(text ?? ""), shown)
  })

  it.each([
    "Bearer 0123456789abcde",
    "sk-0123456789abcde",
    "risk-0123456789abcdefghij",
    "AIza0123456789abcdefg",
    "xAIza0123456789abcdefghijklm",
    "overbearer 0123456789abcdefghij",
    "x.test/?monkey=a",
    "a key=b",
    "me@x.test"
  ])("%s does not", (text) => {
    assert.strictEqual(Redaction.byShape(text), text)
  })
})

describe("given secrets", () => {
  it("are taken out as they are, as a URL and as JSON write them, the longest first", () => {
    const redact = Redaction.make(["", "a/b", 'a/b"c', "\ud800"])

    assert.strictEqual(redact('a/b a%2Fb a/b"c a/b\\"c a%2Fb%22c \ud800 b'), `${"<redacted> ".repeat(6)}b`)
  })

  it("that are none leave a text as it is", () => {
    assert.strictEqual(Redaction.make([""])("abc"), "abc")
  })
})

describe("one line", () => {
  it("has no control characters and no space around it", () => {
    assert.strictEqual(Redaction.oneLine(" a\n\tb\u0000c\u001fd\u007fe\u009ff\u2028g\u2029h\u0085 "), "a b c d e f g h")
  })

  it("is as long as the limit, and breaks no character", () => {
    assert.strictEqual(Redaction.oneLine("abcd", 4), "abcd")
    assert.strictEqual(Redaction.oneLine("abcde", 4), "abc…")
    assert.strictEqual(Redaction.oneLine("ab😀cd", 4), "ab…")
    assert.strictEqual(Redaction.oneLine("a😀bcd", 4), "a😀…")
  })
})
