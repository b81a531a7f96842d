import { constants } from "node:os";
import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import { findExecId, sandboxOf } from "../../../input/resolve.ts";

export async function run(context: Context): Promise<void> {
  const { args } = context;
  const { signal } = context.interrupts;
  const graceMs = args.durationMs("grace");
  const named = args.text("signal");
  const toSend = named === undefined ? undefined : asSignal(named);
  const sandbox = await sandboxOf(context);
  const id = await findExecId(sandbox, args.argument("exec-id"), signal);
  await using exec = await sandbox.attach(id, { signal });
  if (toSend) {
    await exec.signal(toSend, { tree: true, signal });
    await context.result({ execId: id, signal: toSend }, `${toSend} sent to ${id}\n`);
    return;
  }
  context.progress.status(`ending ${id}`);
  await exec.kill({ signal, ...(graceMs !== undefined && { graceMs }) });
  const exit = await exec.wait({ signal });
  context.progress.clear();
  await context.result({ execId: id, exit }, `${id} ended: ${exit.reason}\n`);
}

function asSignal(text: string): NodeJS.Signals {
  const upper = text.toUpperCase();
  const name = upper.startsWith("SIG") ? upper : `SIG${upper}`;
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals;
  throw new UsageError(`--signal: "${text}" is not a signal.`, "Use a name such as SIGTERM or HUP.");
}
