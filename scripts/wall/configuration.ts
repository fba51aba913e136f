/** The one configuration of LlmFuse that stands before all faults of the wall. */
import { type ClientOptions, FailoverPolicy } from "../../src/index.ts"

/** What the wall sets, with the reason of each value. Everything else is LlmFuse's default. */
export const configuration = (timeScale = 1): Omit<ClientOptions, "providers"> => {
  const seconds = (count: number) => count * 1000 * timeScale
  return {
    retry: {
      // Two retries, as every system on the wall has.
      maxAttempts: 3,
      baseDelay: seconds(0.5),
      // A provider that asks for a longer wait is left for the next one.
      maxDelay: seconds(10)
    },
    // An overloaded provider (503, 529) is not asked again at once while another one is free: that would only add to its
    // load. Every other failure keeps its default.
    failover: FailoverPolicy.make({ OverloadedError: { retry: "when-alone" } }),
    breaker: {
      // One failed call may be chance. The second in a row opens the circuit.
      failureThreshold: 2,
      // The most that a provider which has recovered stays unused.
      resetTimeout: seconds(25)
    },
    timeouts: {
      // A provider that works sends its headers within a second or two, and its first token soon after.
      headers: seconds(8),
      firstToken: seconds(8),
      // Models pause, but not for so long in the middle of an answer.
      contentGap: seconds(8)
    },
    // A stream that breaks begins afresh elsewhere; the caller is told that what came before is void.
    recovery: "restart",
    // Nobody waits longer than this for a whole answer.
    deadline: seconds(40)
  }
}
