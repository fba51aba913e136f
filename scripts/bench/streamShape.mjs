/** What the streams of the benchmark are like. */

/** How many chunks with content an answer has. */
export const chunkCount = 10_000

/** The same of a short answer. */
export const shortChunkCount = 200

/** How many streams share the chunks where each packet holds one event. */
export const inStep = 10
