import { fileURLToPath } from "node:url";
import { bundleProgram } from "@slipway/host/bundle";

/** The directory that holds the program inside as one file, `link.mjs`. */
export async function buildLink(): Promise<string> {
  return await bundleProgram("link", fileURLToPath(new URL("inside/main.ts", import.meta.url)));
}
