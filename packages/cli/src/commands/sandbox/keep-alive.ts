import { maxLifetimeMs } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration, parseDurationMs } from "../../input/duration.ts";
import { UsageError } from "../../input/failure.ts";
import { sandboxOf } from "../../input/resolve.ts";

const longest = `${maxLifetimeMs / 3_600_000} hours`;
const limit = `A sandbox lives at most ${longest} from its creation; a snapshot or a fork keeps its files for longer.`;

export async function run(context: Context): Promise<void> {
  const wanted = context.args.argument("duration");
  const forMs = parseDurationMs(wanted, "<duration>");
  if (forMs > maxLifetimeMs) throw new UsageError(`<duration>: ${wanted} is more than ${longest}.`, limit);
  const sandbox = await sandboxOf(context);
  const askedFor = Date.now() + forMs;
  const { expiresAt } = await sandbox.keepAlive(forMs, { signal: context.interrupts.signal });
  const left = formatDuration(expiresAt - Date.now());
  await context.result(
    { sandbox: sandbox.id, expiresAt },
    `${sandbox.id} ends in ${left}, at ${new Date(expiresAt).toISOString()}\n`,
  );
  if (expiresAt < askedFor) await context.note(`That is sooner than requested. ${limit}`);
}
