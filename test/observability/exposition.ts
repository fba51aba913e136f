/** A reader of Prometheus' text format, written from its description; what it does not know it refuses. */

/** A value with its labels. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** What stands under one name. */
export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: Array<Sample>
}

const suffixes = /(_bucket|_sum|_count)$/

/** The families of a text, by name. */
export const parse = (text: string): ReadonlyMap<string, Family> => {
  if (!text.endsWith("\n")) throw new Error("the last line has no end")
  const families = new Map<string, Family>()
  const helps = new Map<string, string>()
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.*)$/s.exec(line)
    if (comment !== null) {
      const [, word, name = "", rest = ""] = comment
      if (word === "HELP")
        helps.set(
          name,
          rest.replace(/\\(n|\\)/g, (_, it) => (it === "n" ? "\n" : it))
        )
      else if (families.has(name)) throw new Error(`${name} comes twice`)
      else families.set(name, { type: rest, help: helps.get(name) ?? "", samples: [] })
      continue
    }
    const sample = sampleOf(line)
    const family = families.get(sample.name) ?? families.get(sample.name.replace(suffixes, ""))
    if (family === undefined) throw new Error(`no type: ${line}`)
    family.samples.push(sample)
  }
  return families
}

const sampleOf = (line: string): Sample => {
  const [, name = "", inner, value = ""] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/s.exec(line) ?? []
  if (name === "") throw new Error(`not a sample: ${line}`)
  const labels: Record<string, string> = {}
  let rest = inner ?? ""
  while (rest !== "") {
    const [whole, label = "", text = ""] = /^([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/.exec(rest) ?? []
    if (whole === undefined) throw new Error(`not a label: ${rest}`)
    labels[label] = text.replace(/\\(["\\n])/g, (_, it) => (it === "n" ? "\n" : it))
    rest = rest.slice(whole.length)
  }
  return { name, labels, value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value) }
}
