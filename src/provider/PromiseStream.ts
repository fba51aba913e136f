/** The parts of an answer from a function that returns an async iterable. */
import { Effect, Option, type Scope, Stream } from "effect"
import type { StreamPart } from "../model/ChatEvent.ts"
import type { ProviderError } from "../model/LlmError.ts"
import * as Promised from "./Promised.ts"

/** What the function hands over; a string is short for a piece of text. */
export type PartIterable = AsyncIterable<StreamPart | string>

/** The function. Where it returns a promise, its fulfilment tells that the provider has begun to respond. */
export type Start = (context: Promised.PromiseContext) => PartIterable | PromiseLike<PartIterable>

/**
 * The parts, each asked for when it is wanted. A rejection becomes the error that it describes. When the scope closes
 * before the end, the signal aborts and the iterator is told to return; neither is waited for.
 */
export const open = (
  provider: string,
  start: Start
): Effect.Effect<Stream.Stream<StreamPart | string, ProviderError>, ProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    const { context, abort } = Promised.makeContext()
    const reading: Reading = { iterator: undefined, isOver: false, isLeft: false }
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        reading.isLeft = true
        if (reading.isOver) return
        abort()
        leave(reading)
      })
    )
    const iterator = yield* Promised.run(provider, async () => {
      reading.iterator = (await start(context))[Symbol.asyncIterator]()
      if (reading.isLeft) leave(reading)
      return reading.iterator
    })
    const next = Promised.run(provider, async () => iterator.next())
    return Stream.repeatEffectOption(
      Effect.matchEffect(next, {
        onFailure: (error) => over(reading, Option.some(error)),
        onSuccess: ({ done, value }) => (done === true ? over(reading, Option.none()) : Effect.succeed(value))
      })
    )
  })

interface Reading {
  iterator: AsyncIterator<StreamPart | string> | undefined
  isOver: boolean
  isLeft: boolean
}

const over = (
  reading: Reading,
  end: Option.Option<ProviderError>
): Effect.Effect<never, Option.Option<ProviderError>> => {
  reading.isOver = true
  return Effect.fail(end)
}

/** A generator that waits for something hears of it only then; what it fails of interests nobody any more. */
const leave = ({ iterator }: Reading): void => {
  const told = async () => iterator?.return?.()
  told().catch(() => undefined)
}
