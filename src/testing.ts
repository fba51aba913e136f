/** Fakes for tests: `import { FakeProvider } from "llmfuse/testing"`. */
export * as FakeHttp from "./testing/FakeHttp.ts"
export { FakeProvider, type FakeStep } from "./testing/FakeProvider.ts"
export type {
  FaultBehaviour,
  FaultCut,
  FaultError,
  FaultKeepAlive,
  FaultToolCall
} from "./testing/FaultBehaviour.ts"
export type {
  FaultEnding,
  FaultPhase,
  FaultPlan,
  FaultRequest,
  FaultScript,
  FaultWireName
} from "./testing/FaultScript.ts"
export { FaultServer } from "./testing/FaultServer.ts"
export { ScriptedProvider } from "./testing/ScriptedProvider.ts"
