/** The way of an event to those who listen. */
import { Chunk, DateTime, Effect, Either, Predicate, Random, Stream } from "effect"
import type { LlmFuseError } from "../model/LlmError.ts"
import * as Discreet from "./Discreet.ts"
import type { FuseEvent } from "./FuseEvent.ts"

/** So many events were lost before the next one, because their reader was too slow. */
export interface EventsDropped {
  readonly _tag: "EventsDropped"
  readonly count: number
}

/** What a reader of events gets. */
export type ObservedEvent = FuseEvent | EventsDropped

/** Hands events to listeners. With none, nothing is built: ask `isHeard` first. */
export interface EventHub {
  /** Whether what is told may quote prompts and answers. */
  readonly capturesContent: boolean
  /** An error as it may be told. */
  readonly discreet: <E extends LlmFuseError>(error: E) => E
  /** Whether anybody listens. */
  readonly isHeard: () => boolean
  /**
   * Tells all listeners, at once and in one order: what a listener brings about while it is told is told to all of them
   * afterwards. What a listener throws is lost, and so is the failure of a promise that it returns.
   */
  readonly tell: (event: FuseEvent) => void
  /**
   * Adds a listener; what it gives back takes it away, at once. `onDropped` is told how much slow readers of `events` miss,
   * as soon as they do.
   */
  readonly listen: (listener: (event: FuseEvent) => void, onDropped?: (count: number) => void) => () => void
  /**
   * The events from the moment the stream is run. A reader that is slower than what happens holds nothing up: of what it
   * has not taken, the oldest are dropped, and `EventsDropped` says how many. One that comes in the middle of a call is told
   * of that call in part.
   */
  readonly events: Stream.Stream<ObservedEvent>
  /** The wall time of an event. */
  readonly now: () => DateTime.Utc
  /** A name for a call, unlike all others of this hub, and very likely of all others. */
  readonly nextId: () => string
}

/** So many events are told in one go: a listener that brings about the next ones does not keep all others waiting. */
const turn = 1000

/** How many events wait for a reader. */
export const bufferSize = 1024

/**
 * A hub that nobody listens to yet. What it hands on quotes neither prompts nor answers, unless `capturesContent`: errors
 * of events are then the very errors that the caller gets.
 */
export const make = (capturesContent: boolean): Effect.Effect<EventHub> =>
  Effect.zipWith(Effect.clock, Random.nextIntBetween(0, 36 ** 6), (clock, own) => {
    const prefix = own.toString(36).padStart(6, "0")
    let calls = 0
    let listeners: ReadonlyArray<Listener> = []
    let isTelling = false
    const untold: Array<Untold> = []

    const listen: EventHub["listen"] = (onEvent, onDropped) => {
      const own: Listener = { onEvent, onDropped, isGone: false }
      listeners = [...listeners, own]
      return () => {
        own.isGone = true
        listeners = listeners.filter((it) => it !== own)
      }
    }

    const tellDropped = (count: number) => {
      for (const { onDropped } of listeners) harmless(() => onDropped?.(count))
    }

    const tellUntold = (): void => {
      isTelling = true
      let told = 0
      for (let next = untold.shift(); next !== undefined; next = untold.shift()) {
        const { event, to } = next
        for (const listener of to) if (!listener.isGone) harmless(() => listener.onEvent(event))
        told += 1
        if (told === turn) {
          Effect.runFork(Effect.zipRight(Effect.sleep(0), Effect.sync(tellUntold)))
          return
        }
      }
      isTelling = false
    }

    return {
      isHeard: () => listeners.length > 0,
      capturesContent,
      discreet: (error) => (capturesContent ? error : Discreet.of(error)),
      tell: (event) => {
        untold.push({ event: capturesContent ? event : Discreet.event(event), to: listeners })
        if (!isTelling) tellUntold()
      },
      listen,
      events: Stream.unwrapScoped(
        Effect.map(
          Effect.acquireRelease(
            Effect.sync(() => reader(listen, tellDropped)),
            ({ leave }) => Effect.sync(leave)
          ),
          ({ next }) => Stream.repeatEffectChunk(next)
        )
      ),
      now: () => DateTime.unsafeMake(clock.unsafeCurrentTimeMillis()),
      nextId: () => {
        calls += 1
        return `${prefix}-${calls}`
      }
    }
  })

interface Listener {
  readonly onEvent: (event: FuseEvent) => void
  readonly onDropped: ((count: number) => void) | undefined
  isGone: boolean
}

/** An event, and who listened when it happened. */
interface Untold {
  readonly event: FuseEvent
  readonly to: ReadonlyArray<Listener>
}

/** Runs a function of somebody else's. Its failure is lost, also if it is a promise that fails. */
const harmless = (run: () => unknown): void => {
  Either.try(() => {
    const returned = run()
    if (Predicate.isPromiseLike(returned)) returned.then(undefined, () => {})
  })
}

/** A listener that keeps what its reader has not taken yet, up to a limit. */
const reader = (listen: EventHub["listen"], tellDropped: (count: number) => void) => {
  let waiting: Array<FuseEvent> = []
  let dropped = 0
  let wake: (() => void) | undefined

  const leave = listen((event) => {
    waiting.push(event)
    if (waiting.length > bufferSize) {
      waiting.shift()
      dropped += 1
      tellDropped(1)
    }
    wake?.()
  })

  const takeAll = (): Chunk.Chunk<ObservedEvent> => {
    const events: ReadonlyArray<ObservedEvent> =
      dropped === 0 ? waiting : [{ _tag: "EventsDropped", count: dropped }, ...waiting]
    waiting = []
    dropped = 0
    return Chunk.unsafeFromArray(events)
  }

  const next = Effect.suspend(() =>
    waiting.length > 0
      ? Effect.succeed(takeAll())
      : Effect.async<Chunk.Chunk<ObservedEvent>>((resume) => {
          wake = () => {
            wake = undefined
            // Taken when the reader goes on, so that what happens in one go comes in one piece.
            resume(Effect.sync(takeAll))
          }
        })
  )
  return { next, leave }
}
