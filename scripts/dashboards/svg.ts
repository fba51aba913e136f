/** Draws an outage: three panels above one another, one time axis, for light and dark pages. */
import type { Outage, Point } from "./outageRun.ts"

interface Line {
  readonly name: string
  /** A class of the style below. */
  readonly colour: "blue" | "orange" | "red" | "grey"
  readonly value: (point: Point) => number
}

interface Panel {
  readonly title: string
  readonly unit: string
  readonly max: number
  readonly ticks: ReadonlyArray<readonly [value: number, label: string]>
  readonly lines: ReadonlyArray<Line>
  readonly isStepped?: boolean
}

const [width, left, right, top, height, gap] = [860, 100, 24, 64, 130, 66]

const style = `
  svg { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif }
  .page { fill: #ffffff } .text { fill: #1f2328 } .muted { fill: #59636e } .grid { stroke: #d1d9e0 }
  .out { fill: #cf222e; fill-opacity: 0.08 } .outText { fill: #b3202a }
  .blue { stroke: #0969da } .orange { stroke: #bc4c00 } .red { stroke: #cf222e } .grey { stroke: #6e7781 }
  .title { font-size: 13px; font-weight: 600 } .head { font-size: 16px; font-weight: 600 }
  path { fill: none; stroke-width: 1.8; stroke-linejoin: round }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #f0f6fc } .muted { fill: #9198a1 } .grid { stroke: #3d444d }
    .out { fill: #f85149; fill-opacity: 0.14 } .outText { fill: #ff8a80 }
    .blue { stroke: #4493f8 } .orange { stroke: #f0883e } .red { stroke: #f85149 } .grey { stroke: #9198a1 }
  }`

/** The picture of an outage. */
export const draw = (outage: Outage): string => {
  const { points, from, to } = outage
  const end = points.length
  const x = (second: number) => left + ((width - left - right) * second) / end
  const panels = panelsOf(outage)
  const bottom = top + panels.length * height + (panels.length - 1) * gap
  const minutes = Array.from({ length: Math.floor(end / 60) + 1 }, (_, minute) => minute)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom + 52}" role="img" aria-labelledby="what">`,
    `<title id="what">An outage of ${outage.primary}: requests by provider, its circuit, and the latency of calls</title>`,
    `<style>${style}\n</style>`,
    `<rect class="page" width="${width}" height="${bottom + 52}"/>`,
    text(
      left,
      24,
      "head text",
      `${outage.primary} is out for ${(to - from) / 60} minutes; ${outage.secondary} answers`
    ),
    ...panels.flatMap((panel, index) => panelText(panel, top + index * (height + gap), outage, x)),
    ...minutes.map((minute) => text(x(minute * 60), bottom + 18, "muted", String(minute), "middle")),
    text((left + width - right) / 2, bottom + 38, "muted", "minutes", "middle"),
    "</svg>\n"
  ].join("\n")
}

const panelsOf = ({ primary, secondary, points }: Outage): ReadonlyArray<Panel> => {
  const most = (values: (point: Point) => ReadonlyArray<number>) => Math.ceil(Math.max(...points.flatMap(values)))
  const rates = most(({ rates }) => Object.values(rates))
  const seconds = most(({ latency }) => Object.values(latency))
  return [
    {
      title: "Requests by provider",
      unit: "per second",
      max: rates,
      ticks: whole(rates),
      lines: [
        { name: `${primary} answered`, colour: "blue", value: ({ rates }) => rates.primary },
        { name: `${secondary} answered`, colour: "orange", value: ({ rates }) => rates.secondary },
        { name: `${primary} failed`, colour: "red", value: ({ rates }) => rates.failed }
      ]
    },
    {
      title: `Circuit of ${primary}`,
      unit: "state",
      max: 2,
      ticks: [
        [0, "closed"],
        [1, "half-open"],
        [2, "open"]
      ],
      lines: [{ name: "state", colour: "red", value: ({ circuit }) => circuit }],
      isStepped: true
    },
    {
      title: "Latency of calls",
      unit: "seconds",
      max: seconds,
      ticks: whole(seconds),
      lines: [
        { name: "p50", colour: "grey", value: ({ latency }) => latency.p50 },
        { name: "p95", colour: "blue", value: ({ latency }) => latency.p95 },
        { name: "p99", colour: "orange", value: ({ latency }) => latency.p99 }
      ]
    }
  ]
}

/** At most six whole numbers from zero on. */
const whole = (max: number): Panel["ticks"] => {
  const step = Math.ceil(max / 5)
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, index) => [index * step, String(index * step)])
}

const panelText = (
  { title, unit, max, ticks, lines, isStepped }: Panel,
  above: number,
  { points, from, to }: Outage,
  x: (second: number) => number
): ReadonlyArray<string> => {
  const below = above + height
  const y = (value: number) => below - (height * value) / max
  const middle = above + height / 2
  return [
    `<rect class="out" x="${round(x(from))}" y="${above}" width="${round(x(to) - x(from))}" height="${height}"/>`,
    text(left, above - 12, "title text", title),
    text((x(from) + x(to)) / 2, above + height * 0.62, "outText", "outage", "middle"),
    `<text class="muted" text-anchor="middle" transform="translate(16 ${middle}) rotate(-90)">${escaped(unit)}</text>`,
    ...ticks.flatMap(([value, label]) => [
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${round(y(value))}" y2="${round(y(value))}"/>`,
      text(left - 8, y(value) + 4, "muted", label, "end")
    ]),
    ...lines.map(
      ({ colour, value }) => `<path class="${colour}" d="${pathOf(points.map(value), x, y, isStepped ?? false)}"/>`
    ),
    ...(lines.length === 1 ? [] : lines.flatMap((line, index) => legend(line, index, lines.length, above - 12)))
  ]
}

const legend = ({ name, colour }: Line, index: number, count: number, y: number): ReadonlyArray<string> => {
  const at = width - right - (count - index) * 150
  return [`<path class="${colour}" d="M${at} ${y - 4}h18"/>`, text(at + 24, y, "text", name)]
}

const pathOf = (
  values: ReadonlyArray<number>,
  x: (second: number) => number,
  y: (value: number) => number,
  isStepped: boolean
): string =>
  values
    .flatMap((value, second) => {
      // What does not change needs no corner.
      if (second > 0 && value === values[second - 1] && value === values[second + 1]) return []
      if (second === 0) return [`M${round(x(0))} ${round(y(value))}`]
      return isStepped ? [`H${round(x(second))}V${round(y(value))}`] : [`L${round(x(second))} ${round(y(value))}`]
    })
    .join("")

const text = (x: number, y: number, kind: string, words: string, anchor = "start"): string =>
  `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped(words)}</text>`

const round = (value: number): number => Math.round(value * 10) / 10

const escaped = (words: string): string => words.replace(/&/g, "&amp;").replace(/</g, "&lt;")
