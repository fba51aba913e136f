/** A stream as an async iterator, for code without Effect. */
/// <reference lib="esnext.disposable" preserve="true" />
import { Chunk } from "effect"

/** Where an iterator gets its elements. */
export interface Source<A> {
  /** The next elements; nothing at the end. Rejects with the failure. */
  readonly pull: () => Promise<Chunk.Chunk<A> | undefined>
  /** Whether it has been stopped from outside; what came before that is no longer wanted. */
  readonly isStopped: () => boolean
  /** Stops at once whatever is under way. What is being pulled is not waited for. */
  readonly close: () => Promise<void>
}

/**
 * Hands out elements one at a time, in order, however many are asked for at once. To leave the loop, `return` and
 * dispose close the source at once, also while an element is being waited for, which then is the end.
 */
export class EventIterator<A> implements AsyncIterableIterator<A>, AsyncDisposable {
  #source: Source<A> | undefined
  readonly #open: () => Source<A>
  #elements: ReadonlyArray<A> = []
  #position = 0
  #isOver = false
  #last: Promise<unknown> | undefined

  /** An iterator over a source, which is opened when the first element is asked for. */
  constructor(open: () => Source<A>) {
    this.#open = open
  }

  /** The next element. Rejects with the failure of the source, once; after that there is nothing more. */
  next(): Promise<IteratorResult<A, undefined>> {
    const ready = this.#last === undefined ? this.#take() : undefined
    if (ready !== undefined) return Promise.resolve(ready)
    const result = this.#last === undefined ? this.#pull() : this.#last.then(() => this.#take() ?? this.#pull())
    const settled = result.then(
      () => undefined,
      () => undefined
    )
    this.#last = settled
    settled.then(() => {
      if (this.#last === settled) this.#last = undefined
    })
    return result
  }

  /** Ends the iteration and closes the source. */
  async return(): Promise<IteratorResult<A, undefined>> {
    this.#isOver = true
    this.#elements = []
    await this.#source?.close()
    return done
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Ends the iteration at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  #take(): IteratorResult<A, undefined> | undefined {
    if (this.#position < this.#elements.length && !this.#source?.isStopped()) {
      return { done: false, value: this.#elements[this.#position++] as A }
    }
    return this.#isOver ? done : undefined
  }

  async #pull(): Promise<IteratorResult<A, undefined>> {
    this.#source ??= this.#open()
    const elements = await this.#source.pull().then(
      (chunk) => chunk,
      (reason) => {
        this.#isOver = true
        return Promise.reject(reason)
      }
    )
    if (elements === undefined) this.#isOver = true
    if (elements === undefined || this.#isOver) return done
    this.#elements = Chunk.toReadonlyArray(elements)
    this.#position = 0
    return this.#take() ?? this.#pull()
  }
}

const done = { done: true, value: undefined } as const
