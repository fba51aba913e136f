/**
 * Node 20's `AbortSignal.any` may lose a time limit to the garbage collector (Node 22's does not), and a limit that is
 * lost would look like a hang of the system that set it. Most rivals ask for Node 22: on Node 20 they get one that holds.
 */
if (Number.parseInt(process.versions.node, 10) < 22) {
  AbortSignal.any = (signals) => {
    const controller = new AbortController()
    for (const signal of signals) {
      if (signal.aborted) controller.abort(signal.reason)
      else signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true })
    }
    return controller.signal
  }
}
