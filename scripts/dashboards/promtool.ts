/** Prometheus' own checker, from Debian's package `prometheus`. Without it, the tests that need it are skipped. */
import { spawnSync } from "node:child_process"

/** What a run of it came to. */
export interface Run {
  readonly isOk: boolean
  /** What it wrote, to both outputs. */
  readonly output: string
}

const isThere = () => spawnSync("promtool", ["--version"]).status === 0

const apt = (...words: ReadonlyArray<string>) =>
  spawnSync("apt-get", words, {
    encoding: "utf8",
    timeout: 120_000,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  })

/** Why promtool cannot be used here; undefined if it can. */
export const obstacle = (): string | undefined =>
  isThere() ? undefined : "promtool is not installed: npx tsx scripts/dashboards/installPromtool.ts"

/** Installs it if it is missing. Gives back why it cannot be installed; undefined if it is there. */
export const install = (): string | undefined => {
  if (isThere()) return undefined
  apt("update")
  const { error, stderr } = apt("install", "-y", "--no-install-recommends", "prometheus")
  return isThere() ? undefined : `promtool cannot be installed: ${error?.message ?? stderr?.trim() ?? "apt-get failed"}`
}

/** Runs it. */
export const run = (words: ReadonlyArray<string>, input?: string): Run => {
  const { status, stdout, stderr } = spawnSync("promtool", words, { encoding: "utf8", input })
  return { isOk: status === 0, output: `${stdout}${stderr}` }
}
