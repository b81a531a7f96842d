import { fileURLToPath } from "node:url";
import { bundleProgram } from "@slipway/host/bundle";

/** The directory that holds the runner as one file, `runner.mjs`. */
export async function buildRunner() {
  return await bundleProgram("runner", fileURLToPath(new URL("src/main.ts", import.meta.url)));
}
