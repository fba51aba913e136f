import { assert, describe, it } from "@effect/vitest"
import type { Usage } from "../../src/model/Usage.ts"
import * as AnthropicAnswer from "../../src/provider/AnthropicAnswer.ts"
import * as GeminiAnswer from "../../src/provider/GeminiAnswer.ts"
import * as OpenAiAnswer from "../../src/provider/OpenAiAnswer.ts"

type Row = readonly [what: string, usage: unknown, read: Usage | undefined]

const notNumbers: ReadonlyArray<unknown> = [
  "7",
  -7,
  7.5,
  null,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  {},
  [7],
  true,
  2 ** 60
]

describe("OpenAI's usage", () => {
  const total = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }

  it.each([
    [
      "the cache is within the input",
      { ...total, prompt_tokens_details: { cached_tokens: 8 } },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 8 }
    ],
    [
      "the cache is no more than the input",
      { ...total, prompt_tokens_details: { cached_tokens: 80 } },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 10 }
    ],
    [
      "what was written to the cache is within the input too",
      { ...total, prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 6 } },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 3, cacheWriteInputTokens: 6 }
    ],
    [
      "read from the cache and written to it, no more than the input",
      { ...total, prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 6 } },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 8, cacheWriteInputTokens: 2 }
    ],
    [
      "DeepSeek's cache",
      { ...total, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 2 },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 8 }
    ],
    [
      "reasoning within the completion",
      { ...total, completion_tokens_details: { reasoning_tokens: 3 } },
      { inputTokens: 10, outputTokens: 4, reasoningTokens: 3 }
    ],
    [
      "reasoning beside it, as xAI counts",
      { ...total, total_tokens: 44, completion_tokens_details: { reasoning_tokens: 30 } },
      { inputTokens: 10, outputTokens: 34, reasoningTokens: 30 }
    ],
    [
      "reasoning beside it, without a total",
      { prompt_tokens: 10, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 30 } },
      { inputTokens: 10, outputTokens: 34, reasoningTokens: 30 }
    ],
    [
      "a completion that only the total knows",
      { prompt_tokens: 10, total_tokens: 14 },
      { inputTokens: 10, outputTokens: 4 }
    ],
    ["a total that is too small", { ...total, total_tokens: 3 }, { inputTokens: 10, outputTokens: 4 }],
    [
      "a token of reasoning that only the total knows",
      { ...total, total_tokens: 15 },
      { inputTokens: 10, outputTokens: 5, reasoningTokens: 1 }
    ],
    ["none, without a total", { prompt_tokens: 0, completion_tokens: 0 }, { inputTokens: 0, outputTokens: 0 }],
    ["nothing", {}, undefined],
    ["a prompt alone", { prompt_tokens: 10 }, undefined]
  ] as ReadonlyArray<Row>)("%s", (_, usage, read) => {
    assert.deepStrictEqual(OpenAiAnswer.usageOf(usage), read)
  })

  it.each(notNumbers)("%s is no number of tokens", (bad) => {
    assert.isUndefined(OpenAiAnswer.usageOf({ ...total, prompt_tokens: bad }))
    assert.deepStrictEqual(
      OpenAiAnswer.usageOf({
        ...total,
        prompt_tokens_details: { cached_tokens: bad, cache_write_tokens: bad },
        completion_tokens_details: { reasoning_tokens: bad }
      }),
      { inputTokens: 10, outputTokens: 4 }
    )
  })
})

describe("Anthropic's usage", () => {
  const plain = { input_tokens: 10, output_tokens: 4 }
  const fiveMinutes = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 }

  it.each([
    [
      "the cache is added to the input",
      { ...plain, cache_creation_input_tokens: 100, cache_read_input_tokens: 1000 },
      { inputTokens: 1110, outputTokens: 4, cachedInputTokens: 1000, cacheWriteInputTokens: 100 }
    ],
    [
      "nothing is read from the cache or written to it",
      { ...plain, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, cache_creation: fiveMinutes },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 0, cacheWriteInputTokens: 0 }
    ],
    [
      "what is kept for an hour is within what is written",
      { ...plain, cache_creation_input_tokens: 100, cache_creation: { ephemeral_1h_input_tokens: 60 } },
      { inputTokens: 110, outputTokens: 4, cacheWriteInputTokens: 100, cacheWrite1hInputTokens: 60 }
    ],
    [
      "what is kept for an hour is no more than what is written",
      { ...plain, cache_creation_input_tokens: 5, cache_creation: { ephemeral_1h_input_tokens: 60 } },
      { inputTokens: 15, outputTokens: 4, cacheWriteInputTokens: 5, cacheWrite1hInputTokens: 5 }
    ],
    [
      "thoughts are within the output",
      { ...plain, output_tokens_details: { thinking_tokens: 3 } },
      { inputTokens: 10, outputTokens: 4, reasoningTokens: 3 }
    ],
    ["an input alone", { input_tokens: 10 }, undefined]
  ] as ReadonlyArray<Row>)("%s", (_, usage, read) => {
    assert.deepStrictEqual(AnthropicAnswer.usageOf(usage), read)
  })

  it.each(notNumbers)("%s is no number of tokens", (bad) => {
    assert.isUndefined(AnthropicAnswer.usageOf({ ...plain, output_tokens: bad }))
    assert.deepStrictEqual(
      AnthropicAnswer.usageOf({
        ...plain,
        cache_creation_input_tokens: bad,
        cache_read_input_tokens: bad,
        cache_creation: { ephemeral_1h_input_tokens: bad }
      }),
      { inputTokens: 10, outputTokens: 4 }
    )
    assert.deepStrictEqual(AnthropicAnswer.countsIn({ input_tokens: bad, output_tokens: 4, other: 1 }), {
      output_tokens: 4
    })
    assert.deepStrictEqual(AnthropicAnswer.countsIn({ cache_creation: { ephemeral_1h_input_tokens: bad } }), {})
  })
})

describe("Gemini's usage", () => {
  const plain = { promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 14 }

  it.each([
    [
      "thoughts are added to the output",
      { ...plain, thoughtsTokenCount: 30, totalTokenCount: 44 },
      { inputTokens: 10, outputTokens: 34, reasoningTokens: 30 }
    ],
    [
      "the cache is within the input",
      { ...plain, cachedContentTokenCount: 8 },
      { inputTokens: 10, outputTokens: 4, cachedInputTokens: 8 }
    ],
    [
      "what tools read is input",
      { ...plain, toolUsePromptTokenCount: 5, totalTokenCount: 19 },
      { inputTokens: 15, outputTokens: 4 }
    ],
    [
      "thoughts alone",
      { promptTokenCount: 10, thoughtsTokenCount: 30, totalTokenCount: 40 },
      { inputTokens: 10, outputTokens: 30, reasoningTokens: 30 }
    ],
    [
      "candidates that only the total knows",
      { promptTokenCount: 10, thoughtsTokenCount: 30, totalTokenCount: 44 },
      { inputTokens: 10, outputTokens: 34, reasoningTokens: 30 }
    ],
    ["no prompt", { candidatesTokenCount: 4 }, undefined]
  ] as ReadonlyArray<Row>)("%s", (_, usage, read) => {
    assert.deepStrictEqual(GeminiAnswer.usageOf(usage), read)
  })

  it.each(notNumbers)("%s is no number of tokens", (bad) => {
    assert.isUndefined(GeminiAnswer.usageOf({ ...plain, promptTokenCount: bad }))
    assert.deepStrictEqual(GeminiAnswer.usageOf({ ...plain, thoughtsTokenCount: bad, cachedContentTokenCount: bad }), {
      inputTokens: 10,
      outputTokens: 4
    })
  })
})
