/** Draws a simulated outage as the dashboard shows it: `npm run dashboard`, into `docs/outage.svg`. */
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { simulate } from "./outageRun.ts"
import { draw } from "./svg.ts"

const seed = 7

writeFileSync(fileURLToPath(new URL("../../docs/outage.svg", import.meta.url)), draw(await simulate(seed)))
