import type { Context } from "../../input/command.ts";
import { inOptions } from "../../input/in-options.ts";
import { sandboxChoices } from "../../input/request.ts";
import { nameLabel, sandboxOf } from "../../input/resolve.ts";
import { refuseTakenName } from "./create.ts";

export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const choices = sandboxChoices(context.args, context.io.env);
  await refuseTakenName(await context.provider(), choices, signal);
  const origin = await sandboxOf(context);
  // A name belongs to one sandbox: the fork inherits only the other labels.
  const { [nameLabel]: _, ...inherited } = (await origin.info({ signal })).labels;
  context.progress.status("forking the sandbox");
  const overrides = { ...choices, labels: { ...inherited, ...choices.labels } };
  const sandbox = await inOptions(overrides, () => origin.fork(overrides, { signal }));
  context.progress.clear();
  await context.result(context.json ? await sandbox.info({ signal }) : null, `${sandbox.id}\n`);
}
