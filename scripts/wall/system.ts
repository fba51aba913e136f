/** What the wall knows of a system under test, so that others than LlmFuse can stand before it. */

/** Where a provider is. */
export interface Endpoint {
  readonly baseUrl: string
  readonly model: string
}

/** What a system is given for one fault. */
export interface Setting {
  readonly primary: Endpoint
  readonly fallback: Endpoint
  /** The same for every system, as far as it has them: of the first token, and of the whole call. */
  readonly timeouts: { readonly firstTokenMillis: number; readonly totalMillis: number }
  /** By what times are multiplied; 1 is real time. */
  readonly timeScale: number
}

/** What a call came to. */
export interface Answer {
  /** All text that the caller takes for the answer. */
  readonly text: string
  readonly model?: string | undefined
  /** In the words of the system. */
  readonly usage?: unknown
  /** How often the caller was told that what it had was void. */
  readonly restarts?: number | undefined
}

/** A client of a system. */
export interface Client {
  /** Asks, and reads the stream to its end. Rejects with what the system rejects with. */
  readonly stream: (prompt: string, signal: AbortSignal) => Promise<Answer>
  readonly close: () => Promise<unknown>
}

/** A system under test. */
export interface System {
  readonly name: string
  readonly version: string
  readonly ask: (setting: Setting) => Client
}
