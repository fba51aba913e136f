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

/** How long the beginning of the object may be, in characters; a longer one is no beginning but the answer itself. */
const maxOpening = 1024

/** The last brace closes the object around the answer, so that braces and the blanks around them are kept back. */
const under = (key: string): AnswerText => {
  const opening = new RegExp(`^\\s*\\{\\s*"${key}"\\s*:\\s*`)
  let isOpen = false
  let isBare = false
  let kept: Array<string> = []
  const takeOpening = (piece: string): string | undefined => {
    const begun = kept.join("") + piece
    const [found] = opening.exec(begun) ?? []
    isOpen = found !== undefined
    isBare = !isOpen && begun.length > maxOpening
    kept = isOpen || isBare ? [] : [begun]
    return isOpen ? begun.slice(found?.length) : isBare ? begun : undefined
  }
  return {
    take: (piece) => {
      const more = isOpen || isBare ? piece : takeOpening(piece)
      if (more === undefined || isBare) return more ?? ""
      const sure = endOfAnswer(more)
      if (sure === 0) {
        kept.push(more)
        return ""
      }
      const text = kept.join("") + more.slice(0, sure)
      kept = [more.slice(sure)]
      return text
    },
    end: () => {
      const rest = kept.join("")
      kept = []
      return isOpen ? withoutBrace(rest) : rest
    }
  }
}

/** Where the blanks and braces at the end begin. */
const endOfAnswer = (text: string): number => {
  let end = text.length
  while (end > 0 && isBlankOrBrace(text.charCodeAt(end - 1))) end--
  return end
}

const isBlankOrBrace = (code: number): boolean => code === 0x7d || code === 0x20 || (code >= 0x09 && code <= 0x0d)

const withoutBrace = (text: string): string => {
  const trimmed = text.trimEnd()
  return trimmed.endsWith("}") ? trimmed.slice(0, -1).trimEnd() : text
}
