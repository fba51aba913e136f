/** How much memory a value holds, roughly. */

const ofPrimitive = (value: unknown): number => (typeof value === "string" ? 2 * value.length : 8)

const partsOf = (value: object): Iterable<unknown> =>
  Array.isArray(value)
    ? value
    : value instanceof Map || value instanceof Set
      ? [...value]
      : Object.entries(value).flat()

/**
 * The bytes of a value and of all that it holds: two a character, eight a number and a place. Whatever is met twice, a
 * circle too, counts once. An upper bound for texts; only meant for comparing with a limit.
 */
export const byteSize = (value: unknown): number => {
  const met = new Set<object>()
  const open: Array<unknown> = [value]
  let bytes = 0
  while (open.length > 0) {
    const next = open.pop()
    bytes += ofPrimitive(next)
    if (typeof next !== "object" || next === null || met.has(next)) continue
    met.add(next)
    if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) bytes += next.byteLength
    else for (const part of partsOf(next)) open.push(part)
  }
  return bytes
}
