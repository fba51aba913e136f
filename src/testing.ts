/** Fakes for tests: `import { FakeProvider } from "llmfuse/testing"`. */
export * as FakeHttp from "./testing/FakeHttp.ts"
export { FakeProvider } from "./testing/FakeProvider.ts"
export { ScriptedProvider } from "./testing/ScriptedProvider.ts"
