import type { ExecInfo } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { formatDuration } from "../../../input/duration.ts";
import { sandboxOf } from "../../../input/resolve.ts";
import { formatTable, quoted } from "../../../terminal/terminal.ts";

export async function run(context: Context): Promise<void> {
  const sandbox = await sandboxOf(context);
  const execs = await sandbox.execs({ signal: context.interrupts.signal });
  await context.result(execs, () => table(execs, context));
  if (execs.length === 0) await context.note("No execs yet.");
}

function table(execs: readonly ExecInfo[], context: Context): string {
  const now = Date.now();
  const rows = execs.map((exec) => [
    exec.id,
    endOf(exec),
    `${formatDuration(now - exec.startedAt)} ago`,
    formatDuration(exec.exit?.durationMs ?? now - exec.startedAt),
    context.clean(exec.argv.map(quoted).join(" ")),
  ]);
  return formatTable(["EXEC", "END", "STARTED", "TOOK", "PROGRAM"], rows, context.paint);
}

function endOf({ exit, background }: ExecInfo): string {
  if (!exit) return background ? "running, background" : "running";
  if (exit.reason === "exited") return `exit ${exit.exitCode}`;
  return exit.signal ? `${exit.reason} ${exit.signal}` : exit.reason;
}
