/** Where the rivals are installed: a folder of its own, which the main install never touches. */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL(".", import.meta.url))

const manifestOf = (name) => `${folder}node_modules/${name}/package.json`

const manifest = JSON.parse(readFileSync(`${folder}package.json`, "utf8"))

/** The version of a rival that is installed. */
export const versionOf = (name) => JSON.parse(readFileSync(manifestOf(name), "utf8")).version

const isInstalled = ([name, version]) => existsSync(manifestOf(name)) && versionOf(name) === version

/** Runs `npm ci` in the folder, and says so, if a rival is not there in the version that is asked for. */
export const installRivals = () => {
  if (Object.entries(manifest.dependencies).every(isInstalled)) return
  console.log("scripts/wall/rivals: installing what the wall is also run on (npm ci)")
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder, stdio: "inherit" })
}
