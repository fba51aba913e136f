import { assert, describe, it } from "@effect/vitest"
import * as ErrorBody from "../../src/provider/ErrorBody.ts"

const page = (text: string) => ErrorBody.parse(text).message

describe("codes", () => {
  it.each([
    ["rate_limit_error", "ratelimit"],
    ["RATE_LIMIT", "ratelimit"],
    ["ThrottlingException", "throttling"],
    ["error_in_exception_class", "errorinexceptionclass"],
    ["exceptional", "exceptional"]
  ])("%s is spelled %s", (word, spelling) => {
    assert.strictEqual(ErrorBody.normalize(word), spelling)
  })

  it.each([
    ["code", { error: { code: "a" } }],
    ["error_code", { error_code: "a" }],
    ["errorcode", { fault: { detail: { errorcode: "a" } } }],
    ["reason", { error: { details: [{ reason: "a" }] } }],
    ["error_type", { error: { metadata: { error_type: "a" } } }],
    ["type", { detail: [{ type: "a" }] }],
    ["status", { error: { status: "a" } }],
    ["error_name", { error_name: "a" }],
    ["Azure's inner error", { error: { innererror: { code: "a" } } }],
    ["OpenRouter's availability", { error: { availability: { reason: "a" } } }],
    ["details that are no list", { error: { details: { code: "a" } } }],
    ["OpenRouter's limit", { error: { metadata: { limit_source: "a" } } }],
    ["the code of the provider behind", { error: { metadata: { provider_code: "a" } } }],
    ["a text that is the error", { error: "a" }]
  ])("are found: %s", (_where, body) => {
    assert.deepStrictEqual(ErrorBody.fromJson(body).codes, ["a"])
  })

  it("are texts and numbers, the most specific first, without those that have no letters", () => {
    const body = { error: { code: 1500, type: "a", status: true, innererror: { code: "b" } }, code: "-", type: "c" }

    assert.deepStrictEqual(ErrorBody.fromJson(body).codes, ["b", "1500", "a", "c"])
  })
})

describe("the status that a body names", () => {
  it.each([
    [{ error: { code: 400 } }, 400],
    [{ error: { code: "599" } }, 599],
    [{ error: { code: 399 } }, undefined],
    [{ error: { code: 600 } }, undefined],
    [{ error: { code: 429.5 } }, undefined],
    [{ error: { code: "1429" } }, undefined],
    [{ error: { code: "4290" } }, undefined],
    [{ error: { code: "0429" } }, undefined],
    [{ error: { code: "429.0" } }, undefined],
    [{ error: { code: [429] } }, undefined],
    [{ error: { status_code: 429 } }, 429],
    [{ status: 503 }, 503],
    [{ error: { code: 429 }, code: 500 }, 429],
    [{ error: { code: 1500, status: 402 }, status: 500 }, 402]
  ])("%j: %s", (body, status) => {
    assert.strictEqual(ErrorBody.fromJson(body).status, status)
  })
})

describe("the words of a body", () => {
  it.each([
    [{ error: { message: "a" }, message: "b" }, "a"],
    [{ error: { message: { detail: "a" } }, message: "b" }, "a"],
    [{ message: "a", error: "b" }, "a"],
    [{ message: { detail: "a" }, error: "b" }, "a"],
    [{ error: "a", detail: "b" }, "a"],
    [{ detail: "a", title: "b" }, "a"],
    [{ fault: { faultstring: "a" }, title: "b" }, "a"],
    [{ title: "a" }, "a"],
    ["a", "a"],
    [[{ error: { message: "a" } }], "a"],
    [{ detail: [{ loc: ["body", 0, { no: 1 }], msg: "a" }, { msg: "b" }, {}] }, "body.0: a; b; refused"],
    [{}, undefined],
    [[], undefined]
  ])("%j: %s", (body, words) => {
    assert.strictEqual(ErrorBody.parse(JSON.stringify(body)).message, words)
  })

  it.each([
    ["<!DOCTYPE html><title> a b </title>", "a b"],
    ["\n <HTML><TITLE lang='en'>a</TITLE>", "a"],
    ["<head><title>a</title>", "a"],
    ["<?xml version='1.0'?><title>a</title>", "a"],
    ["<html></html>", "an HTML page"],
    ["see <html><title>a</title>", "see <html><title>a</title>"],
    ["  busy \n", "busy"],
    ["", undefined],
    ["what [is] {this}", "what [is] {this}"]
  ])("%j: %s", (text, words) => {
    assert.strictEqual(page(text), words)
  })

  it("of the provider behind four routers follow, and no more", () => {
    const within = (depth: number): object => ({
      error: { message: `m${depth}`, code: `c${depth}`, metadata: { raw: depth < 7 ? within(depth + 1) : "" } }
    })

    const { message, codes } = ErrorBody.parse(JSON.stringify(within(0)))

    assert.strictEqual(message, "m0: m1: m2: m3: m4")
    assert.deepStrictEqual(codes, ["c0", "c1", "c2", "c3", "c4"])
  })

  it("are cut, and so is what stands behind them", () => {
    const long = "x".repeat(20_000)

    assert.strictEqual(ErrorBody.fromJson({ message: long }).message?.length, 16_384)
    assert.strictEqual(ErrorBody.fromJson({ error: { metadata: { raw: long } } }).message?.length, 16_384)
    const { message, codes } = ErrorBody.fromJson({
      error: { metadata: { raw: `{"code":"a","m":"${long}","message":"b"}` } }
    })
    assert.deepStrictEqual([message, codes], [undefined, ["a"]])
  })
})

describe("a body that breaks off", () => {
  it("tells its first message, its codes and nothing else", () => {
    const cut =
      '{"type":"a","error":{"message":"b","message":"c","code":"d","status":"e","reason":"f","error_type":"g","x":"h"'

    const { json, message, codes, status, requestId } = ErrorBody.parse(cut)

    assert.deepStrictEqual([json, status, requestId], [undefined, undefined, undefined])
    assert.strictEqual(message, "b")
    assert.deepStrictEqual(codes, ["a", "d", "e", "f", "g"])
  })

  it.each([
    ['[{"message":"a', undefined],
    ['[{"message":"a"', "a"],
    [' {"message":"a"', "a"],
    ['{"message":"say \\"a\\" \\u00e9\\u00E9\\u0041 \\n|\\q|"', 'say "a" ééA \n| |']
  ])("%j: %s", (text, words) => {
    assert.strictEqual(page(text), words)
  })
})
