/** A limit of the whole call, for the systems that leave it to an `AbortSignal`. */

/** Runs `use` with a signal that aborts with the caller's, or after `millis`. */
export const withDeadline = async (millis, caller, use) => {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(new DOMException(`No answer in ${millis} ms`, "TimeoutError")), millis)
  const abort = () => deadline.abort(caller.reason)
  if (caller?.aborted) abort()
  caller?.addEventListener("abort", abort, { once: true })
  try {
    return await use(deadline.signal)
  } finally {
    clearTimeout(timer)
    caller?.removeEventListener("abort", abort)
  }
}
