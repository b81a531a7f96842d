import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { inOptions } from "../../input/in-options.ts";
import { networkPolicy } from "../../input/request.ts";
import { sandboxOf } from "../../input/resolve.ts";

export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const policy = networkPolicy(context.args, context.io.env);
  if (!policy) throw new UsageError("No policy is given.", "Give --net with the domains to allow, or --net none.");
  const sandbox = await sandboxOf(context);
  await inOptions({ network: policy }, () => sandbox.setNetwork(policy, { signal }));
  const { network } = await sandbox.info({ signal });
  await context.result({ sandbox: sandbox.id, network }, `${sandbox.id} network policy replaced\n`);
}
