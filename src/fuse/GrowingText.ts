/** A text that grows by many small pieces, at the memory cost of the text alone. */

/** How many pieces are kept apart. */
const maxPieces = 1024

/** Pieces added one after the other. A string made by `+=` keeps every piece as an object of its own; this joins them. */
export class GrowingText {
  #joined = ""
  #pieces: Array<string> = []

  /** Puts a piece at the end. */
  add(piece: string): void {
    if (this.#pieces.push(piece) < maxPieces) return
    this.#joined += this.#pieces.join("")
    this.#pieces = []
  }

  /** The whole text so far. */
  toString(): string {
    return this.#joined + this.#pieces.join("")
  }
}
