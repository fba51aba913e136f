/** What the embedded providers do, request by request. A `FaultServer` plays it over real HTTP. */
import type { FaultBehaviour, FaultPlan } from "../../src/testing.ts"

/** Nobody answers faster than this. */
const pace: FaultBehaviour = { headersDelay: "40 millis" }

const canned: FaultBehaviour = {
  ...pace,
  text: "This answer is canned: embedded providers hold no model. Set an API key to ask a real one."
}

/** Slow enough to be watched. */
const wordByWord: FaultBehaviour = { ...canned, gap: "50 millis" }

/** The connection closes before the answer is whole. */
const cut: FaultBehaviour = {
  ...wordByWord,
  text: "Canned as well, this answer of alpha's comes word by word, until the connection closes in the middle of it.",
  cut: { how: "close", after: { words: 13 } }
}

/** An outage, in the words of one that happens. */
const overloaded: FaultBehaviour = {
  ...pace,
  status: 503,
  error: { message: "The server is currently overloaded, please retry later." }
}

const rateLimited: FaultBehaviour = {
  ...pace,
  status: 429,
  headers: { "retry-after": "1" },
  error: { message: "Rate limit reached. Please try again in 1s." }
}

/** The parts of alpha and beta. Each act takes up where the one before it ended. */
export const script = {
  // Three requests each in acts 1 and 2, none in act 3, one each in acts 4 and 5.
  alpha: [overloaded, overloaded, overloaded, overloaded, overloaded, overloaded, canned, cut],
  // One request each in acts 1 and 2, two in act 3, none in act 4, one in act 5.
  beta: [canned, canned, rateLimited, canned, wordByWord]
} satisfies Record<string, FaultPlan>
