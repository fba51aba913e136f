/** Installs what the benchmark compares with, in a folder of its own, where it is absent. */
import { execFileSync } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL("rivals/", import.meta.url))

/** Loads a rival from the folder. */
export const requireRival = createRequire(`${folder}index.js`)

const isInstalled = (name) => {
  try {
    return requireRival.resolve(name).startsWith(folder)
  } catch {
    return false
  }
}

/** Runs `npm ci` in the folder, and says so, if cockatiel is not there yet. */
export const installRivals = () => {
  if (isInstalled("cockatiel")) return
  console.log("scripts/bench/rivals: installing cockatiel to compare with (npm ci)")
  execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" })
}
