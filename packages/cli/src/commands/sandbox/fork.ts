import type { Context } from "../../input/command.ts";
import { inOptions } from "../../input/in-options.ts";
import { sandboxChoices } from "../../input/request.ts";
import { nameLabel, sandboxOf } from "../../input/resolve.ts";
import { refuseTakenName } from "./create.ts";

export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const choices = sandboxChoices(context.args, context.io.env);
  const name = choices.labels?.[nameLabel];
  if (name !== undefined && choices.idempotencyKey === undefined) {
    await refuseTakenName(await context.provider(), name, signal);
  }
  const origin = await sandboxOf(context);
  // A name stands for one sandbox: the fork takes over the other labels only.
  const { [nameLabel]: _, ...inherited } = (await origin.info({ signal })).labels;
  context.progress.status("forking the sandbox");
  const overrides = { ...choices, labels: { ...inherited, ...choices.labels } };
  const sandbox = await inOptions(overrides, () => origin.fork(overrides, { signal }));
  context.progress.clear();
  await context.result(context.json ? await sandbox.info({ signal }) : null, `${sandbox.id}\n`);
}
