/** The text of a fault server's answers, and its words: what comes in one event each. */

/** The text unless a behaviour has its own. It has sixty words, so that "the whole answer" is an exact comparison. */
export const sixtyWords =
  "A program that asks a model for an answer depends on machines it does not own. They are busy, they fall silent, " +
  "they break off in the middle of a word. A good layer in between waits as long as it was told, asks again when that " +
  "can help, and asks somebody else when it cannot, so answers arrive whole."

/** What the words are taken from. */
export interface TextSource {
  readonly text?: string | Iterable<string> | undefined
  readonly words?: number | undefined
}

/** The words of an answer, one by one, each with the white space before it. Joined they are the text. */
export const wordsOf = ({ text = sixtyWords, words }: TextSource): Iterable<string> => {
  const pieces = typeof text === "string" ? split(text) : text
  return words === undefined ? pieces : repeat([...pieces], words)
}

/** Lazily, for a text may be long. White space at the end goes with the last word. */
const split = function* (text: string): Iterable<string> {
  for (const [word] of text.matchAll(/\s*\S+\s*$|\s*\S+|\s+$/g)) yield word
}

const repeat = function* (pieces: ReadonlyArray<string>, count: number): Iterable<string> {
  for (let index = 0; pieces.length > 0 && index < count; index++) {
    const piece = pieces[index % pieces.length] ?? ""
    yield index > 0 && index % pieces.length === 0 && !/^\s/.test(piece) ? ` ${piece}` : piece
  }
}
