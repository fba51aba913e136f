/** Installs promtool, which the tests of the dashboards check with: `npx tsx scripts/dashboards/installPromtool.ts`. */
import { install } from "./promtool.ts"

console.log(install() ?? "promtool is there")
