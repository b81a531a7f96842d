import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import { findExecId, sandboxOf } from "../../../input/resolve.ts";
import { reportExec } from "./report.ts";

const byteRange = { min: 0, max: Number.MAX_SAFE_INTEGER };

export async function run(context: Context): Promise<number> {
  const { args } = context;
  const [input, terminal] = [args.flag("interactive"), args.flag("tty")];
  if (context.json && terminal) throw new UsageError("--json excludes -t.", "Give one or the other.");
  const from = {
    stdout: args.integer("from-stdout", byteRange) ?? 0,
    stderr: args.integer("from-stderr", byteRange) ?? 0,
  };
  const { signal } = context.interrupts;
  const sandbox = await sandboxOf(context);
  const id = await findExecId(sandbox, args.argument("exec-id"), signal);
  await using exec = await sandbox.attach(id, { from, signal });
  return await reportExec(context, exec, { input, terminal, onInterrupt: "detach" });
}
