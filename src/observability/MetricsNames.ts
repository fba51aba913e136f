/** Names for labels, of which there may not be too many. */
import { Either } from "effect"
import { tagOf } from "./Discreet.ts"

/** What stands for all that is beyond a limit. */
export const other = "other"

/** The first so many names as they are, and `other` for those that come later. */
export const atMost = (limit: number): ((name: string) => string) => {
  const known = new Set<string>()
  return (name) => {
    if (known.has(name)) return name
    if (known.size >= limit) return other
    known.add(name)
    return name
  }
}

/** What kind of defect it is: a tag or a class's name. Where it could be a text that quotes something, `other`. */
export const ofDefect = (defect: unknown): string => {
  // Whatever was thrown, reading it may throw again.
  const name = Either.getOrElse(
    Either.try(() => tagOf(defect)),
    () => other
  )
  return /^[a-zA-Z_$][\w$./-]{0,63}$/.test(name) ? name : other
}
