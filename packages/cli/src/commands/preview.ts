import { oneLine } from "../builds/words.ts";
import type { Context } from "../command.ts";
import { findBuildId } from "../resolve.ts";

export async function run(context: Context): Promise<void> {
  const { args, interrupts } = context;
  const { signal } = interrupts;
  const client = await context.server();
  const id = await findBuildId(client, args.optional("id"), signal);
  const { openPreview, closePreview } = client.builds;
  const view = await (args.flag("close") ? closePreview : openPreview)(id, { signal });
  await context.result(view, view.address === null ? `${id} shows nothing any more\n` : `${oneLine(view.address)}\n`);
}
