/** Variables from a file. */
import { statSync } from "node:fs"
import { loadEnvFile } from "node:process"

/** Takes over what `.env` in the current folder sets; what the environment sets already wins. No file is fine. */
export const readDotEnv = (): void => {
  // A folder of this name is a virtual environment of Python's.
  const isThere = statSync(".env", { throwIfNoEntry: false })?.isDirectory() === false
  if (isThere) loadEnvFile(".env")
}
