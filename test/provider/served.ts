/** A real server on the loopback interface, for one test. */
import { createServer, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"

export interface Served {
  readonly url: string
  readonly server: Server
}

/** Serves while the scope is open. */
export const served = (listener: RequestListener): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Served>((resume) => {
      const server = createServer(listener).listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/`, server }))
      })
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
