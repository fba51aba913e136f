/** The text of an answer that comes as the input of a tool, piece by piece. */

/** Makes pieces of text of pieces of JSON. */
export interface AnswerText {
  /** What of the answer is sure once this piece is there. */
  readonly take: (piece: string) => string
  /** What is left when there are no more pieces. */
  readonly end: () => string
}

/** With a `key` the answer is what stands under it, alone in its object; without, it is all of it. */
export const make = (key: string | undefined): AnswerText => (key === undefined ? whole() : under(key))

/** No piece at all is an input without fields. */
const whole = (): AnswerText => {
  let isEmpty = true
  return {
    take: (piece) => {
      if (piece !== "") isEmpty = false
      return piece
    },
    end: () => {
      const rest = isEmpty ? "{}" : ""
      isEmpty = false
      return rest
    }
  }
}

/** The last brace closes the object around the answer, so that braces are kept back until more comes. */
const under = (key: string): AnswerText => {
  const opening = new RegExp(`^\\s*\\{\\s*"${key}"\\s*:\\s*`)
  let isOpen = false
  let kept = ""
  return {
    take: (piece) => {
      kept += piece
      if (!isOpen) {
        const [begun] = opening.exec(kept) ?? []
        if (begun === undefined) return ""
        isOpen = true
        kept = kept.slice(begun.length)
      }
      const sure = kept.length - (/[\s}]*$/.exec(kept)?.[0].length ?? 0)
      const text = kept.slice(0, sure)
      kept = kept.slice(sure)
      return text
    },
    end: () => {
      const rest = isOpen ? kept.replace(/\s*\}\s*$/, "") : kept
      kept = ""
      return rest
    }
  }
}
