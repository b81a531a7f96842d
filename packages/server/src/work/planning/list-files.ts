import { SlipwayError } from "@slipway/contract";
import { projectPath, type RestrictedSandbox, run } from "@slipway/sandbox";

const maxListBytes = 8 * 1024 * 1024;

/** Lists files, the top directories first. `tests` are find's. */
export async function listFiles(
  sandbox: RestrictedSandbox,
  signal: AbortSignal,
  tests: readonly string[] = [],
): Promise<string[]> {
  const passedOver = ["(", "-name", ".git", "-o", "-name", "node_modules", ")", "-prune", "-o"];
  const argv = ["find", projectPath, ...passedOver, "-type", "f", ...tests, "-printf", "%P\\0"];
  const { stdout, exit } = await run(sandbox, argv, { maxBytes: maxListBytes, signal });
  if (exit.reason !== "exited") throw new SlipwayError("exec_failed", `cannot list the files: ${exit.reason}`);
  const paths = stdout.split("\0").filter((path) => path !== "");
  const depthOf = (path: string) => path.split("/").length;
  return paths.sort((a, b) => depthOf(a) - depthOf(b) || (a < b ? -1 : 1));
}
