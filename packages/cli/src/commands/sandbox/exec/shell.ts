import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import { sandboxOf } from "../../../input/resolve.ts";
import { surroundings } from "./exec.ts";
import { reportExec } from "./report.ts";

const bashOrSh = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";

/** In a terminal an interactive shell; with other input a shell that reads its commands from there. */
export async function run(context: Context): Promise<number> {
  if (context.json) throw new UsageError("A shell has no JSON form.", "Use slipway sandbox exec --json.");
  const terminal = context.io.stdin.isTTY === true && context.out.isTerminal;
  const request = {
    argv: ["sh", "-c", bashOrSh],
    stdin: "open" as const,
    timeoutMs: null,
    ...surroundings(context, terminal),
  };
  const sandbox = await sandboxOf(context);
  await using exec = await sandbox.exec(request, { signal: context.interrupts.signal });
  return await reportExec(context, exec, { input: true, terminal, onInterrupt: "forward" });
}
