import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as llmfuse from "llmfuse"
import { obstacle, run } from "../../scripts/dashboards/promtool.ts"
import * as Metrics from "../../src/observability/Metrics.ts"
import * as Prometheus from "../../src/observability/Prometheus.ts"
import { everything } from "../observability/everything.ts"
import { parse } from "../observability/exposition.ts"

const pathOf = (name: string) => fileURLToPath(new URL(`../../scripts/dashboards/${name}`, import.meta.url))
const read = (name: string) => readFileSync(pathOf(name), "utf8")

const why = obstacle()
if (why !== undefined) console.warn(`skipped: ${why}`)

interface Dashboard {
  readonly title: string
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly query: string }> }
  readonly panels: ReadonlyArray<{
    readonly id: number
    readonly title: string
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
    readonly targets: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
  }>
}

const dashboard: Dashboard = JSON.parse(read("grafana.json"))

/** The queries, as Prometheus gets them from Grafana. */
const queries = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr, legendFormat }) => ({
    title,
    legendFormat,
    expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$provider", ".*")
  }))
)

/** The expressions of the alerts: what is indented below `expr: |`. */
const alertQueries = [...read("alerts.yaml").matchAll(/^( +)expr: \|\n((?:\1 {2}.*\n)+)/gm)].map(([, , expr = ""]) => ({
  title: "alert",
  legendFormat: "",
  expr
}))

/** What the code exports: the labels of each name, with their values. */
const exported = Effect.map(
  Effect.suspend(() => {
    const count = Metrics.listener({ modelOf: () => "flash" })
    for (const event of everything("groq")) count(event)
    return Prometheus.text
  }),
  (text) => {
    const names = new Map<string, Map<string, Set<string>>>()
    for (const { name, labels } of [...parse(text).values()].flatMap(({ samples }) => samples)) {
      const known = names.get(name) ?? new Map<string, Set<string>>()
      names.set(name, known)
      for (const [label, value] of Object.entries(labels)) {
        known.set(label, (known.get(label) ?? new Set()).add(value))
      }
    }
    return names
  }
)

const metrics = /\b((?:llmfuse|gen_ai_client)_\w+)(?:\{([^}]*)\})?/g
const matchers = /(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g
const groupings = /\b(?:by|on|group_left)\s*\(([^)]*)\)/g

describe("the dashboard and the alerts", () => {
  it.effect("ask only for metrics, labels and values that are exported", () =>
    Effect.gen(function* () {
      const names = yield* exported

      for (const { title, expr, legendFormat } of [...queries, ...alertQueries]) {
        const used = [...expr.matchAll(metrics)]
        assert.isNotEmpty(used, expr)
        const labels = new Set<string>()
        for (const [, name = "", selector = ""] of used) {
          const known = names.get(name)
          assert.isDefined(known, `${title}: ${name} is not exported`)
          for (const label of known?.keys() ?? []) labels.add(label)
          for (const [, label = "", values = ""] of selector.matchAll(matchers)) {
            assert.isTrue(known?.has(label), `${title}: ${name} has no label ${label}`)
            for (const value of values.split("|")) {
              const isMatch = new RegExp(`^(?:${value})$`)
              const isKnown =
                label === "error_type"
                  ? value in llmfuse
                  : value === ".*" || [...(known?.get(label) ?? [])].some((it) => isMatch.test(it))
              assert.isTrue(isKnown, `${title}: ${name} has no ${label} ${value}`)
            }
          }
        }
        const grouped = [...expr.matchAll(groupings)].flatMap(([, list = ""]) => list.split(/[\s,]+/))
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label)
        for (const label of [...grouped, ...shown].filter((it) => it !== "")) {
          assert.isTrue(labels.has(label), `${title}: nothing has the label ${label}`)
        }
        for (const label of shown) assert.include(grouped, label, title)
      }
    })
  )

  it("have every alert's query in the check above", () => {
    assert.strictEqual(alertQueries.length, 5)
    assert.strictEqual(read("alerts.yaml").match(/- alert:/g)?.length, 5)
  })

  it("show what the field asks for", () => {
    const text = JSON.stringify(dashboard.panels)

    for (const name of ["attempts", "failovers", "retries", "throttles", "hedges", "cost", "cache_hits"]) {
      assert.include(text, `llmfuse_${name}_total`)
    }
    for (const other of ["llmfuse_circuit_state", "gen_ai_client_token_usage_sum", "0.5,", "0.95,", "0.99,"]) {
      assert.include(text, other)
    }
  })

  it("have panels that do not overlap, each with its own id", () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`)
    )

    assert.strictEqual(new Set(cells).size, cells.length)
    assert.strictEqual(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  })

  it("pick the provider from what is exported", () => {
    const [, variable] = dashboard.templating.list

    assert.deepInclude(variable, { name: "provider", query: "label_values(llmfuse_attempts_total, provider)" })
  })
})

describe.skipIf(why !== undefined)("promtool", () => {
  it("parses every query of the dashboard", () => {
    // A recording rule for each; JSON is YAML.
    const rules = queries.map(({ expr }, index) => ({ record: `query:number_${index}`, expr }))
    const folder = mkdtempSync(join(tmpdir(), "llmfuse-rules-"))
    const checked = (groups: unknown) => {
      const path = join(folder, "rules.json")
      writeFileSync(path, JSON.stringify({ groups }))
      return run(["check", "rules", path])
    }

    const all = checked([{ name: "dashboard", rules }])
    const broken = checked([{ name: "dashboard", rules: [{ record: "a", expr: "rate(a[5m]" }] }])

    assert.isTrue(all.isOk, all.output)
    assert.include(all.output, `${queries.length} rules found`)
    assert.isFalse(broken.isOk)
    rmSync(folder, { recursive: true })
  })

  it("finds the alerts well formed", () => {
    const { isOk, output } = run(["check", "rules", pathOf("alerts.yaml")])

    assert.isTrue(isOk, output)
    assert.include(output, "5 rules found")
  })

  it("sees the alerts fire beyond their limits, and not within the targets", () => {
    const { isOk, output } = run(["test", "rules", pathOf("alerts.test.yaml")])

    assert.isTrue(isOk, output)
  })
})
