import type { PreviewView } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { buildOf } from "../../input/resolve.ts";
import { quoted } from "../../terminal/terminal.ts";
import { oneLine } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const { client, id, signal } = await buildOf(context);
  const { openPreview, closePreview } = client.builds;
  const view = await (context.args.flag("close") ? closePreview : openPreview)(id, { signal });
  await context.result(view, `${textOf(view)}\n`);
}

function textOf({ build, address, instead }: PreviewView): string {
  if (address === null) return `preview of ${build} closed`;
  if (instead === null) return oneLine(address);
  const { reason, repository, branch, commit, gates } = instead;
  const verdicts = gates.map(({ name, verdict }) => `${oneLine(name)} ${verdict}`);
  return [
    `${build} has no preview: ${oneLine(reason, 300)}. You can look at this instead:`,
    `repository: git clone ${quoted(oneLine(repository))} app`,
    `branch:     ${oneLine(branch)}, at ${oneLine(commit)}`,
    ...(verdicts.length === 0 ? [] : [`gates:      ${verdicts.join(", ")}`]),
  ].join("\n");
}
