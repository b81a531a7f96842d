import { parseInteger } from "../../../input/arguments.ts";
import type { Context } from "../../../input/command.ts";
import { portRange } from "../../../input/request.ts";
import { sandboxOf } from "../../../input/resolve.ts";

export async function run(context: Context): Promise<void> {
  const text = context.args.optional("port");
  const port = text === undefined ? (await context.settings()).previewPort : parseInteger(text, "<port>", portRange);
  const sandbox = await sandboxOf(context);
  const url = await sandbox.previewUrl(port, { signal: context.interrupts.signal });
  await context.result({ sandbox: sandbox.id, port, url }, `${url}\n`);
}
