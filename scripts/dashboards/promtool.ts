/** Prometheus' own checker, from Debian's package `prometheus`; installed when it is first needed. */
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
    timeout: 240_000,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  })

/** Why promtool cannot be used here; undefined if it can. Installs it if it is missing. */
export const obstacle = (): string | undefined => {
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
