import type { Context } from "../command.ts";
import { formatDuration, parseDurationMs } from "../duration.ts";
import { sandboxOf } from "../resolve.ts";

export async function run(context: Context): Promise<void> {
  const forMs = parseDurationMs(context.args.argument("duration"), "<duration>");
  const sandbox = await sandboxOf(context);
  const { expiresAt } = await sandbox.keepAlive(forMs, { signal: context.interrupts.signal });
  const left = formatDuration(expiresAt - Date.now());
  await context.result(
    { sandbox: sandbox.id, expiresAt },
    `${sandbox.id} ends in ${left}, at ${new Date(expiresAt).toISOString()}\n`,
  );
}
