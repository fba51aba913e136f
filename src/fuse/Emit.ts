/** The way of an event from the stages to the listener. */
import { Effect } from "effect"
import type { FuseEvent } from "../observability/FuseEvent.ts"

/** Tells the listener. Where there is none there is no `Emit` either, and no event is built. */
export type Emit = (event: FuseEvent) => Effect.Effect<void>

/** An `Emit` to a listener; what the listener throws is lost and harms no call. */
export const toListener =
  (listener: (event: FuseEvent) => void): Emit =>
  (event) =>
    Effect.asVoid(Effect.exit(Effect.sync(() => listener(event))))
